// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"

	"pollux/poller"
)

func TestOffsetsStayInSize(t *testing.T) {
	for _, rw := range []RW{Read, RandRead, RandWrite, RandRW} {
		for _, blocks := range []int64{1, 2, 3, 100, 1 << 40} {
			for seed := range uint64(20) {
				const bs = 4096
				o := newOffsets(Job{RW: rw, BS: bs, Size: blocks*bs + 512, Seed: seed}, 0)
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
	o := newOffsets(Job{RW: Write, BS: 512, Size: 3 * 512}, 0)
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
	o := newOffsets(Job{RW: RandRW, RWMixRead: 50, BS: 512, Size: 64 * 512, Seed: 7}, 0)
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
		o := newOffsets(Job{RW: RandRead, BS: 1, Size: 1 << 50, Seed: seed}, 0)
		var r poller.Request
		o.set(&r)
		if other, ok := first[r.Offset]; ok {
			t.Errorf("seeds %d and %d begin at the same offset", seed, other)
		}
		first[r.Offset] = seed
	}
}

// Goroutines of one job draw other offsets, and so do those of another seed.
func TestJobsDrawOtherOffsets(t *testing.T) {
	seen := make(map[int64]string)
	for seed := range uint64(10) {
		for number := range 20 {
			o := newOffsets(Job{RW: RandRead, BS: 1, Size: 1 << 50, Seed: seed}, number)
			var r poller.Request
			o.set(&r)
			who := fmt.Sprintf("seed %d, job %d", seed, number)
			if other, ok := seen[r.Offset]; ok {
				t.Errorf("%s and %s begin at the same offset", who, other)
			}
			seen[r.Offset] = who
		}
	}
}

// What varies does so in the shares that were asked for, and each of them
// independently of the others and of the block. Of 100,000 lots 700 off would be
// more than four standard deviations.
func TestVariedShares(t *testing.T) {
	const draws = 100_000
	job := Job{
		RW: RandRW, RWMixRead: 70, HiPri: 25, Offset: 1 << 20, Size: 1 << 20, DSync: true, NoWait: true,
		BSSplit: [2][]SizeShare{{{512, 10}, {4096, 90}}, {{8192, 100}}},
	}
	o := newOffsets(job, 3)
	r := poller.Request{Buf: make([]byte, 8192)}
	var reads, small, polled, polledReads, half int
	for range draws {
		r.Buf = r.Buf[:cap(r.Buf)]
		o.set(&r)
		if r.Offset < job.Offset || r.Offset%512 != 0 || r.Offset+int64(len(r.Buf)) > job.Offset+job.Size {
			t.Fatalf("%d bytes at %d", len(r.Buf), r.Offset)
		}
		if r.Offset < job.Offset+job.Size/2 {
			half++
		}
		hipri := r.Flags&poller.HiPri != 0
		if hipri {
			polled++
		}
		if r.Flags&poller.NoWait == 0 || r.Flags&poller.FUA != 0 != (r.Op == poller.Write) {
			t.Fatalf("%v with flags %b", r.Op, r.Flags)
		}
		switch {
		case r.Op == poller.Write && len(r.Buf) != 8192, r.Op == poller.Read && len(r.Buf) != 512 && len(r.Buf) != 4096:
			t.Fatalf("%v of %d bytes", r.Op, len(r.Buf))
		case r.Op == poller.Read:
			reads++
			if len(r.Buf) == 512 {
				small++
			}
			if hipri {
				polledReads++
			}
		}
	}
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"reads", reads, draws * 70 / 100},
		{"small reads", small, draws * 7 / 100},
		{"polled", polled, draws / 4},
		{"polled reads", polledReads, draws * 70 / 400},
		{"in the first half", half, draws / 2},
	} {
		if c.got < c.want-700 || c.got > c.want+700 {
			t.Errorf("%s: %d of %d, want about %d", c.what, c.got, draws, c.want)
		}
	}
}

// Sizes that differ follow each other without a gap where offsets count up.
func TestSequentialSizesThatDiffer(t *testing.T) {
	o := newOffsets(Job{RW: Read, BS: 4096, Size: 64 << 10, BSSplit: [2][]SizeShare{{{512, 50}, {4096, 50}}, nil}}, 0)
	r := poller.Request{Buf: make([]byte, 4096)}
	want, wraps := int64(0), 0
	for range 1000 {
		r.Buf = r.Buf[:cap(r.Buf)]
		o.set(&r)
		if want+int64(len(r.Buf)) > 64<<10 {
			want = 0
			wraps++
		}
		if r.Offset != want {
			t.Fatalf("offset %d, want %d", r.Offset, want)
		}
		want += int64(len(r.Buf))
	}
	if wraps < 10 {
		t.Errorf("it began again %d times", wraps)
	}
}
