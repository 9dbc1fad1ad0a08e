// SPDX-License-Identifier: Apache-2.0

package uring

// MaxEntries is the kernel's limit for a submission ring (IORING_MAX_ENTRIES).
const MaxEntries = 32768

// Config asks for a ring.
type Config struct {
	// Entries is the size of the submission ring; the kernel rounds it up to a
	// power of two. More than MaxEntries is cut to that.
	Entries uint32
	// CQEntries is the size of the completion ring; 0 means twice Entries.
	CQEntries uint32
	// IOPoll makes a ring whose I/O is polled for: it takes reads, writes and
	// NOPs alone, and completions appear only by Enter.
	IOPoll bool

	// stopAtBad leaves SUBMIT_ALL out, for tests: a bad entry is the one sure
	// way to make the kernel take fewer entries than it was offered.
	stopAtBad bool
}
