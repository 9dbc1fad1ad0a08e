// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller

import (
	"testing"

	"pollux/internal/blockdev"
)

// Case 8, the arithmetic: what the kernel would split is split before.
func TestCapsOf(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, c := range []struct {
		name              string
		info              blockdev.Info
		page              int64
		aligned, anywhere int64
	}{
		{"limits unknown", blockdev.Info{BlockSize: 512}, 4 * kib, 128 * kib, 128 * kib},
		{"limits unknown, figures to be ignored", blockdev.Info{BlockSize: 512, MaxSectorsBytes: 4 * kib, MaxSegments: 2}, 4 * kib, 128 * kib, 128 * kib},
		{"max_sectors_kb decides", blockdev.Info{BlockSize: 512, LimitsKnown: true, MaxSectorsBytes: 128 * kib, MaxSegments: 128}, 4 * kib, 128 * kib, 128 * kib},
		{"segments decide", blockdev.Info{BlockSize: 512, LimitsKnown: true, MaxSectorsBytes: 512 * kib, MaxSegments: 33}, 4 * kib, 132 * kib, 128 * kib},
		{"segments decide where the buffer is off a page", blockdev.Info{BlockSize: 512, LimitsKnown: true, MaxSectorsBytes: 512 * kib, MaxSegments: 128}, 4 * kib, 512 * kib, 508 * kib},
		{"never above 1 MiB", blockdev.Info{BlockSize: 512, LimitsKnown: true, MaxSectorsBytes: 8 * mib, MaxSegments: 4096}, 4 * kib, mib, mib},
		{"256 segments", blockdev.Info{BlockSize: 4 * kib, LimitsKnown: true, MaxSectorsBytes: 8 * mib, MaxSegments: 256}, 4 * kib, mib, mib - 4*kib},
		{"not a whole number of blocks", blockdev.Info{BlockSize: 4 * kib, LimitsKnown: true, MaxSectorsBytes: 127 * kib, MaxSegments: 128}, 4 * kib, 124 * kib, 124 * kib},
		{"pages of 64 KiB", blockdev.Info{BlockSize: 512, LimitsKnown: true, MaxSectorsBytes: 512 * kib, MaxSegments: 5}, 64 * kib, 320 * kib, 256 * kib},
		{"one segment", blockdev.Info{BlockSize: 512, LimitsKnown: true, MaxSectorsBytes: 512 * kib, MaxSegments: 1}, 4 * kib, 4 * kib, 512},
		{"less than a block", blockdev.Info{BlockSize: 4 * kib, LimitsKnown: true, MaxSectorsBytes: 2 * kib, MaxSegments: 1}, 4 * kib, 4 * kib, 4 * kib},
		{"no segment limit told", blockdev.Info{BlockSize: 512, LimitsKnown: true, MaxSectorsBytes: 256 * kib}, 4 * kib, 256 * kib, 256 * kib},
		{"no length limit told", blockdev.Info{BlockSize: 512, LimitsKnown: true, MaxSegments: 1000}, 4 * kib, mib, mib},
	} {
		caps := capsOf(c.info, c.page)
		if caps.aligned != c.aligned || caps.anywhere != c.anywhere {
			t.Errorf("%s: %d aligned and %d anywhere, want %d and %d", c.name, caps.aligned, caps.anywhere, c.aligned, c.anywhere)
		}
	}
}

// For any limits: a child is whole blocks, at least one, and touches no more
// pages than the drive has segments unless one block alone does.
func TestCapsOfProperties(t *testing.T) {
	const page = 4 << 10
	for _, block := range []int64{512, 4096} {
		for segments := int64(1); segments <= 300; segments++ {
			for sectors := block; sectors <= 3<<20; sectors += 37 * 512 {
				caps := capsOf(blockdev.Info{BlockSize: block, LimitsKnown: true, MaxSectorsBytes: sectors, MaxSegments: segments}, page)
				for name, n := range map[string]int64{"aligned": caps.aligned, "anywhere": caps.anywhere} {
					if n < block || n%block != 0 || n > mostAtOnce {
						t.Fatalf("%s: %d bytes in blocks of %d", name, n, block)
					}
					if n > block && n > sectors {
						t.Fatalf("%s: %d bytes where max_sectors is %d", name, n, sectors)
					}
				}
				if caps.anywhere > caps.aligned {
					t.Fatalf("%+v", caps)
				}
				// The worst position begins with the last byte of a page.
				if pages := (caps.aligned + page - 1) / page; pages > segments {
					t.Fatalf("aligned: %d pages, %d segments", pages, segments)
				}
				if pages := (caps.anywhere-2)/page + 2; caps.anywhere > block && pages > segments {
					t.Fatalf("anywhere: %d bytes touch %d pages, %d segments", caps.anywhere, pages, segments)
				}
			}
		}
	}
}

func TestCapsCount(t *testing.T) {
	caps := childCaps{aligned: 132 << 10, anywhere: 128 << 10}
	for n, want := range map[int64]int{512: 1, 128 << 10: 1, 128<<10 + 512: 2, 1 << 20: 8, 1<<20 + 512: 9} {
		if got := caps.count(n); got != want {
			t.Errorf("%d bytes: %d children, want %d", n, got, want)
		}
	}
}
