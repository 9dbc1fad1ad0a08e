// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/internal/blockdev"
)

// part is a disk that is a part of a file of 64 blocks, each byte of which is
// known.
type part struct {
	*leaf
	path string
	file []byte // what the file must hold
	base int64
}

// newPart makes the disk of size bytes at base, which splits at longest bytes.
func newPart(t *testing.T, base, size, longest int64) *part {
	t.Helper()
	p := &part{path: filepath.Join(t.TempDir(), "disk"), file: make([]byte, 64*leafBlock), base: base}
	for i := range p.file {
		p.file[i] = byte(i>>9) ^ byte(i)
	}
	if err := os.WriteFile(p.path, p.file, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := openPart(t, p.path, OpenOptions{Write: true, Offset: base, Size: size})
	if err != nil {
		t.Fatal(err)
	}
	// As SetCaps and SetBoundary, but start is what NewDisk has made it.
	d.caps.aligned, d.caps.anywhere, d.budget = longest, longest, 64
	p.leaf = &leaf{t: t, d: d}
	t.Cleanup(func() {
		if p.queue != nil {
			if err := p.queue.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func openPart(t *testing.T, path string, opts OpenOptions) (*Disk, error) {
	t.Helper()
	opts.Polling = PollIfPossible
	d, err := Open(path, opts)
	if errors.Is(err, blockdev.ErrNoDirectIO) {
		t.Skipf("%v: set TMPDIR", err)
	}
	return d, err
}

func (p *part) open(cfg QueueConfig) {
	p.t.Helper()
	q, err := p.d.NewQueue(cfg)
	if errors.Is(err, ErrNotAllowed) {
		p.t.Skip(err)
	} else if err != nil {
		p.t.Fatal(err)
	}
	p.queue, p.q = q, (*Tree)(q.(*rootQueue)).root.(*diskQueue)
}

// do submits one request and waits for it.
func (p *part) do(r *Request) {
	p.t.Helper()
	if n, err := p.queue.Submit([]*Request{r}); n != 1 || err != nil {
		p.t.Fatalf("Submit: %d, %v", n, err)
	}
	done := make([]*Request, 1)
	if n, err := p.queue.Wait(1, done, 20*time.Second); n != 1 || err != nil || done[0] != r {
		p.t.Fatalf("Wait: %d, %v", n, err)
	}
}

// intact compares the whole file, what lies outside of the part above all.
func (p *part) intact() {
	p.t.Helper()
	got, err := os.ReadFile(p.path)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(got) != len(p.file) {
		p.t.Fatalf("the file has %d bytes, it had %d", len(got), len(p.file))
	}
	for i := range got {
		if got[i] != p.file[i] {
			p.t.Fatalf("byte %d of the file is %#x, want %#x; the part begins at %d", i, got[i], p.file[i], p.base)
		}
	}
}

// I/O of a part lands where it should, by whichever way it takes, and never
// outside.
func TestPart(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for _, c := range []struct {
		name          string
		base, size    int64
		longest       int64
		wantSize      int64
		largestBlocks int64
	}{
		{"in the middle", 8 * leafBlock, 16 * leafBlock, 16 * leafBlock, 16 * leafBlock, 8},
		{"in the middle, split", 8 * leafBlock, 16 * leafBlock, 2 * leafBlock, 16 * leafBlock, 8},
		{"from the start", 0, 16 * leafBlock, 4 * leafBlock, 16 * leafBlock, 8},
		{"to the end, by name", 40 * leafBlock, 24 * leafBlock, 4 * leafBlock, 24 * leafBlock, 8},
		{"to the end", 40 * leafBlock, 0, 4 * leafBlock, 24 * leafBlock, 8},
		{"one block", 63 * leafBlock, leafBlock, leafBlock, leafBlock, 1},
		{"all of it", 0, 0, 4 * leafBlock, 64 * leafBlock, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPart(t, c.base, c.size, c.longest)
			if l := p.d.Limits(); l.Size != c.wantSize || l.BlockSize != p.d.info.BlockSize {
				t.Fatalf("%+v", l)
			}
			p.open(QueueConfig{Depth: 4, MaxTransfer: c.largestBlocks * leafBlock})
			arena := p.q.tree.arena.Bytes()
			blocks := c.wantSize / leafBlock
			for i := range 60 {
				n := 1 + rng.Int64N(c.largestBlocks)
				at := rng.Int64N(blocks - n + 1)
				switch i { // the corners, whatever the seed
				case 0:
					at = 0
				case 1:
					at = blocks - n
				}
				buf := arena[:n*leafBlock]
				r := &Request{Op: Op(rng.IntN(2)), Flags: []Flags{0, HiPri}[rng.IntN(2)], Offset: at * leafBlock, Buf: buf}
				inFile := p.file[c.base+r.Offset:][:len(buf)]
				for j := range buf {
					buf[j] = byte(rng.Uint32())
				}
				if r.Op == Write {
					copy(inFile, buf)
				}
				p.do(r)
				if r.Err != nil || r.N != len(buf) || r.Offset != at*leafBlock {
					t.Fatalf("%v of %d blocks at %d: N %d, at %d, %v", r.Op, n, at, r.N, r.Offset, r.Err)
				}
				if !bytes.Equal(buf, inFile) {
					t.Fatalf("%v of %d blocks at %d: not the bytes of the file", r.Op, n, at)
				}
			}
			flush := &Request{Op: Flush}
			if p.do(flush); flush.Err != nil {
				t.Error(flush.Err)
			}
			p.intact()
		})
	}
}

// What a part does not have is refused, though the device has it, and the error
// says where on the device that would have been.
func TestPartRange(t *testing.T) {
	const base, size = 8 * leafBlock, 16 * leafBlock
	p := newPart(t, base, size, 4*leafBlock)
	p.open(QueueConfig{Depth: 4, MaxTransfer: 8 * leafBlock})
	arena := p.q.tree.arena.Bytes()
	for _, c := range []struct {
		offset int64
		n      int
		want   error
	}{
		{size, leafBlock, ErrRange},
		{size - leafBlock, 2 * leafBlock, ErrRange},
		{size - 4*leafBlock, 8 * leafBlock, ErrRange},
		{-leafBlock, leafBlock, ErrRange},
		{-base, leafBlock, ErrRange},
		{size + leafBlock, leafBlock, ErrRange},
		{math.MaxInt64 &^ (leafBlock - 1), leafBlock, ErrRange},
		{math.MinInt64, leafBlock, ErrRange},
		{7, leafBlock, ErrAlignment},
		{0, 7, ErrAlignment},
	} {
		for _, op := range []Op{Read, Write} {
			r := &Request{Op: op, Offset: c.offset, Buf: arena[:c.n]}
			p.do(r)
			var typed *Error
			if r.N != 0 || !errors.Is(r.Err, c.want) || !errors.As(r.Err, &typed) {
				t.Errorf("%v of %d bytes at %d: N %d, %v", op, c.n, c.offset, r.N, r.Err)
				continue
			}
			if typed.Offset != base+c.offset || typed.Path != p.path || typed.Member != -1 {
				t.Errorf("%v of %d bytes at %d: %+v", op, c.n, c.offset, typed)
			}
		}
	}
	p.intact()

	// And so does an error of the drive itself.
	r := &Request{Op: Read, Offset: 3 * leafBlock, Buf: arena[:leafBlock]}
	p.completions(r, 1)[0].Res = -int32(syscall.ENODATA)
	if n, err := p.poll(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	var typed *Error
	if !errors.As(r.Err, &typed) || typed.Offset != base+3*leafBlock || !errors.Is(r.Err, syscall.ENODATA) ||
		!strings.Contains(r.Err.Error(), "at 45056") {
		t.Errorf("medium error: %v", r.Err)
	}
}

// Offsets that no I/O may cross are those of the whole disk, not of the part.
func TestPartBoundary(t *testing.T) {
	const boundary = 4
	for base := int64(0); base <= 5; base++ {
		p := newPart(t, base*leafBlock, 32*leafBlock, 16*leafBlock)
		p.d.caps.boundary = boundary * leafBlock
		p.open(QueueConfig{Depth: 2, MaxTransfer: 12 * leafBlock})
		for at := range int64(8) {
			for n := int64(1); n <= 12; n += 1 + n/4 {
				r := &Request{Op: Write, Offset: at * leafBlock, Buf: p.q.tree.arena.Bytes()[:n*leafBlock]}
				copy(p.file[p.base+r.Offset:], r.Buf)
				if k, err := p.queue.Submit([]*Request{r}); k != 1 || err != nil {
					t.Fatal(k, err)
				}
				free := make([]bool, len(p.q.slots))
				for i := p.q.free; int(i) < len(p.q.slots); i = p.q.slots[i].next {
					free[i] = true
				}
				children := int64(0)
				for i, s := range p.q.slots {
					if free[i] {
						continue
					}
					children++
					first := p.base + r.Offset + int64(s.pos)
					if last := first + int64(s.len) - 1; first/(boundary*leafBlock) != last/(boundary*leafBlock) {
						t.Errorf("a part at block %d: a child of %d bytes at %d of the disk crosses", base, s.len, first)
					}
				}
				if want := (base+at+n-1)/boundary - (base+at)/boundary + 1; children != want {
					t.Errorf("a part at block %d: %d blocks at %d are %d children, want %d", base, n, at, children, want)
				}
				p.wait(r)
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
		}
		p.intact()
	}
	// A partition's own start counts as well.
	info := blockdev.Info{BlockSize: 512, Boundary: 128 << 10, PartStart: 96 << 10}
	caps := capsOf(info, 4096)
	caps.start += 1 << 20 // as NewDisk does
	if got := caps.next(0, 1<<20, true); got != 32<<10 {
		t.Errorf("the first child of a part at 1 MiB of a partition at 96 KiB has %d bytes, want 32 KiB", got)
	}
}

func TestBadParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 64*leafBlock), 0o600); err != nil {
		t.Fatal(err)
	}
	const whole = 64 * leafBlock
	for _, c := range []struct {
		offset, size int64
		want         error
	}{
		{-leafBlock, leafBlock, ErrRange},
		{0, -leafBlock, ErrRange},
		{0, whole + leafBlock, ErrRange},
		{leafBlock, whole, ErrRange},
		{whole, leafBlock, ErrRange},
		{whole, 0, ErrRange}, // nothing is left
		{whole + leafBlock, 0, ErrRange},
		{math.MaxInt64 &^ (leafBlock - 1), leafBlock, ErrRange},
		{leafBlock, math.MaxInt64 &^ (leafBlock - 1), ErrRange},
		{math.MinInt64, 0, ErrRange},
		{0, math.MinInt64, ErrRange},
		{1, leafBlock, ErrAlignment},
		{leafBlock, 100, ErrAlignment},
		{100, 0, ErrAlignment},
	} {
		d, err := openPart(t, path, OpenOptions{Offset: c.offset, Size: c.size})
		if err == nil {
			_ = d.Close()
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d bytes at %d: %v, want %v", c.size, c.offset, err, c.want)
		}
	}
	// The device stays the caller's when NewDisk fails, and is the disk's when not.
	dev, err := blockdev.Open(path, blockdev.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewDisk(dev, OpenOptions{Offset: 1, Polling: PollIfPossible}); !errors.Is(err, ErrAlignment) {
		t.Error(err)
	}
	d, err := NewDisk(dev, OpenOptions{Offset: leafBlock, Polling: PollIfPossible})
	if err != nil {
		t.Fatal(err)
	}
	other, err := openPart(t, path, OpenOptions{Offset: 32 * leafBlock})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Overlaps(other) {
		t.Error("two parts of one device are not told to be one drive")
	}
	for _, d := range []*Disk{d, other} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := dev.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closing the device of a disk that was closed: %v", err)
	}
}
