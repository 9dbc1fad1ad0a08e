// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"bytes"
	"errors"
	"testing"

	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

func TestArenaSizes(t *testing.T) {
	for _, n := range []int64{-1, 0, poller.MaxArena + 1, 1 << 62} {
		if a, err := poller.NewArena(n); err == nil {
			a.Close()
			t.Errorf("an arena of %d bytes was made", n)
		}
	}
	a, err := poller.NewArena(1)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Bytes()) < 1 {
		t.Error("an arena of 1 byte has none")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); !errors.Is(err, poller.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}

// Two queues may share an arena; it closes after both.
func TestArenaShared(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		arena, err := poller.NewArena(4 * kindChunk)
		if err != nil {
			t.Fatal(err)
		}
		cfg := poller.QueueConfig{Queues: 2, MaxTransfer: kindChunk, Arena: arena}
		a, b := devtest.Open(t, dev, cfg), devtest.Open(t, dev, cfg)
		if a.Queue.Limits().Arena != arena || b.Queue.Limits().Arena != arena {
			t.Fatal("Limits name another arena")
		}
		buf := a.Buf(kindChunk)
		fill(buf, 7)
		a.MustDo(&poller.Request{Op: poller.Write, Offset: kindChunk, Buf: buf})
		clear(buf)
		b.MustDo(&poller.Request{Op: poller.Read, Offset: kindChunk, Buf: buf})
		if !bytes.Equal(buf, bytes.Repeat([]byte{7}, kindChunk)) {
			t.Error("the second queue read other bytes than the first wrote")
		}
		for i, r := range []*devtest.Rig{a, b} {
			if err := arena.Close(); !errors.Is(err, poller.ErrQueuesOpen) {
				t.Fatalf("closing the arena of %d open queues: %v", 2-i, err)
			}
			if err := r.Queue.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := arena.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := dev.NewQueue(cfg); !errors.Is(err, poller.ErrClosed) {
			t.Errorf("NewQueue with a closed arena: %v", err)
		}
	})
}

// An arena may be smaller than depth times the largest request; what is not in
// it is refused.
func TestArenaSmall(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		small, other := newArena(t, 4<<10), newArena(t, 4<<10)
		r := devtest.Open(t, dev, poller.QueueConfig{MaxTransfer: 1 << 20 / 8, Arena: small})
		r.MustDo(&poller.Request{Op: poller.Read, Buf: small.Bytes()})
		req := &poller.Request{Op: poller.Read, Buf: other.Bytes()}
		r.Do(req)
		if !errors.Is(req.Err, poller.ErrArena) {
			t.Errorf("a buffer of another arena: %v", req.Err)
		}
	})
}

// The default arena is for as many of the largest requests as were asked for,
// and ends with the queue. What cannot be is refused before anything is made.
func TestArenaDefault(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		q, err := dev.NewQueue(poller.QueueConfig{Depth: 3, MaxTransfer: 5 * 4096})
		if err != nil {
			t.Fatal(err)
		}
		arena := q.Limits().Arena
		if n := len(arena.Bytes()); n < 3*5*4096 {
			t.Errorf("%d bytes for 3 requests of %d", n, 5*4096)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		if err := arena.Close(); !errors.Is(err, poller.ErrClosed) {
			t.Errorf("the default arena outlived its queue: %v", err)
		}
		if _, err := dev.NewQueue(poller.QueueConfig{Depth: 1 << 20, MaxTransfer: 1 << 20}); err == nil {
			t.Error("a queue of 1 TiB was made")
		}
		if err := dev.Close(); err != nil {
			t.Errorf("the failed queue is counted as open: %v", err)
		}
	})
}
