// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"pollux/internal/blockdev"
)

// checkSplit cuts a request as acceptSplit does and checks every child.
func checkSplit(t *testing.T, c childCaps, block, offset, n int64, aligned bool) {
	t.Helper()
	children := 0
	for pos := int64(0); pos < n; children++ {
		length := c.next(offset+pos, n-pos, aligned)
		first, last := c.start+offset+pos, c.start+offset+pos+length-1
		if length < 1 || length%block != 0 || length > n-pos || length > max(c.aligned, c.anywhere) ||
			!aligned && length > c.anywhere || c.boundary != 0 && first/c.boundary != last/c.boundary {
			t.Fatalf("%+v: a child of %d bytes at %d of the disk, of a request of %d at %d", c, length, first, n, offset)
		}
		pos += length
	}
	if most := c.count(n); children > most {
		t.Fatalf("%+v: %d bytes at %d are %d children, counted as %d", c, n, offset, children, most)
	}
	if n <= c.single() && children != 1 {
		t.Fatalf("%+v: %d bytes at %d are %d children, not a single one", c, n, offset, children)
	}
}

// checkBudget checks that what Limits promises fits into the tags: a request of
// MaxTransfer, and the requests of one Unit that QueueDepth says.
func checkBudget(t *testing.T, c childCaps, tags int) {
	t.Helper()
	depth, unit := c.budget(tags)
	if c.boundary == 0 && depth != tags || depth > tags || unit < 1 {
		t.Fatalf("%+v: %d tags are %d requests of %d bytes", c, tags, depth, unit)
	}
	for k := 1; k <= depth; k++ {
		// One request of k units takes k of the budget.
		if most := c.count(int64(k) * unit); depth/k*most > tags {
			t.Fatalf("%+v: %d requests of %d units are %d children each, there are %d tags", c, depth/k, k, most, tags)
		}
	}
}

// No child crosses an offset that the drive does not let it cross, wherever on
// the disk the partition begins; and there are never more than were reserved.
func TestBoundaryIsNotCrossed(t *testing.T) {
	// In blocks of one byte, all there is of what is small.
	for boundary := int64(0); boundary <= 7; boundary++ {
		for anywhere := int64(1); anywhere <= 6; anywhere++ {
			for _, more := range []int64{0, 1} {
				for start := range max(boundary, 1) {
					c := childCaps{aligned: anywhere + more, anywhere: anywhere, boundary: boundary, start: start}
					for offset := range max(boundary, 1) * 2 {
						for n := int64(1); n <= 20; n++ {
							checkSplit(t, c, 1, offset, n, false)
							checkSplit(t, c, 1, offset, n, true)
						}
					}
					for tags := 2; tags <= 24; tags++ {
						checkBudget(t, c, tags)
					}
				}
			}
		}
	}
	// And drives as they are, at random.
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		block := int64(512) << (rng.IntN(2) * 3)
		info := blockdev.Info{
			BlockSize: block, LimitsKnown: true,
			MaxSectorsBytes: (rng.Int64N(256) + 1) << 12, MaxSegments: rng.Int64N(129) + 1,
			Boundary: rng.Int64N(512) * 512, PartStart: rng.Int64N(1<<30) * 512,
		}
		c := capsOf(info, 4096)
		if want := info.Boundary >= block && info.Boundary%block == 0; want != (c.boundary != 0) {
			t.Fatalf("boundary %d of a drive of %d-byte blocks becomes %d", info.Boundary, block, c.boundary)
		}
		// A whole disk's start is 0, a partition's any multiple of a block.
		c.start = c.start / block * block
		checkSplit(t, c, block, rng.Int64N(1<<31)*block, (rng.Int64N(1<<21/block)+1)*block, rng.IntN(2) == 0)
		checkBudget(t, c, rng.IntN(255)+2)
	}
}

// A file made a drive that no I/O may cross 3 blocks of, and whose partition
// begins one block into them: the bytes are right, the children as many as they
// must be, and none crosses.
func TestBoundaryOnDisk(t *testing.T) {
	const tags, boundary, start, largest = 64, 3, 1, 16
	l := newLeaf(t, QueueConfig{Depth: 1, MaxTransfer: leafBlock})
	if err := l.queue.Close(); err != nil {
		t.Fatal(err)
	}
	SetCaps(l.d, 2*leafBlock, tags)
	SetBoundary(l.d, boundary*leafBlock, start*leafBlock)

	limits := l.d.Limits()
	largestQueue, err := l.d.NewQueue(QueueConfig{Depth: 1, MaxTransfer: limits.MaxTransfer})
	if err != nil {
		t.Fatalf("a queue for one request of the disk's MaxTransfer %d: %v", limits.MaxTransfer, err)
	}
	if err := largestQueue.Close(); err != nil {
		t.Fatal(err)
	}

	queue, err := l.d.NewQueue(QueueConfig{Depth: 2, MaxTransfer: largest * leafBlock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := queue.Close(); err != nil {
			t.Error(err)
		}
	}()
	q := (*Tree)(queue.(*rootQueue)).root.(*diskQueue)
	done := make([]*Request, 1)
	do := func(r *Request) (children int) {
		t.Helper()
		if n, err := queue.Submit([]*Request{r}); n != 1 || err != nil {
			t.Fatalf("Submit of %d bytes at %d: %d, %v", len(r.Buf), r.Offset, n, err)
		}
		children = len(q.slots) - q.nfree
		free := make([]bool, len(q.slots))
		for i := q.free; int(i) < len(q.slots); i = q.slots[i].next {
			free[i] = true
		}
		for i, s := range q.slots {
			first := start*leafBlock + r.Offset + int64(s.pos)
			last := first + int64(s.len) - 1
			if !free[i] && first/(boundary*leafBlock) != last/(boundary*leafBlock) {
				t.Errorf("a child of %d bytes at %d of the disk crosses", s.len, first)
			}
		}
		if n, err := queue.Wait(1, done, -1); n != 1 || err != nil || r.Err != nil || r.N != len(r.Buf) {
			t.Fatalf("Wait: %d, %v; %v", n, err, r.Err)
		}
		return children
	}
	arena := q.tree.arena.Bytes()
	want := make([]byte, 64*leafBlock)
	for n := int64(1); n <= largest; n++ {
		for block := range int64(8) {
			buf := arena[:n*leafBlock]
			for i := range buf {
				buf[i] = byte(n) + byte(block)<<5 + byte(i>>12)
			}
			r := &Request{Op: Write, Offset: block * leafBlock, Buf: buf}
			copy(want[r.Offset:], buf)
			// The fewest that there can be: stretches in pieces of 2 blocks.
			fewest := 0
			for pos := block + start; pos < block+start+n; fewest++ {
				pos += min(2, boundary-pos%boundary, block+start+n-pos)
			}
			if got := do(r); got != fewest {
				t.Errorf("%d blocks at %d: %d children, want %d", n, block, got, fewest)
			}
		}
	}
	got, err := os.ReadFile(l.d.info.Path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the file holds other bytes than were written")
	}
	read := &Request{Op: Read, Offset: 2 * leafBlock, Buf: arena[:largest*leafBlock]}
	clear(read.Buf)
	do(read)
	if !bytes.Equal(read.Buf, want[2*leafBlock:][:largest*leafBlock]) {
		t.Error("read other bytes than the file holds")
	}
	if d := queue.Limits().QueueDepth; d != 2 {
		t.Errorf("granted %d requests, want 2", d)
	}
}
