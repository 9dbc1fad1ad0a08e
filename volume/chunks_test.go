// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// Case 3: a read of three chunks and a block that starts in the middle of a
// chunk, on two members, is one child for each chunk touched, in order, also
// into a buffer at an odd multiple of 512.
func TestThreeChunksAndABlock(t *testing.T) {
	v := newMemoryVolume(t, 2)
	flat := make([]byte, v.Limits().Size)
	count(flat, 3)
	for chunk := range len(flat) / testChunk {
		copy(v.memories[chunk%2].Bytes()[chunk/2*testChunk:], flat[chunk*testChunk:][:testChunk])
	}
	r := devtest.Open(t, v, poller.QueueConfig{MaxTransfer: 4 * testChunk})
	r.Buf(3 * 512)
	const off, n = 5*testChunk + testChunk/2, 3*testChunk + 512
	req := &poller.Request{Op: poller.Read, Flags: poller.HiPri, Offset: off, Buf: r.Buf(n)}
	r.MustDo(req)
	if !bytes.Equal(req.Buf, flat[off:][:n]) {
		t.Error("other bytes than in the flat file")
	}
	if !req.Polled {
		t.Error("not polled, though every child was")
	}
	// Chunks 5, 6, 7 and 8 are touched: two on each member.
	for i, m := range v.memories {
		if n := m.Stats().IO[poller.Read][poller.Polled].Latency.Count(); n != 2 {
			t.Errorf("member %d did %d reads, want 2", i, n)
		}
	}
}

// Case 4: I/O much longer than a stripe, unaligned to chunks at both ends, is
// the same bytes as in a flat file; here on real files through the kernel.
func TestLongerThanStripe(t *testing.T) {
	const members = 3
	var devs []poller.Device
	var paths []string
	for range members {
		path := devtest.TempFile(t, testSize)
		paths = append(paths, path)
		devs = append(devs, devtest.OpenDisk(t, path))
	}
	v := newVolume(t, testChunk, devs...)
	block := int(v.Limits().BlockSize)
	off, n := testChunk-block, 40*testChunk+2*block
	r := devtest.Open(t, v, poller.QueueConfig{Depth: 2, MaxTransfer: int64(n)})
	write := &poller.Request{Op: poller.Write, Offset: int64(off), Buf: r.Buf(int64(n))}
	count(write.Buf, 4)
	read := &poller.Request{Op: poller.Read, Offset: int64(off), Buf: r.Buf(int64(n))}
	r.MustDo(write)
	r.MustDo(read)
	if !bytes.Equal(read.Buf, write.Buf) {
		t.Error("read other bytes than were written")
	}
	flat := make([]byte, v.Limits().Size)
	for i, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for row := range testSize / testChunk {
			copy(flat[(row*members+i)*testChunk:], b[row*testChunk:][:testChunk])
		}
	}
	if !bytes.Equal(flat[off:][:n], write.Buf) {
		t.Error("the members hold other bytes than were written")
	}
	if !bytes.Equal(flat[:off], make([]byte, off)) || !bytes.Equal(flat[off+n:], make([]byte, len(flat)-off-n)) {
		t.Error("bytes beside the range were written")
	}
}

// Case 6, for queues: with 512-byte members a block is 512 bytes; with one 4Kn
// member among them it is 4096, and the error says so.
func TestBlockSizes(t *testing.T) {
	small := func() poller.Device { return faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}) }
	v := newVolume(t, testChunk, small(), small())
	r := devtest.Open(t, v, poller.QueueConfig{})
	for _, off := range []int64{0, 512, testChunk + 512, v.Limits().Size - 512} {
		r.MustDo(&poller.Request{Op: poller.Write, Offset: off, Buf: r.Buf(512)})
	}

	big := func() poller.Device { return faultdev.NewMemory(testSize, 4096, faultdev.MemoryOptions{BufAlign: 4}) }
	for _, members := range [][]poller.Device{{small(), big()}, {big(), small()}} {
		v = newVolume(t, testChunk, members...)
		r = devtest.Open(t, v, poller.QueueConfig{})
		for _, off := range []int64{0, testChunk} { // on the 512-byte member, too
			req := &poller.Request{Op: poller.Write, Offset: off, Buf: r.Buf(512)}
			r.Do(req)
			if !errors.Is(req.Err, poller.ErrAlignment) || !strings.Contains(req.Err.Error(), "4096") {
				t.Errorf("512 bytes at %d: %v", off, req.Err)
			}
		}
		r.Buf(4096 - 1024)
		r.MustDo(&poller.Request{Op: poller.Write, Offset: testChunk, Buf: r.Buf(4096)})
	}
}

// A request that is bad for one member alone does no I/O on the others either:
// it comes back before any.
func TestBadForOneMember(t *testing.T) {
	fine := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{BufAlign: 4})
	strict := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{BufAlign: 512})
	v := newVolume(t, testChunk, fine, strict)
	if a := v.Limits().BufAlign; a != 512 {
		t.Errorf("BufAlign %d, want the strictest", a)
	}
	r := devtest.Open(t, v, poller.QueueConfig{})
	req := &poller.Request{Op: poller.Write, Offset: testChunk / 2, Buf: r.Buf(4 + testChunk)[4:]}
	count(req.Buf, 1)
	r.Do(req)
	if !errors.Is(req.Err, poller.ErrAlignment) || !strings.Contains(req.Err.Error(), "512") {
		t.Errorf("a buffer at 4: %v", req.Err)
	}
	if !bytes.Equal(fine.Bytes(), make([]byte, testSize)) {
		t.Error("half of the refused write was done")
	}
}
