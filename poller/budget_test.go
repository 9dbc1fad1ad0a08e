// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"errors"
	"strings"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// Case 20, the arithmetic: however many queues ask for however much, what is
// granted never exceeds the drive's budget, and comes back.
func TestBudgetOfManyQueues(t *testing.T) {
	const budget, caps = 64, 16 << 10
	for _, c := range []struct {
		name        string
		depth       int
		maxTransfer int64
		queues      int
		each        int // queues that must be possible
		granted     int
	}{
		{"shares of 16", 1000, caps, 16, 16, 4},
		{"few and shallow", 3, caps, 4, 4, 3},
		{"largest request above the share", 8, 3 * caps, 64, 21, 1},
		{"one takes all", 1000, caps, 1, 1, budget},
		{"an odd share", 1000, caps, 5, 5, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := devtest.TempFile(t, kindSize)
			d := devtest.OpenDisk(t, path)
			devtest.Close(t, d)
			poller.SetCaps(d, caps, budget)
			cfg := poller.QueueConfig{Depth: c.depth, MaxTransfer: c.maxTransfer, Queues: c.queues, Arena: newArena(t, 64<<10)}
			for range 2 { // the second time shows that all came back
				var queues []poller.Queue
				total, children := 0, int((c.maxTransfer+caps-1)/caps)
				for range c.each {
					q, err := d.NewQueue(cfg)
					if err != nil {
						t.Fatalf("queue %d: %v", len(queues), err)
					}
					queues = append(queues, q)
					if got := q.Limits().QueueDepth; got != c.granted {
						t.Errorf("queue %d was granted %d, want %d", len(queues), got, c.granted)
					}
					total += q.Limits().QueueDepth * children
				}
				if total > budget {
					t.Errorf("granted %d of %d", total, budget)
				}
				if budget-total < children {
					_, err := d.NewQueue(cfg)
					if !errors.Is(err, poller.ErrBudget) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "64") {
						t.Errorf("one queue too many: %v", err)
					}
				}
				for _, q := range queues {
					if err := q.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// A request that a drive could never hold is refused when the queue is made.
func TestBudgetBelowOneRequest(t *testing.T) {
	path := devtest.TempFile(t, kindSize)
	d := devtest.OpenDisk(t, path)
	devtest.Close(t, d)
	poller.SetCaps(d, 4<<10, 8)
	_, err := d.NewQueue(poller.QueueConfig{MaxTransfer: 36 << 10})
	if !errors.Is(err, poller.ErrBudget) || !strings.Contains(err.Error(), path) {
		t.Errorf("a request of 9 children where 8 fit: %v", err)
	}
}

// A stacked queue that fails at one member gives back what the others granted.
func TestBudgetReturnedOnFailure(t *testing.T) {
	rich := faultdev.NewMemory(kindSize, 512, faultdev.MemoryOptions{Budget: 8})
	poor := faultdev.NewMemory(kindSize, 512, faultdev.MemoryOptions{Name: "poor", Budget: 2})
	v := striped(
		func(testing.TB) poller.Device { return rich },
		diskKind,
		func(testing.TB) poller.Device { return poor })(t)
	devtest.Close(t, v)
	arena := newArena(t, 64<<10)
	first, err := v.NewQueue(poller.QueueConfig{Depth: 2, MaxTransfer: 4 << 10, Arena: arena})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		_, err := v.NewQueue(poller.QueueConfig{Depth: 2, MaxTransfer: 4 << 10, Arena: arena})
		if !errors.Is(err, poller.ErrBudget) || !strings.Contains(err.Error(), "member 2: poor") {
			t.Fatalf("a queue beyond the budget of member 2: %v", err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	q, err := v.NewQueue(poller.QueueConfig{Depth: 2, MaxTransfer: 4 << 10, Arena: arena})
	if err != nil {
		t.Fatalf("after 100 failures: %v", err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
}

// What is left of a member must hold the largest request of the stack, not of
// the member: a queue that could never take one is not made.
func TestBudgetOfLargestThroughStack(t *testing.T) {
	member := faultdev.NewMemory(kindSize, 512, faultdev.MemoryOptions{Budget: 5, Unit: kindChunk})
	v := striped(func(testing.TB) poller.Device { return member }, memoryKind)(t)
	devtest.Close(t, v)
	// Five chunks, from the middle of one, are three on a member.
	cfg := poller.QueueConfig{Depth: 1, MaxTransfer: 5 * kindChunk}
	first := devtest.Open(t, v, cfg)
	if _, err := v.NewQueue(cfg); !errors.Is(err, poller.ErrBudget) {
		t.Errorf("a queue for requests of 3 children where 2 are left: %v", err)
	}
	cfg.MaxTransfer = 3 * kindChunk
	second := devtest.Open(t, v, cfg)
	for _, r := range []*devtest.Rig{first, second} {
		r.MustDo(&poller.Request{Op: poller.Read, Offset: kindChunk / 2, Buf: r.Buf(r.Queue.Limits().MaxTransfer)})
	}
}
