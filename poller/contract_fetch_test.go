// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"bytes"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// A request that has finished and was not fetched, as Poll had no room for it, is
// not lost when Close has no time left: it comes back as any other, and nothing
// of the memory is kept.
func TestCloseFetchesFinished(t *testing.T) {
	fault := func(t testing.TB) poller.Device { return faultdev.New(memoryKind(t)) }
	for _, c := range []struct {
		name   string
		make   func(testing.TB) poller.Device
		offset int64
		n      int64
		leafIO uint64 // what the devices at the bottom do for it
	}{
		{"disk", diskKind, 512 * 8, kindChunk, 1},
		{"fault over memory", fault, 512, kindChunk, 1},
		{"fault over disk", func(t testing.TB) poller.Device { return faultdev.New(diskKind(t)) }, 4096, kindChunk, 1},
		{"volume, whole", striped(fault, fault), 3 * kindChunk, kindChunk, 1},
		{"volume, whole on a disk", striped(diskKind, diskKind), 3 * kindChunk, kindChunk, 1},
		{"volume, in parts", striped(fault, fault), kindChunk / 2, 2 * kindChunk, 3},
		{"volume, in parts on disks", striped(diskKind, diskKind), kindChunk / 2, 2 * kindChunk, 3},
		{"volume of volumes", striped(striped(fault, fault), striped(diskKind, fault)), 7 * kindChunk, kindChunk, 1},
		{"volume of volumes, in parts", striped(striped(fault, fault), striped(diskKind, fault)), kindChunk / 2, 4 * kindChunk, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			dev := c.make(t)
			devtest.Close(t, dev)
			arena, err := poller.NewArena(c.n)
			if err != nil {
				t.Fatal(err)
			}
			q, err := dev.NewQueue(poller.QueueConfig{MaxTransfer: c.n, Arena: arena, CloseTimeout: 1})
			if err != nil {
				t.Fatal(err)
			}
			req := &poller.Request{Op: poller.Read, Offset: c.offset, Buf: arena.Bytes()[:c.n], Tag: 7}
			fill(req.Buf, 0xff)
			if n, err := q.Submit([]*poller.Request{req}); n != 1 || err != nil {
				t.Fatalf("Submit: %d, %v", n, err)
			}
			for start := time.Now(); devtest.LeafIO(dev.Stats()) < c.leafIO; {
				if n, err := q.Poll(nil); n != 0 || err != nil {
					t.Fatalf("Poll without room: %d, %v", n, err)
				}
				if time.Since(start) > devtest.Patience {
					t.Fatalf("%d of %d I/Os are done", devtest.LeafIO(dev.Stats()), c.leafIO)
				}
			}
			if err := q.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if req.Err != nil || req.N != len(req.Buf) || req.Offset != c.offset || req.Tag != 7 {
				t.Errorf("N %d, Err %v, Offset %d of %d", req.N, req.Err, req.Offset, c.offset)
			}
			if !bytes.Equal(req.Buf, make([]byte, c.n)) {
				t.Error("other bytes than the device's")
			}
			if err := arena.Close(); err != nil {
				t.Errorf("closing the arena: %v", err)
			}
		})
	}
}
