// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller

// SetCaps makes d a drive that takes at most longest bytes in one piece and
// budget of them at once.
func SetCaps(d *Disk, longest int64, budget int) {
	d.caps = childCaps{aligned: longest, anywhere: longest}
	d.budget = budget
}

// SetBoundary makes d a drive whose offsets that are multiples of boundary, on
// the whole disk, no I/O may cross; d begins at start there.
func SetBoundary(d *Disk, boundary, start int64) {
	d.caps.boundary, d.caps.start = boundary, start
}
