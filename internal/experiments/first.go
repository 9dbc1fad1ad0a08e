// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"time"
)

const (
	firstRounds  = 5
	rivalRounds  = 3
	firstRuntime = 1500 * time.Millisecond
	tenRuntime   = 2 * time.Second
	aloneRuntime = 800 * time.Millisecond
)

// lowpri and hipri are the published jobs, a line each. Size and runtime are ours, and so
// is time_based: a job that has read its 64 MiB would otherwise leave the others alone.
const (
	lowpri = "--name lowpri --filename=%s --size=%s --direct=1 --ioengine=pvsync --rw=randread --bs=4k --runtime=%s --time_based --numjobs=%d --iodepth=1 --randrepeat=0 --refill_buffers"
	hipri  = "--name hipri --filename=%s --size=%s --direct=1 --ioengine=%s --rw=randread --bs=4k --runtime=%s --time_based --numjobs=%d --iodepth=1 --randrepeat=0 --refill_buffers"
)

// bothJobs says what the published jobs ask for.
var bothJobs = map[string]string{"lowpri": Off, "hipri": On}

// first measures per-I/O polling. One queue is measured on one CPU, where nothing but
// itself delays it. Jobs beside each other need two: on one, what a poller and a sleeper
// get is the scheduler's choice.
func (r *runner) first() error {
	if r.Setup != SetupTwoCPUs {
		r.oneQueue()
	}
	if r.Setup != SetupOneCPU {
		r.jobs()
	}
	return nil
}

func (r *runner) oneQueue() {
	d := r.runtime(firstRuntime)
	n := r.rounds(firstRounds)
	for round := range n {
		r.say("half of one queue's I/O polled, round %d of %d", round+1, n)
		key := Key{Case: CaseHalf, Target: TargetStripe, Polling: Mixed, NumJobs: 1, IODepth: 1}
		r.pollux(key, round+1, nil, d, r.Devices[:2], "--rw=randread", "--bs=4k", "--iodepth=1", "--hipri=50%",
			"--size="+size, "--runtime="+d.String())
	}
	d, n = r.runtime(aloneRuntime), r.rounds(rivalRounds)
	for round := range n {
		r.say("one job on one drive, pollux and fio, round %d of %d", round+1, n)
		for _, polling := range inTurn(round, Off, On) {
			asked := map[string]string{"": polling}
			key := Key{Case: CaseAlone, Target: TargetDrive, Polling: polling, NumJobs: 1, IODepth: 1}
			r.pollux(key, round+1, asked, d, r.Devices[:1], "--rw=randread", "--bs=4k", "--iodepth=1", "--hipri="+polling,
				"--size="+size, "--runtime="+d.String())
			r.fio(key, round+1, asked, d, words("--name=alone --filename=%s --size=%s --direct=1 --ioengine=pvsync2 --hipri=%s --rw=randread --bs=4k --runtime=%s --time_based --iodepth=1 --norandommap",
				r.Devices[0], size, number(polling), milliseconds(d))...)
		}
	}
}

func (r *runner) jobs() {
	d, n := r.runtime(firstRuntime), r.rounds(firstRounds)
	for round := range n {
		r.say("one job that polls beside one that does not, round %d of %d", round+1, n)
		r.published(CaseTwo, 1, round+1, d)
	}
	d, n = r.runtime(tenRuntime), r.rounds(rivalRounds)
	for round := range n {
		r.say("the published 5 + 5 jobs, pollux and fio, round %d of %d", round+1, n)
		r.published(CaseTen, 5, round+1, d)
		key := Key{Case: CaseTen, Target: TargetDrive, Polling: Mixed, NumJobs: 5, IODepth: 1}
		// The published engine became pvsync2, and its polling an option of it.
		options := append(words(lowpri, r.Devices[0], size, milliseconds(d), 5),
			words(hipri+" --hipri=1", r.Devices[0], size, "pvsync2", milliseconds(d), 5)...)
		r.fio(key, round+1, bothJobs, d, options...)
	}
}

// published runs the published jobs, so many of each kind, with pollux.
func (r *runner) published(name string, jobs, round int, d time.Duration) {
	key := Key{Case: name, Target: TargetStripe, Polling: Mixed, NumJobs: jobs, IODepth: 1}
	options := append(words(lowpri, "DEVICE", size, milliseconds(d), jobs),
		words(hipri, "DEVICE", size, "pv2sync", milliseconds(d), jobs)...)
	r.pollux(key, round, bothJobs, d, r.Devices[:2], options...)
}

// milliseconds is a time as both fio and pollux read it.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// number is on or off as fio writes it.
func number(polling string) string {
	if polling == On {
		return "1"
	}
	return "0"
}

// inTurn returns things in one order in even rounds and in the other in odd ones: so
// none always comes after the same.
func inTurn[T any](round int, things ...T) []T {
	out := make([]T, 0, len(things))
	for i := range things {
		if round%2 == 1 {
			i = len(things) - 1 - i
		}
		out = append(out, things[i])
	}
	return out
}
