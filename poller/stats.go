// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"slices"

	"pollux/internal/hist"
	"pollux/internal/uring"
)

// RingBackend names what drives io_uring: pollux, or giouring with the build tag of that
// name.
const RingBackend = uring.Backend

// RingFlagNames returns the names of Gauges.RingFlags, separated by commas.
func RingFlagNames(flags uint32) string { return uring.FlagNames(flags) }

// Mode is how an I/O was completed.
type Mode uint8

const (
	// Plain is by interrupt.
	Plain Mode = iota
	// Polled is through IOPOLL rings only.
	Polled

	numModes = 2
)

// String returns the name that statistics use.
func (m Mode) String() string {
	if m == Polled {
		return "polled"
	}
	return "plain"
}

// Fallback is why pollux itself sent a HiPri request plain.
type Fallback uint8

const (
	// FallbackFlush counts flushes: an IOPOLL ring takes none.
	FallbackFlush Fallback = iota
	// FallbackNotPollable counts I/O to a drive that was allowed to be plain.
	FallbackNotPollable

	numFallbacks = 2
)

// String returns the name that statistics use.
func (f Fallback) String() string {
	if f == FallbackFlush {
		return "flush"
	}
	return "not-pollable"
}

// Stats is a snapshot of a device's counters. It is a value: the difference of
// two, by Sub, covers the time between them.
type Stats struct {
	// Name is the device's path, or the volume's name.
	Name string
	// IO is indexed by Op and Mode.
	IO [numOps][numModes]IOStats
	Counters
	Gauges
	// Err is why every request fails that the device is given from now on; nil while it
	// is good.
	Err error
	// Members are those of the devices below, in the order of their slots.
	Members []Stats
	// Stragglers says how long requests of several members waited for the last of them;
	// indexed as Members, nil where no request has several.
	Stragglers []Straggler
	// Paths says, where Members are the paths to one drive, how each is used. It is nil
	// for every other device.
	Paths []PathStats
}

// PathStats is what a multipath knows of one of its paths.
type PathStats struct {
	// Live says that I/O goes over the path; otherwise Err is why it does not.
	Live bool
	Err  error
	// InFlight is how many requests were out on it when their queues were last polled.
	InFlight int
	// Errors is how many requests it has failed in a way that is its own fault, Retries
	// how many of those were sent again over another path.
	Errors, Retries uint64
	// Changes is how many times it went from live to failed, or back.
	Changes uint64
}

// IOStats counts the I/O of one operation and mode.
type IOStats struct {
	// Latency is from Submit to the Poll or Wait that found it finished, of
	// I/O without error; its count is how many those are.
	Latency hist.Histogram
	// Bytes were moved without error.
	Bytes uint64
	// Errors is how many came back with Err, ErrorsBy how many of each ErrorClass.
	Errors   uint64
	ErrorsBy [numErrorClasses]uint64
}

// Gauges are what is so now. Sub leaves them as they are.
type Gauges struct {
	// InFlight is how many requests were out when their queues were last polled.
	InFlight int
	// Queues is how many are open, Depth how many requests all of them were granted.
	Queues, Depth int
	// FixedQueues is, on a disk, how many of Queues have their memory registered with
	// every ring, RingFlags with what flags their rings were made (io_uring_setup(2)).
	FixedQueues int
	RingFlags   uint32
}

// Straggler is about the requests of which one member was the last to be done.
type Straggler struct {
	// Requests is how many, Nanoseconds the time from the first part of each that was
	// done to the last, all together.
	Requests, Nanoseconds uint64
}

// Counters are the events that are not I/O.
type Counters struct {
	// Polls is how many times the queues were polled or woken, EmptyPolls how
	// many of those found nothing.
	Polls, EmptyPolls uint64
	// Retries is how many times an EAGAIN was submitted again.
	Retries uint64
	// Splits is how many requests were cut into several for a drive's limits.
	Splits uint64
	// Fallbacks is how many HiPri requests were sent plain, by Fallback.
	Fallbacks [numFallbacks]uint64
}

// Sub returns what happened since old, a snapshot of the same device.
func (s Stats) Sub(old Stats) Stats { return s.combine(old, hist.Histogram.Sub, sub) }

// Add returns the sum of two snapshots, of queues of the same device.
func (s Stats) Add(other Stats) Stats {
	sum := s.combine(other, hist.Histogram.Add, add)
	sum.InFlight += other.InFlight
	sum.Queues += other.Queues
	sum.Depth += other.Depth
	sum.FixedQueues += other.FixedQueues
	sum.RingFlags |= other.RingFlags
	return sum
}

func sub(a, b uint64) uint64 { return a - b }
func add(a, b uint64) uint64 { return a + b }

func (s Stats) combine(o Stats, histogram func(a, b hist.Histogram) hist.Histogram, number func(a, b uint64) uint64) Stats {
	for op := range s.IO {
		for mode := range s.IO[op] {
			a, b := &s.IO[op][mode], &o.IO[op][mode]
			a.Latency = histogram(a.Latency, b.Latency)
			a.Bytes = number(a.Bytes, b.Bytes)
			a.Errors = number(a.Errors, b.Errors)
			for class := range a.ErrorsBy {
				a.ErrorsBy[class] = number(a.ErrorsBy[class], b.ErrorsBy[class])
			}
		}
	}
	s.Polls = number(s.Polls, o.Polls)
	s.EmptyPolls = number(s.EmptyPolls, o.EmptyPolls)
	s.Retries = number(s.Retries, o.Retries)
	s.Splits = number(s.Splits, o.Splits)
	for i := range s.Fallbacks {
		s.Fallbacks[i] = number(s.Fallbacks[i], o.Fallbacks[i])
	}
	members := make([]Stats, len(s.Members))
	for i := range s.Members {
		members[i] = s.Members[i]
		if i < len(o.Members) {
			members[i] = members[i].combine(o.Members[i], histogram, number)
		}
	}
	s.Members = members
	s.Paths = combinePaths(s.Paths, o.Paths, number)
	s.Stragglers = combineStragglers(s.Stragglers, o.Stragglers, number)
	return s
}

func combineStragglers(s, o []Straggler, number func(a, b uint64) uint64) []Straggler {
	if len(s) == 0 {
		s = make([]Straggler, len(o))
	}
	all := slices.Clone(s)
	for i := range min(len(all), len(o)) {
		all[i].Requests = number(all[i].Requests, o[i].Requests)
		all[i].Nanoseconds = number(all[i].Nanoseconds, o[i].Nanoseconds)
	}
	return all
}

// combinePaths keeps what is true now of s, and counts.
func combinePaths(s, o []PathStats, number func(a, b uint64) uint64) []PathStats {
	paths := slices.Clone(s)
	for i := range min(len(s), len(o)) {
		p := &paths[i]
		p.Errors = number(p.Errors, o[i].Errors)
		p.Retries = number(p.Retries, o[i].Retries)
		p.Changes = number(p.Changes, o[i].Changes)
	}
	return paths
}
