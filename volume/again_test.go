// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// Case 19: EAGAIN a hundred times, then success, with nothing else in flight:
// the request completes once, and every retry is counted.
func TestAgainAHundredTimes(t *testing.T) {
	for _, op := range []poller.Op{poller.Read, poller.Write, poller.Flush} {
		for _, flags := range []poller.Flags{0, poller.HiPri} {
			v := newMemoryVolume(t, 2)
			v.faults[1].SetRules(faultdev.Rule{Times: 100, Err: syscall.EAGAIN})
			r := devtest.Open(t, v, poller.QueueConfig{})
			req := &poller.Request{Op: op, Flags: flags}
			if op != poller.Flush {
				req.Offset, req.Buf = testChunk, r.Buf(testChunk)
				count(req.Buf, 9)
			}
			r.MustDo(req)
			if n := v.Stats().Retries; n != 100 {
				t.Errorf("%v: %d retries of 100", op, n)
			}
			if n, err := r.Queue.Poll(make([]*poller.Request, 4)); n != 0 || err != nil {
				t.Errorf("%v: came back again: %d, %v", op, n, err)
			}
			if op == poller.Write && !bytes.Equal(v.memories[1].Bytes()[:testChunk], req.Buf) {
				t.Error("the write is not on the member")
			}
		}
	}
}

// Case 19 beside other I/O, and with children of one request on both members:
// none waits for the storm that is not its own.
func TestAgainBesideOthers(t *testing.T) {
	v := newMemoryVolume(t, 2)
	v.faults[0].SetRules(faultdev.Rule{Times: 1000, Err: syscall.EAGAIN})
	r := devtest.Open(t, v, poller.QueueConfig{Depth: 4, MaxTransfer: 4 * testChunk})
	storm := &poller.Request{Op: poller.Read, Buf: r.Buf(4 * testChunk)}
	r.Submit(storm)
	done := make([]*poller.Request, 4)
	for range 10 {
		calm := &poller.Request{Op: poller.Read, Offset: testChunk, Buf: r.Buf(512)}
		r.Submit(calm)
		n, err := r.Queue.Wait(1, done, devtest.Patience)
		if n != 1 || err != nil || done[0] != calm {
			t.Fatalf("a read of the other member: %d, %v", n, err)
		}
		r.Take(done[:n])
	}
	r.Drain()
	if storm.Err != nil {
		t.Error(storm.Err)
	}
	if n := v.Stats().Retries; n != 1000 {
		t.Errorf("%d retries of 1000", n)
	}
}

// With NoWait an EAGAIN is the answer, and there is no retry.
func TestAgainNoWait(t *testing.T) {
	v := newMemoryVolume(t, 2)
	v.faults[0].SetRules(faultdev.Rule{Times: 1, Err: syscall.EAGAIN})
	r := devtest.Open(t, v, poller.QueueConfig{})
	req := &poller.Request{Op: poller.Read, Flags: poller.NoWait, Buf: r.Buf(512)}
	r.Do(req)
	if !errors.Is(req.Err, syscall.EAGAIN) {
		t.Errorf("got %v", req.Err)
	}
	if n := v.Stats().Retries; n != 0 {
		t.Errorf("%d retries", n)
	}
	r.MustDo(req)
}

// A queue that is closed in a storm without end gives up at the deadline.
func TestAgainForEver(t *testing.T) {
	v := newMemoryVolume(t, 1)
	v.faults[0].SetRules(faultdev.Rule{Err: syscall.EAGAIN})
	arena, err := poller.NewArena(4096)
	if err != nil {
		t.Fatal(err)
	}
	q, err := v.NewQueue(poller.QueueConfig{Arena: arena, CloseTimeout: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	req := &poller.Request{Op: poller.Read, Buf: arena.Bytes()[:512]}
	if n, err := q.Submit([]*poller.Request{req}); n != 1 || err != nil {
		t.Fatalf("Submit: %d, %v", n, err)
	}
	if err := q.Close(); !errors.Is(err, poller.ErrNotDrained) {
		t.Errorf("Close: %v", err)
	}
	if !errors.Is(req.Err, poller.ErrNotDrained) {
		t.Errorf("the request: %v", req.Err)
	}
}
