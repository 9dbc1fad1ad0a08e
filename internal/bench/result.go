// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"syscall"
	"time"

	"pollux/internal/hist"
	"pollux/poller"
)

// Result is what one run measured.
type Result struct {
	// Job is the job with its defaults filled in.
	Job Job
	// IODepth is the depth that the device granted.
	IODepth int
	// FixedBuffers says that the memory was registered with every ring.
	FixedBuffers bool
	// Elapsed is from before the first I/O was submitted until the last came
	// back.
	Elapsed time.Duration
	// Stats are those of the device, of the run alone.
	Stats poller.Stats
	// Interrupts is how many the NVMe drives of the host raised meanwhile, if
	// InterruptsKnown.
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
func (r Result) count() uint64 {
	return r.Rates(poller.Read).IOs + r.Rates(poller.Write).IOs
}

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

func sumBelow(s poller.Stats, counter func(poller.Counters) uint64) uint64 {
	n := counter(s.Counters)
	for _, m := range s.Members {
		n += sumBelow(m, counter)
	}
	return n
}
