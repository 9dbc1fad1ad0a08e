// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"io"
	"time"

	"pollux/poller"
)

// Schema numbers the structure of Report. It goes up when a key changes its
// meaning or goes away, not when one is added.
const Schema = 1

// Report is what a bench prints as JSON. Of Jobs, Rows and Verify only what was
// run is there.
type Report struct {
	// SchemaVersion is Schema, as every command prints it. Pollux.Schema was there
	// first.
	SchemaVersion int `json:"schema_version"`

	Version     string `json:"pollux version"`
	Timestamp   int64  `json:"timestamp"`
	TimestampMS int64  `json:"timestamp_ms"`
	Time        string `json:"time"`
	// Jobs are in fio's structure.
	Jobs []FioJob `json:"jobs,omitempty"`
	// Rows are those of a sweep.
	Rows   []Row     `json:"rows,omitempty"`
	Verify *Verified `json:"verify,omitempty"`
	// Compare is beside a rival.
	Compare *Compared   `json:"compare,omitempty"`
	Pollux  Environment `json:"pollux"`
}

// Environment is where the figures come from.
type Environment struct {
	Schema      int          `json:"schema"`
	RingBackend string       `json:"ring_backend"`
	Kernel      string       `json:"kernel"`
	Chunk       int64        `json:"chunk"`
	Size        int64        `json:"size"`
	BlockSize   int64        `json:"block_size"`
	Members     []MemberInfo `json:"members"`
	// Group is of all jobs together.
	Group *GroupInfo `json:"group,omitempty"`
	// SinceOpen is all I/O since the volume was opened, by operation and mode, with that
	// which was done to look at it: what its metrics tell.
	SinceOpen []Total `json:"since_open,omitempty"`
	// Ignored are the options that were accepted and did nothing.
	Ignored []string `json:"ignored,omitempty"`
	// Warnings are the lines that also went to the standard error.
	Warnings []string `json:"warnings"`
	// Error is what ended the bench, "" if nothing did.
	Error string `json:"error,omitempty"`
}

// Total is the I/O of one operation and mode.
type Total struct {
	Op       string      `json:"op"`
	Mode     string      `json:"mode"`
	TotalIOs uint64      `json:"total_ios"`
	Bytes    uint64      `json:"bytes"`
	Errors   uint64      `json:"errors"`
	CLat     FioQuantity `json:"clat_ns"`
}

// Totals are those of all operations and modes that there was I/O of.
func Totals(s poller.Stats) (all []Total) {
	for op := range s.IO {
		for mode := range s.IO[op] {
			io := s.IO[op][mode]
			if n := io.Latency.Count(); n+io.Errors > 0 {
				all = append(all, Total{poller.Op(op).String(), poller.Mode(mode).String(), n, io.Bytes, io.Errors, fioQuantity(io.Latency)})
			}
		}
	}
	return all
}

// FullBins puts the buckets of every distribution into the report, which makes fio's
// json+.
func (r *Report) FullBins() {
	for i := range r.Jobs {
		r.Jobs[i].fullBins()
	}
	for i := range r.Pollux.SinceOpen {
		r.Pollux.SinceOpen[i].CLat.fullBins()
	}
}

// MemberInfo is one drive of the volume.
type MemberInfo struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Polled bool   `json:"polled"`
	// NotPolled is why not.
	NotPolled string `json:"not_polled,omitempty"`
	// PathPolicy and Paths are of a drive that is reached over several.
	PathPolicy string     `json:"path_policy,omitempty"`
	Paths      []PathInfo `json:"paths,omitempty"`
}

// PathInfo is a path to a drive, with all that went over it since it was opened.
type PathInfo struct {
	Path       string `json:"path"`
	Controller string `json:"controller,omitempty"`
	Transport  string `json:"transport,omitempty"`
	Address    string `json:"address,omitempty"`
	// State is live or failed, Error why it is failed.
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	// Changes is how often the state changed.
	Changes   uint64 `json:"state_changes"`
	PolledIOs uint64 `json:"polled_ios"`
	PlainIOs  uint64 `json:"plain_ios"`
	Bytes     uint64 `json:"bytes"`
	InFlight  int    `json:"in_flight"`
	// Errors is how many requests the path has failed, Retries how many of those were
	// sent again over another.
	Errors  uint64      `json:"errors"`
	Retries uint64      `json:"retries"`
	CLat    FioQuantity `json:"clat_ns"`
}

// AddPaths fills in what the statistics of a drive say about its paths.
func (m *MemberInfo) AddPaths(s poller.Stats) {
	for i, p := range s.Paths {
		below := Result{Stats: s.Members[i]}
		info := PathInfo{
			Path:      s.Members[i].Name,
			State:     "live",
			Changes:   p.Changes,
			PolledIOs: below.Latency(poller.Polled).Count(),
			PlainIOs:  below.Latency(poller.Plain).Count(),
			Bytes:     below.Rates(poller.Read).Bytes + below.Rates(poller.Write).Bytes,
			InFlight:  p.InFlight,
			Errors:    p.Errors,
			Retries:   p.Retries,
			CLat:      fioQuantity(below.Latency(poller.Polled).Add(below.Latency(poller.Plain))),
		}
		if !p.Live {
			info.State = "failed"
			if p.Err != nil {
				info.Error = p.Err.Error()
			}
		}
		m.Paths = append(m.Paths, info)
	}
}

// stamp sets the time, as fio does at the end.
func (r *Report) stamp(now time.Time) {
	r.Timestamp, r.TimestampMS = now.Unix(), now.UnixMilli()
	r.Time = now.Format(time.ANSIC)
}

// WriteJSON writes the report for programs.
func (r Report) WriteJSON(w io.Writer) error {
	r.stamp(time.Now())
	r.SchemaVersion, r.Pollux.Schema = Schema, Schema
	if r.Pollux.Warnings == nil {
		r.Pollux.Warnings = []string{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
