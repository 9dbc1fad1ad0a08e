// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// Case 25: Close with I/O out drains, whether it was started or not, and every
// request has its results when it returns.
func TestCloseDrains(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		for _, polls := range []int{0, 1} {
			arena := newArena(t, 16*kindChunk)
			q, err := dev.NewQueue(poller.QueueConfig{Depth: 8, MaxTransfer: 2 * kindChunk, Arena: arena})
			if err != nil {
				t.Fatal(err)
			}
			var reqs []*poller.Request
			for i := range int64(6) {
				req := &poller.Request{Op: poller.Read, Offset: i*kindChunk + kindChunk/2, Buf: arena.Bytes()[i*2*kindChunk:][:2*kindChunk], Err: errors.New("not set")}
				if i%2 == 0 {
					req.Flags = poller.HiPri
				}
				reqs = append(reqs, req)
			}
			reqs = append(reqs, &poller.Request{Op: poller.Flush, Err: errors.New("not set")})
			n, err := q.Submit(reqs)
			if n != len(reqs) || err != nil {
				t.Fatalf("Submit took %d of %d: %v", n, len(reqs), err)
			}
			for range polls {
				if _, err := q.Poll(make([]*poller.Request, 1)); err != nil {
					t.Fatal(err)
				}
			}
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			for _, req := range reqs {
				if req.Err != nil {
					t.Errorf("%v at %d: %v", req.Op, req.Offset, req.Err)
				}
				if err := devtest.Result(req); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// Case 25: a second Close and every use after Close are errors, of queue and
// device alike; a device with open queues stays open.
func TestUseAfterClose(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{Queues: 2})
		second := devtest.Open(t, dev, poller.QueueConfig{Queues: 2})
		buf := r.Buf(dev.Limits().BlockSize)
		if err := r.Queue.Close(); err != nil {
			t.Fatal(err)
		}
		req, done := &poller.Request{Op: poller.Read, Buf: buf}, make([]*poller.Request, 1)
		if n, err := r.Queue.Submit([]*poller.Request{req}); n != 0 || !errors.Is(err, poller.ErrClosed) {
			t.Errorf("Submit after Close: %d, %v", n, err)
		}
		if n, err := r.Queue.Poll(done); n != 0 || !errors.Is(err, poller.ErrClosed) {
			t.Errorf("Poll after Close: %d, %v", n, err)
		}
		for _, timeout := range []time.Duration{0, time.Hour, -1} {
			if n, err := r.Queue.Wait(1, done, timeout); n != 0 || !errors.Is(err, poller.ErrClosed) {
				t.Errorf("Wait after Close: %d, %v", n, err)
			}
		}
		if err := r.Queue.Close(); !errors.Is(err, poller.ErrClosed) {
			t.Errorf("second Close: %v", err)
		}

		err := dev.Close()
		if !errors.Is(err, poller.ErrQueuesOpen) || !strings.Contains(err.Error(), "1 queues") {
			t.Errorf("closing a device with one queue open: %v", err)
		}
		second.MustDo(&poller.Request{Op: poller.Read, Buf: second.Buf(dev.Limits().BlockSize)})
		if err := second.Queue.Close(); err != nil {
			t.Fatal(err)
		}
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
		if err := dev.Close(); !errors.Is(err, poller.ErrClosed) {
			t.Errorf("second Close of the device: %v", err)
		}
		if _, err := dev.NewQueue(poller.QueueConfig{}); !errors.Is(err, poller.ErrClosed) {
			t.Errorf("NewQueue of a closed device: %v", err)
		}
	})
}

// Case 25: what does not finish in time is counted, gets its results, and keeps
// its memory; what did finish has succeeded.
func TestCloseTimeout(t *testing.T) {
	for _, kind := range heldKinds {
		t.Run(kind.name, func(t *testing.T) {
			gate := new(faultdev.Gate)
			dev := kind.make(t, gate)
			devtest.Close(t, dev)
			arena, err := poller.NewArena(4 * kindChunk)
			if err != nil {
				t.Fatal(err)
			}
			const timeout = 20 * time.Millisecond
			q, err := dev.NewQueue(poller.QueueConfig{MaxTransfer: kindChunk, Arena: arena, CloseTimeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			stopped, _ := held(devtest.Around(t, q), kind.name)
			// Of length 0, as a real read might take longer than the timeout.
			free := &poller.Request{Op: poller.Read, Err: errors.New("not set")}
			if n, err := q.Submit([]*poller.Request{stopped, free}); n != 2 || err != nil {
				t.Fatalf("Submit: %d, %v", n, err)
			}
			start := time.Now()
			err = q.Close()
			if took := time.Since(start); took < timeout {
				t.Errorf("Close gave up after %v of %v", took, timeout)
			}
			if !errors.Is(err, poller.ErrNotDrained) || !strings.Contains(err.Error(), "1 requests") {
				t.Errorf("Close: %v", err)
			}
			if !errors.Is(stopped.Err, poller.ErrNotDrained) {
				t.Errorf("the held request: %v", stopped.Err)
			}
			if free.Err != nil {
				t.Errorf("the free request: %v", free.Err)
			}
			for _, req := range []*poller.Request{stopped, free} {
				if err := devtest.Result(req); err != nil {
					t.Error(err)
				}
			}
			if err := arena.Close(); !errors.Is(err, poller.ErrNotDrained) {
				t.Errorf("closing the arena: %v", err)
			}
			if err := q.Close(); !errors.Is(err, poller.ErrClosed) {
				t.Errorf("second Close: %v", err)
			}
			fill(stopped.Buf, 1) // the memory is there still
		})
	}
}

// A negative timeout of Wait has no end, but an idle queue closes at once.
func TestCloseIdle(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		q, err := dev.NewQueue(poller.QueueConfig{CloseTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
