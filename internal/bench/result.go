// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"syscall"
	"time"

	"pollux/internal/hist"
	"pollux/poller"
)

// Group is what jobs that ran at once measured together.
type Group struct {
	// Results are those of the jobs, in their order.
	Results []Result
	// Elapsed, Stats (of the device) and Interrupts are from when the last ramp time
	// was over until all jobs had ended.
	Elapsed         time.Duration
	Stats           poller.Stats
	Interrupts      uint64
	InterruptsKnown bool
	Workers         int
	NotPollable     error
	Interrupted     bool
}

// Result is what one job measured.
type Result struct {
	// Job is the job with its defaults filled in.
	Job Job
	// IODepth is the depth that the device granted, to each of NumJobs.
	IODepth int
	// FixedBuffers says that the memory was registered with every ring.
	FixedBuffers bool
	// Elapsed is from before the first I/O was submitted until the last came
	// back.
	Elapsed time.Duration
	// Stats are those of the job's queues; with Members, which are counted by the
	// device as a whole, where no other job ran beside it.
	Stats poller.Stats
	// IOsPerJob is how many I/Os each of NumJobs did.
	IOsPerJob []uint64
	// Samples are rates in the course of the run, by operation.
	Samples [2]Samples
	// Beside says that other jobs ran at the same time.
	Beside bool
	// Interrupts is how many the NVMe drives of the host raised meanwhile, if
	// InterruptsKnown, which they are where no other job ran beside it.
	Interrupts      uint64
	InterruptsKnown bool
	// Workers is how many io_uring worker threads the process had at the end.
	Workers int
	// NotPollable is why HiPri I/O to the device is not polled, nil if it is.
	NotPollable error
	// Errno is of the error that ended the run, EIO where it has none, 0 if there
	// was no error.
	Errno syscall.Errno
	// Interrupted says that the run was ended from outside.
	Interrupted bool
}

// Rates are the figures of one operation.
type Rates struct {
	IOs, Bytes, Errors uint64
	// Polled is how many of IOs were.
	Polled  uint64
	Latency hist.Histogram
	// IOPS and BytesPerSecond are over the whole Elapsed of the run.
	IOPS, BytesPerSecond float64
}

// Rates returns the figures of reads or of writes.
func (r Result) Rates(op poller.Op) Rates {
	plain, polled := r.Stats.IO[op][poller.Plain], r.Stats.IO[op][poller.Polled]
	out := Rates{
		Bytes:   plain.Bytes + polled.Bytes,
		Errors:  plain.Errors + polled.Errors,
		Polled:  polled.Latency.Count(),
		Latency: plain.Latency.Add(polled.Latency),
	}
	out.IOs = out.Latency.Count()
	if s := r.Elapsed.Seconds(); s > 0 {
		out.IOPS = float64(out.IOs) / s
		out.BytesPerSecond = float64(out.Bytes) / s
	}
	return out
}

// count returns how many I/Os the statistics have, of those without error.
func (r Result) count() uint64 { return ioCount(r.Stats) }

// InterruptsPerIO returns the NVMe interrupts per I/O, false if unknown.
func (r Result) InterruptsPerIO() (float64, bool) {
	n := r.count()
	if n == 0 || !r.InterruptsKnown {
		return 0, false
	}
	return float64(r.Interrupts) / float64(n), true
}

// Fallbacks returns how many HiPri requests pollux sent plain, by reason, on the
// device and all below it.
func (r Result) Fallbacks() map[string]uint64 {
	out := make(map[string]uint64)
	for why := range r.Stats.Fallbacks {
		out[poller.Fallback(why).String()] = r.sum(func(c poller.Counters) uint64 { return c.Fallbacks[why] })
	}
	return out
}

// sum adds up a counter of the device and of all below it.
func (r Result) sum(counter func(poller.Counters) uint64) uint64 { return sumBelow(r.Stats, counter) }

// splitsByDrives counts requests that were cut for a drive's limits. What a volume cuts
// at its chunks is something else.
func splitsByDrives(s poller.Stats) (n uint64) {
	if len(s.Members) == 0 {
		return s.Splits
	}
	for _, m := range s.Members {
		n += splitsByDrives(m)
	}
	return n
}

func sumBelow(s poller.Stats, counter func(poller.Counters) uint64) uint64 {
	n := counter(s.Counters)
	for _, m := range s.Members {
		n += sumBelow(m, counter)
	}
	return n
}
