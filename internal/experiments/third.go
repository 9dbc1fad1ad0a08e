// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"strings"
	"time"

	"pollux/internal/fabric"
)

// fabricDisk is what the lab exports: in memory, and it keeps what is written.
const fabricDisk = "/dev/nullb0"

const (
	thirdRounds  = 3
	thirdRuntime = time.Second
)

// workload is a column of the published table.
type workload struct{ jobs, depth, batch int }

var workloads = []workload{{1, 1, 1}, {1, 32, 8}, {16, 32, 8}}

// publishedLine is the published option line, with its polling, depth, batch and runtime
// made variable; size and norandommap are added: what is read was written before, and
// both programs draw offsets alike.
const publishedLine = "--time_based --runtime=%s --thread --rw=randread --refill_buffers --direct=1 --ioengine=io_uring --hipri=%s --fixedbufs --bs=4k --iodepth=%d --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=32 --iodepth_batch=%d --group_reporting --gtod_reduce=0 --disable_lat=0 --numjobs=%d --size=" + size + " --norandommap"

// third measures what the paths of this boot's machine lead to: the drive, through the
// native head, or over one of two paths and over both, joined by pollux; and in the lab the same of a drive over TCP.
func (r *runner) third() error {
	local, remote := TargetPath, TargetTCPPath
	paths := 1
	if r.Setup == SetupMultipath {
		local, remote, paths = TargetHead, TargetTCPHead, 2
	}
	if r.Setup == SetupHost && hasHead(r.Devices[0]) {
		local = TargetHead
	}
	r.boot.Guest.IOPolicy = attribute(blockName(r.Devices[0]), "device/iopolicy")
	// Both paths, which the kernel has left for others to join.
	joined := ""
	if r.Setup == SetupNoHead && len(r.Devices) > 1 {
		joined = strings.Join(r.Devices[:2], ",")
	}
	n := r.rounds(thirdRounds)
	d := r.runtime(thirdRuntime)
	tcp := ""
	if r.Setup != SetupHost {
		f, err := fabric.Connect(fabricDisk, paths)
		if err != nil {
			return err
		}
		tcp = f
		if err := r.fillDevice(tcp); err != nil {
			return err
		}
	}
	for round := range n {
		r.say("%s: round %d of %d", local, round+1, n)
		for _, w := range workloads {
			for _, polling := range inTurn(round, Off, On) {
				r.path(local, r.Devices[0], w, polling, round+1, d)
				if joined != "" {
					r.path(TargetJoined, joined, w, polling, round+1, d)
				}
				if tcp != "" {
					r.path(remote, tcp, w, polling, round+1, d)
				}
			}
		}
	}
	r.say("%s: fio", local)
	for _, w := range workloads {
		for _, polling := range []string{Off, On} {
			key := Key{Case: CasePaths, Target: local, Polling: polling, NumJobs: w.jobs, IODepth: w.depth, Batch: w.batch}
			r.fio(key, 1, map[string]string{"": polling}, d, append([]string{"--name=paths", "--filename=" + r.Devices[0]},
				words(publishedLine, milliseconds(d), number(polling), w.depth, w.batch, w.jobs)...)...)
		}
	}
	return nil
}

// path measures one workload with pollux.
func (r *runner) path(target, device string, w workload, polling string, round int, d time.Duration) {
	key := Key{Case: CasePaths, Target: target, Polling: polling, NumJobs: w.jobs, IODepth: w.depth, Batch: w.batch}
	r.pollux(key, round, map[string]string{"": polling}, d, []string{device},
		words(publishedLine, milliseconds(d), number(polling), w.depth, w.batch, w.jobs)...)
	if n := len(r.boot.Samples); n > 0 && (target == TargetTCPPath || target == TargetTCPHead) {
		// A network has none of them: a count of 0 would say nothing.
		r.boot.Samples[n-1].Interrupts = nil
	}
}

// hasHead says that a device is one that the kernel joins paths in: its parent is then a
// subsystem and no controller.
func hasHead(device string) bool { return attribute(blockName(device), "device/iopolicy") != "" }
