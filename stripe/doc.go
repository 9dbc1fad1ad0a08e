// SPDX-License-Identifier: Apache-2.0

// Package stripe maps byte ranges of a striped volume to byte ranges of its
// members (RAID-0). It is pure arithmetic: no I/O, and no allocation on the
// mapping path.
//
// The volume is cut into chunks. Chunk c lies on member c mod n, in row c div n:
//
//	             member 0   member 1   member 2
//	row 0        chunk 0    chunk 1    chunk 2     <- one stripe
//	row 1        chunk 3    chunk 4    chunk 5
//
// A row begins at the same offset on every member. A volume of one member has
// no boundaries to cut at: its ranges map to themselves, whole.
//
// New validates once. After that no method can fail: each states what the
// caller owes it (normally what Contains checks), and is meaningless without.
// All sizes and offsets are bytes.
//
// A Geometry does not change after New, so any number of goroutines may use one.
package stripe
