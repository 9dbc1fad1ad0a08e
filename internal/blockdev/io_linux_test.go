// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// filled makes a file of random bytes and returns them too.
func filled(t *testing.T, rng *rand.Rand, size int64) (path string, content []byte) {
	t.Helper()
	content = make([]byte, size)
	for i := range content {
		content[i] = byte(rng.Uint32())
	}
	path = scratch(t, 0)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// A device reads what an os.File does, at any offset and length, up to the last
// whole block.
func TestReadAt(t *testing.T) {
	rng := rand.New(rand.NewPCG(signatureSeed(t), 0))
	path, _ := filled(t, rng, 300<<10+700)
	d := mustOpen(t, path, Mode{})
	size, block := d.Size(), d.Info().BlockSize
	if size > 300<<10+700 || size <= 300<<10+700-block || size%block != 0 {
		t.Fatalf("size %d, block %d", size, block)
	}
	if err := os.Truncate(path, size); err != nil { // so that both end there
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	check := func(off, n int64) {
		t.Helper()
		got, want := bytes.Repeat([]byte{0xaa}, int(n)), bytes.Repeat([]byte{0xaa}, int(n))
		m, err := d.ReadAt(got, off)
		wm, werr := f.ReadAt(want, off)
		if m != wm || !bytes.Equal(got, want) || !errors.Is(err, werr) || (err == nil) != (werr == nil) {
			t.Fatalf("%d bytes at %d of %d: %d, %v; a file gives %d, %v; same bytes: %v", n, off, size, m, err, wm, werr, bytes.Equal(got, want))
		}
	}
	for _, off := range []int64{0, 1, block - 1, block, block + 1, size - block - 1, size - block, size - 1, size, size + 1, 2 * size} {
		for _, n := range []int64{0, 1, 2, block - 1, block, block + 1, 3*block + 5, size, size + block} {
			check(off, n)
		}
	}
	for range 200 {
		check(rng.Int64N(size+2*block), rng.Int64N(1+rng.Int64N(size)))
	}
	for _, off := range []int64{-1, -block, math.MinInt64} {
		n, err := d.ReadAt(make([]byte, 1), off)
		var typed *Error
		if n != 0 || !errors.Is(err, os.ErrInvalid) || !errors.As(err, &typed) || typed.Path != path || strings.Contains(err.Error(), "\n") {
			t.Errorf("at %d: %d, %v", off, n, err)
		}
	}
	if n, err := d.ReadAt(make([]byte, 1), math.MaxInt64); n != 0 || err != io.EOF {
		t.Errorf("at the end of all offsets: %d, %v", n, err)
	}
	// A section of it is a file as any other.
	got, err := io.ReadAll(io.NewSectionReader(d, 5, size))
	want, _ := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want[5:]) {
		t.Errorf("read as a section: %d bytes, %v", len(got), err)
	}
}

// Reading sees what another descriptor has written, although the first read of it
// came before.
func TestReadAtIsFresh(t *testing.T) {
	path := scratch(t, 1<<20)
	reader, writer := mustOpen(t, path, Mode{}), mustOpen(t, path, Mode{Write: true})
	block := writer.Info().BlockSize
	for i := byte(1); i < 4; i++ {
		if _, err := writer.WriteAt(bytes.Repeat([]byte{i}, int(block)), block); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 3)
		if _, err := reader.ReadAt(got, 2*block-3); err != nil || !bytes.Equal(got, []byte{i, i, i}) {
			t.Errorf("%v, %v", got, err)
		}
	}
}

func TestWriteAt(t *testing.T) {
	rng := rand.New(rand.NewPCG(signatureSeed(t), 0))
	path, want := filled(t, rng, 256<<10)
	d := mustOpen(t, path, Mode{Write: true})
	size, block := d.Size(), d.Info().BlockSize
	for range 100 {
		n := block * (1 + rng.Int64N(8))
		off := block * rng.Int64N((size-n)/block+1)
		// Memory at any address will do: the device has its own.
		p := make([]byte, n+1)[1:]
		for i := range p {
			p[i] = byte(rng.Uint32())
		}
		copy(want[off:], p)
		before := bytes.Clone(p)
		if m, err := d.WriteAt(p, off); m != len(p) || err != nil || !bytes.Equal(p, before) {
			t.Fatalf("%d bytes at %d: %d, %v", n, off, m, err)
		}
	}
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ off, n int64 }{
		{1, block}, {0, 1}, {0, block - 1}, {0, block + 1}, {block / 2, block}, {-block, block}, {-1, block},
		{size, block}, {size - block, 2 * block}, {size + block, block}, {0, size + block},
		{math.MaxInt64 &^ (block - 1), block}, {math.MinInt64, block},
	} {
		n, err := d.WriteAt(make([]byte, c.n), c.off)
		if n != 0 || !errors.Is(err, os.ErrInvalid) || !strings.Contains(err.Error(), path+": cannot write at ") {
			t.Errorf("%d bytes at %d: %d, %v", c.n, c.off, n, err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the file holds other bytes than were written (%v), or its length is %d", err, len(got))
	}

	reader := mustOpen(t, path, Mode{})
	if n, err := reader.WriteAt(make([]byte, block), 0); n != 0 || !errors.Is(err, unix.EBADF) {
		t.Errorf("a write to a device that was opened for reading: %d, %v", n, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for what, call := range map[string]func() error{
		"write": func() error { _, err := d.WriteAt(make([]byte, block), 0); return err },
		"read":  func() error { _, err := d.ReadAt(make([]byte, block), 0); return err },
		"sync":  d.Sync,
		"lock":  d.Lock,
	} {
		if err := call(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s after Close: %v", what, err)
		}
	}
}

// A file that has become shorter ends where the device does not: an error, not the
// end of the device.
func TestReadAtTruncated(t *testing.T) {
	path := scratch(t, 1<<20)
	d := mustOpen(t, path, Mode{})
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if n, err := d.ReadAt(make([]byte, 8192), 0); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		t.Errorf("%d, %v", n, err)
	}
}

// The same on a block device of large blocks, which knows nothing of bytes.
func TestIOLoop(t *testing.T) {
	backing := scratch(t, 8<<20)
	path := loop(t, backing, "--direct-io=on", "--sector-size=4096")
	d := mustOpen(t, path, Mode{Write: true, Exclusive: true})
	if d.Info().BlockSize != 4096 || d.Size() != 8<<20 {
		t.Fatalf("%+v", d.Info())
	}
	block := bytes.Repeat([]byte{1, 2, 3, 4}, 1024)
	if _, err := d.WriteAt(block, d.Size()-4096); err != nil {
		t.Fatal(err)
	}
	if _, err := d.WriteAt(block[:512], 0); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("512 bytes to blocks of 4096: %v", err)
	}
	if err := d.Sync(); err != nil {
		t.Error(err)
	}
	got := make([]byte, 10)
	if n, err := d.ReadAt(got, d.Size()-7); n != 7 || err != io.EOF || !bytes.Equal(got[:7], block[4096-7:]) {
		t.Errorf("%d, %v: %v", n, err, got)
	}
	d.RereadPartitions() // there are none, and nothing comes of it
	if d.Gone() {
		t.Error("gone")
	}
}
