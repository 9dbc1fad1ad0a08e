// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"testing"

	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// Every request comes back once: good ones and bad, whole and split, with room
// for one at a time. The rig notices what comes twice or was never out.
func TestExactlyOnceWithShortDone(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{Depth: 8, MaxTransfer: 4 * kindChunk})
		block := dev.Limits().BlockSize
		reqs := []*poller.Request{
			{Op: poller.Write, Flags: poller.HiPri, Offset: 0, Buf: r.Buf(block)},
			{Op: poller.Read, Offset: kindChunk / 2, Buf: r.Buf(4 * kindChunk)},
			{Op: poller.Read, Offset: -1, Buf: r.Buf(block)},
			{Op: poller.Flush},
			{Op: poller.Read, Offset: 0},
			{Op: poller.Op(9)},
		}
		for round := range 20 {
			submitted, returned := 0, 0
			done := make([]*poller.Request, 1)
			for turn := 0; returned < len(reqs); turn++ {
				submitted += r.Try(reqs[submitted:]...)
				var n int
				var err error
				if (turn+round)%2 == 0 {
					n, err = r.Queue.Poll(done)
				} else {
					n, err = r.Queue.Wait(1, done, devtest.Patience)
					if n == 0 {
						t.Fatalf("nothing came back, %d are out", r.Out())
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				r.Take(done[:n])
				returned += n
			}
			if n, err := r.Queue.Poll(done); n != 0 || err != nil {
				t.Fatalf("Poll of an idle queue: %d, %v", n, err)
			}
			for i, bad := range []bool{false, false, true, false, false, true} {
				if (reqs[i].Err != nil) != bad {
					t.Fatalf("request %d: error %v", i, reqs[i].Err)
				}
			}
		}
	})
}

// A done without room gets nothing, and loses nothing.
func TestEmptyDone(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{Depth: 4})
		r.Submit(&poller.Request{Op: poller.Read, Buf: r.Buf(dev.Limits().BlockSize)}, &poller.Request{Op: poller.Read})
		for range 100 {
			if n, err := r.Queue.Poll(nil); n != 0 || err != nil {
				t.Fatalf("Poll(nil): %d, %v", n, err)
			}
			if n, err := r.Queue.Wait(1, nil, -1); n != 0 || err != nil {
				t.Fatalf("Wait(1, nil, -1): %d, %v", n, err)
			}
		}
		r.Drain()
	})
}

// What an earlier use left in a request means nothing to the next.
func TestResultsAreReset(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{})
		block := dev.Limits().BlockSize
		req := &poller.Request{Op: poller.Read, Offset: -block, Buf: r.Buf(block), Tag: 77}
		r.Do(req)
		if req.Err == nil {
			t.Fatal("a read at a negative offset succeeded")
		}
		// The same request, repaired, is as good as a new one.
		req.Offset = block
		r.MustDo(req)
		if req.Tag != 77 {
			t.Errorf("the owner's tag became %d", req.Tag)
		}
		req.Offset = dev.Limits().Size
		r.Do(req)
		if req.Err == nil || req.Polled {
			t.Errorf("read at the end: %v, polled %v", req.Err, req.Polled)
		}
	})
}
