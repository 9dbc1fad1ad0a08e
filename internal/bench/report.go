// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"io"
	"time"
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
	// Ignored are the options that were accepted and did nothing.
	Ignored []string `json:"ignored,omitempty"`
	// Warnings are the lines that also went to the standard error.
	Warnings []string `json:"warnings"`
	// Error is what ended the bench, "" if nothing did.
	Error string `json:"error,omitempty"`
}

// MemberInfo is one drive of the volume.
type MemberInfo struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Polled bool   `json:"polled"`
	// NotPolled is why not.
	NotPolled string `json:"not_polled,omitempty"`
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
