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
	return caps
}

// count returns how many children a request of n bytes may become.
func (c childCaps) count(n int64) int {
	return int((n + c.anywhere - 1) / c.anywhere)
}
