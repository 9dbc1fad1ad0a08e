// SPDX-License-Identifier: Apache-2.0

package poller

import "pollux/internal/blockdev"

// childCaps are the longest I/O, in bytes, that the kernel sends to a drive in
// one piece. A polled I/O that needs a split never completes on Linux 6.1 and
// goes through worker threads on 6.12, so the leaf splits before the kernel
// would.
type childCaps struct {
	// aligned is for a buffer that begins on a page, anywhere for any other:
	// that one touches a page more.
	aligned, anywhere int64
	// boundary divides the offsets, from the start of the whole disk, that no
	// child may cross; 0 where there are none. start is where on the whole disk
	// the device begins.
	boundary, start int64
}

const (
	// mostAtOnce is the size above which a bio is split whatever the drive
	// takes: 256 segments of a page (BIO_MAX_VECS).
	mostAtOnce = 1 << 20
	// unknownCap is for a drive that does not tell its limits.
	unknownCap = 128 << 10
)

func capsOf(info blockdev.Info, page int64) childCaps {
	whole := info.BlockSize
	limit := int64(mostAtOnce)
	if !info.LimitsKnown {
		limit = unknownCap
	} else if info.MaxSectorsBytes > 0 {
		limit = min(limit, info.MaxSectorsBytes)
	}
	caps := childCaps{aligned: limit, anywhere: limit}
	if info.LimitsKnown && info.MaxSegments > 0 {
		caps.aligned = min(limit, info.MaxSegments*page)
		caps.anywhere = min(limit, (info.MaxSegments-1)*page)
	}
	// A child must be whole blocks; every drive takes one of them.
	caps.aligned = max(caps.aligned/whole, 1) * whole
	caps.anywhere = max(caps.anywhere/whole, 1) * whole
	if b := info.Boundary; b >= whole && b%whole == 0 {
		caps.boundary, caps.start = b, info.PartStart
	}
	return caps
}

// single returns up to which length a request is one child wherever it begins.
func (c childCaps) single() int64 {
	if c.boundary != 0 {
		return 0
	}
	return c.anywhere
}

// next returns the length of the child of n bytes or less that begins at an
// offset of the device; aligned says that its buffer, and every one before it,
// began on a page.
func (c childCaps) next(offset, n int64, aligned bool) int64 {
	limit := c.anywhere
	if aligned && c.boundary == 0 {
		limit = c.aligned
	}
	if c.boundary != 0 {
		limit = min(limit, c.boundary-(c.start+offset)%c.boundary)
	}
	return min(limit, n)
}

// count returns how many children a request of n bytes may become at most. Each
// stretch between two boundaries may end with a child that is not full, and
// there is one stretch more than boundaries fit into the request.
func (c childCaps) count(n int64) int {
	children := ceilDiv(n, c.anywhere)
	if c.boundary != 0 {
		children += ceilDiv(n, c.boundary)
	}
	return int(children)
}

// budget returns a drive's budget of tags as requests of a unit, of which a
// longer one takes several: those that count says fit.
func (c childCaps) budget(tags int) (depth int, unit int64) {
	if c.boundary == 0 {
		return tags, c.anywhere
	}
	return tags / 2, min(c.anywhere, c.boundary)
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
