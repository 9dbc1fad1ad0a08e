// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"bytes"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// Submit takes a prefix. What it did not take is not done by half either: its
// bytes reach no member, and it never comes back.
func TestPrefixAndFull(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		arena := newArena(t, 64*kindChunk)
		r := devtest.Open(t, dev, poller.QueueConfig{Depth: 2, MaxTransfer: 2 * kindChunk, Arena: arena})
		if depth := r.Queue.Limits().QueueDepth; depth < 2 {
			t.Fatalf("granted %d of 2", depth)
		}
		// They begin in the middle of a chunk, so that each has three children
		// on a volume.
		var reqs []*poller.Request
		size := dev.Limits().Size
		for i := range int64(16) {
			req := &poller.Request{Op: poller.Write, Offset: i*2*kindChunk + kindChunk/2, Buf: r.Buf(2 * kindChunk)}
			if req.Offset+2*kindChunk > size {
				break
			}
			fill(req.Buf, byte(i)+1)
			reqs = append(reqs, req)
		}
		n := r.Try(reqs...)
		if n < 2 || n == len(reqs) {
			t.Fatalf("a queue of depth 2 took %d requests of %d", n, len(reqs))
		}
		if again := r.Try(reqs[n:]...); again != 0 {
			t.Fatalf("a full queue took %d more", again)
		}
		r.Drain()
		got := &poller.Request{Op: poller.Read, Buf: r.Buf(2 * kindChunk)}
		for i, req := range reqs {
			got.Offset = req.Offset
			r.MustDo(got)
			want := req.Buf
			if i >= n {
				want = make([]byte, len(req.Buf))
			}
			if !bytes.Equal(got.Buf, want) {
				t.Errorf("request %d, of which %d were taken: wrong bytes on the device", i, n)
			}
		}
		// The queue is as good as new.
		if more := r.Try(reqs...); more != n {
			t.Errorf("took %d at first and %d when empty again", n, more)
		}
		r.Drain()
	})
}

// An empty queue takes any request of MaxTransfer: nothing can deadlock.
func TestEmptyQueueTakesLargest(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		block, size := dev.Limits().BlockSize, dev.Limits().Size
		for _, longest := range []int64{block, kindChunk, kindChunk + block, 3*kindChunk + block, 8 * kindChunk} {
			r := devtest.Open(t, dev, poller.QueueConfig{Depth: 1, MaxTransfer: longest})
			buf := r.Buf(longest)
			// Every position within a chunk, on the first and the last member.
			for off := int64(0); off <= min(2*kindChunk, size-longest); off += block {
				r.MustDo(&poller.Request{Op: poller.Read, Offset: off, Buf: buf})
				r.MustDo(&poller.Request{Op: poller.Write, Offset: size - longest - off, Buf: buf})
			}
			r.MustDo(&poller.Request{Op: poller.Flush})
			if err := r.Queue.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The same with the largest that a device claims to take at all.
func TestLargestOfDevice(t *testing.T) {
	eachKind(t, largestOfDevice)
	lean := func(caps int64, budget int) func(testing.TB) poller.Device {
		return func(t testing.TB) poller.Device {
			d := devtest.OpenDisk(t, devtest.TempFile(t, 4<<20))
			poller.SetCaps(d, caps, budget)
			return d
		}
	}
	small := func(testing.TB) poller.Device {
		return faultdev.NewMemory(4<<20, 512, faultdev.MemoryOptions{Budget: 5, Unit: 24 << 10})
	}
	roomy := func(testing.TB) poller.Device {
		return faultdev.NewMemory(4<<20, 512, faultdev.MemoryOptions{Budget: 8, Unit: 16 << 10})
	}
	wide := func(chunk int64, makers ...func(testing.TB) poller.Device) func(testing.TB) poller.Device {
		return func(t testing.TB) poller.Device {
			t.Helper()
			var members []poller.Device
			for _, mk := range makers {
				members = append(members, mk(t))
			}
			v, err := volume.New(members, volume.Geometry{Chunk: chunk})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	for name, mk := range map[string]func(testing.TB) poller.Device{
		"disk that splits":              lean(24<<10, 7),
		"disk of budget 1":              lean(24<<10, 1),
		"volume of small memories":      wide(16<<10, small, small, small),
		"volume of one small memory":    wide(16<<10, small),
		"chunk above what a disk takes": wide(64<<10, lean(24<<10, 7), lean(24<<10, 7)),
		"chunk a little above":          wide(32<<10, lean(28<<10, 9), lean(28<<10, 9)),
		"members that differ":           wide(32<<10, lean(28<<10, 9), small),
		"volume of volumes":             wide(16<<10, wide(16<<10, small, small), wide(16<<10, small, small)),
		"outer chunk twice the inner":   wide(32<<10, wide(16<<10, roomy, roomy), wide(16<<10, roomy, roomy)),
		"outer chunk larger":            wide(64<<10, wide(16<<10, small, small), wide(16<<10, small, small)),
		"outer chunk smaller":           wide(4<<10, wide(16<<10, small, small), wide(16<<10, small, small)),
	} {
		t.Run(name, func(t *testing.T) {
			dev := mk(t)
			devtest.Close(t, dev)
			largestOfDevice(t, dev)
		})
	}
}

func largestOfDevice(t *testing.T, dev poller.Device) {
	l := dev.Limits()
	if l.MaxTransfer < l.BlockSize || l.QueueDepth < 1 {
		t.Fatalf("limits %+v", l)
	}
	q, err := dev.NewQueue(poller.QueueConfig{Depth: 1, MaxTransfer: l.MaxTransfer})
	if err != nil {
		t.Fatalf("a queue for requests of MaxTransfer, %d bytes: %v", l.MaxTransfer, err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	r := devtest.Open(t, dev, poller.QueueConfig{Depth: 1, MaxTransfer: l.MaxTransfer})
	buf := r.Buf(min(l.MaxTransfer, l.Size) &^ (l.BlockSize - 1))
	room := l.Size - int64(len(buf))
	for _, off := range []int64{0, l.BlockSize, kindChunk - l.BlockSize, kindChunk, room} {
		if off <= room {
			r.MustDo(&poller.Request{Op: poller.Read, Offset: off, Buf: buf})
		}
	}
}

func newArena(t testing.TB, n int64) *poller.Arena {
	t.Helper()
	a, err := poller.NewArena(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("closing the arena: %v", err)
		}
	})
	return a
}
