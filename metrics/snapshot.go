// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"pollux/internal/hist"
	"pollux/poller"
)

// Snapshot is the Stats of a device as /stats has them, for programs that look more
// closely than Prometheus does: every bucket there is.
type Snapshot struct {
	Name     string       `json:"name"`
	Up       bool         `json:"up"`
	Error    string       `json:"error"`
	InFlight int          `json:"in_flight"`
	Depth    int          `json:"queue_depth"`
	Polls    uint64       `json:"polls"`
	Empty    uint64       `json:"empty_polls"`
	IO       []SnapshotIO `json:"io"`
	// StragglerNS and Stragglers are the member's in its volume.
	StragglerNS uint64     `json:"straggler_ns"`
	Stragglers  uint64     `json:"straggler_requests"`
	Members     []Snapshot `json:"members"`
}

// SnapshotIO is the I/O of one operation and mode. There is none where nothing happened.
type SnapshotIO struct {
	Op     string `json:"op"`
	Mode   string `json:"mode"`
	Bytes  uint64 `json:"bytes"`
	Errors uint64 `json:"errors"`
	SumNS  uint64 `json:"sum_ns"`
	// Buckets are pairs of index and count, of the buckets of internal/hist that have any.
	Buckets [][2]uint64 `json:"buckets"`
}

// SnapshotOf makes a snapshot of statistics.
func SnapshotOf(s poller.Stats) Snapshot {
	out := Snapshot{Name: s.Name, Up: s.Err == nil, InFlight: s.InFlight, Depth: s.Depth, Polls: s.Polls, Empty: s.EmptyPolls,
		IO: []SnapshotIO{}, Members: []Snapshot{}}
	if s.Err != nil {
		out.Error = s.Err.Error()
	}
	for op := range s.IO {
		for mode := range s.IO[op] {
			io := &s.IO[op][mode]
			if io.Latency.Buckets == nil && io.Errors == 0 {
				continue
			}
			entry := SnapshotIO{Op: poller.Op(op).String(), Mode: poller.Mode(mode).String(), Bytes: io.Bytes, Errors: io.Errors,
				SumNS: io.Latency.Sum, Buckets: [][2]uint64{}}
			for i, n := range io.Latency.Buckets {
				if n > 0 {
					entry.Buckets = append(entry.Buckets, [2]uint64{uint64(i), n})
				}
			}
			out.IO = append(out.IO, entry)
		}
	}
	for i, m := range s.Members {
		member := SnapshotOf(m)
		if i < len(s.Stragglers) {
			member.StragglerNS, member.Stragglers = s.Stragglers[i].Nanoseconds, s.Stragglers[i].Requests
		}
		out.Members = append(out.Members, member)
	}
	return out
}

// Latency returns the histogram of an operation and mode. What makes no sense in it is
// left out: it may come from another program.
func (io SnapshotIO) Latency() hist.Histogram {
	h := hist.Histogram{Sum: io.SumNS}
	for _, b := range io.Buckets {
		if b[0] >= hist.NumBuckets {
			continue
		}
		if h.Buckets == nil {
			h.Buckets = make([]uint64, hist.NumBuckets)
		}
		h.Buckets[b[0]] += b[1]
	}
	return h
}
