// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"

	"pollux/poller"
)

func TestOffsetsStayInSize(t *testing.T) {
	for _, rw := range []RW{Read, RandRead, RandWrite, RandRW} {
		for _, blocks := range []int64{1, 2, 3, 100, 1 << 40} {
			for seed := range uint64(20) {
				const bs = 4096
				o := newOffsets(Job{RW: rw, BS: bs, Size: blocks*bs + 512, Seed: seed})
				var r poller.Request
				for range 1000 {
					if o.set(&r); r.Offset < 0 || r.Offset%bs != 0 || r.Offset > (blocks-1)*bs {
						t.Fatalf("%v, %d blocks, seed %d: offset %d", rw, blocks, seed, r.Offset)
					}
				}
			}
		}
	}
}

func TestSequentialOffsetsWrapAround(t *testing.T) {
	o := newOffsets(Job{RW: Write, BS: 512, Size: 3 * 512})
	var r poller.Request
	for i := range int64(10) {
		if o.set(&r); r.Offset != i%3*512 {
			t.Fatalf("offset %d is %d", i, r.Offset)
		}
	}
}

// TestRandomOffsetsAreEven: with 64 blocks and 64,000 draws each is drawn about
// 1,000 times; 200 off would be six standard deviations.
func TestRandomOffsetsAreEven(t *testing.T) {
	var drawn [64]int
	writes := 0
	o := newOffsets(Job{RW: RandRW, BS: 512, Size: 64 * 512, Seed: 7})
	var r poller.Request
	for range 64_000 {
		o.set(&r)
		drawn[r.Offset/512]++
		if r.Op == poller.Write {
			writes++
		}
	}
	for block, n := range drawn {
		if n < 800 || n > 1200 {
			t.Errorf("block %d was drawn %d times", block, n)
		}
	}
	if writes < 31_000 || writes > 33_000 {
		t.Errorf("%d of 64,000 were writes", writes)
	}
}

func TestSeedsDiffer(t *testing.T) {
	first := make(map[int64]uint64)
	for seed := range uint64(100) {
		o := newOffsets(Job{RW: RandRead, BS: 1, Size: 1 << 50, Seed: seed})
		var r poller.Request
		o.set(&r)
		if other, ok := first[r.Offset]; ok {
			t.Errorf("seeds %d and %d begin at the same offset", seed, other)
		}
		first[r.Offset] = seed
	}
}
