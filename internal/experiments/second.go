// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"strconv"
	"time"

	"pollux/internal/bench"
)

const (
	secondRounds  = 5
	secondRuntime = 400 * time.Millisecond
)

// smokeDepths are instead of bench.SweepDepths.
var smokeDepths = []int{1, 32}

// second measures RAID-0 at all depths, of pollux and of the kernel's two. Within a round
// each depth is measured with pollux and dm-stripe in turns; pollux reads the drives while
// dm has them. md wants them for itself, and comes after.
func (r *runner) second() error {
	d, n := r.runtime(secondRuntime), r.rounds(secondRounds)
	depths := bench.SweepDepths
	if r.Smoke {
		depths = smokeDepths
	}
	for round := range n {
		r.say("round %d of %d: pollux and dm-stripe", round+1, n)
		if err := r.withDM(func(stripe string) {
			for _, qd := range depths {
				for _, run := range inTurn(round,
					func() { r.stripe(qd, Off, round+1, d) }, func() { r.stripe(qd, On, round+1, d) },
					func() { r.rival(TargetDM, stripe, qd, Off, round+1, d) }, func() { r.rival(TargetDM, stripe, qd, On, round+1, d) }) {
					run()
				}
			}
		}); err != nil {
			return err
		}
		r.say("round %d of %d: md raid0", round+1, n)
		if err := r.withMD(func(array string) {
			for _, qd := range depths {
				r.rival(TargetMD, array, qd, Off, round+1, d)
				if round == 0 {
					// It fails at once, and will in every round.
					r.rival(TargetMD, array, qd, On, round+1, d)
				}
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) stripe(qd int, polling string, round int, d time.Duration) {
	key := Key{Case: CaseSweep, Target: TargetStripe, Polling: polling, NumJobs: 1, IODepth: qd}
	r.pollux(key, round, map[string]string{"": polling}, d, r.Devices[:2], "--rw=randread", "--bs=4k", "--iodepth="+strconv.Itoa(qd),
		"--hipri="+polling, "--size="+size, "--runtime="+d.String(), "--seed="+strconv.Itoa(round))
}

// rival measures a device of the kernel's. fio submits together all that came back
// together, as pollux does, and not, as by default, one by one.
func (r *runner) rival(target, device string, qd int, polling string, round int, d time.Duration) {
	key := Key{Case: CaseSweep, Target: target, Polling: polling, NumJobs: 1, IODepth: qd}
	r.fio(key, round, map[string]string{"": polling}, d, words("--name=sweep --filename=%s --ioengine=io_uring --hipri=%s --direct=1 --fixedbufs=1 --registerfiles=1 --rw=randread --bs=4k --size=%s --norandommap=1 --iodepth=%d --iodepth_batch=%d --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=%d --runtime=%s --time_based --randseed=%d",
		device, number(polling), size, qd, qd, qd, milliseconds(d), round)...)
}
