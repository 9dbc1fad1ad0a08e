// SPDX-License-Identifier: Apache-2.0

package faultdev_test

import (
	"errors"
	"slices"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// order submits n reads and returns their tags in the order of completion, and
// how many polls it took.
func order(t *testing.T, opts faultdev.MemoryOptions, n int) (tags []uint64, polls int) {
	t.Helper()
	dev := faultdev.NewMemory(64<<10, 512, opts)
	devtest.Close(t, dev)
	r := devtest.Open(t, dev, poller.QueueConfig{Depth: n, MaxTransfer: 512})
	for i := range n {
		r.Submit(&poller.Request{Op: poller.Read, Tag: uint64(i), Buf: r.Buf(512)})
	}
	for done := make([]*poller.Request, n); r.Out() > 0; polls++ {
		got, err := r.Queue.Poll(done)
		if err != nil {
			t.Fatal(err)
		}
		r.Take(done[:got])
		for _, req := range done[:got] {
			tags = append(tags, req.Tag)
		}
	}
	return tags, polls
}

func TestMemoryOrder(t *testing.T) {
	const n = 32
	tags, polls := order(t, faultdev.MemoryOptions{}, n)
	if !slices.IsSorted(tags) || polls != 1 {
		t.Errorf("without a seed: %v after %d polls", tags, polls)
	}
	tags, polls = order(t, faultdev.MemoryOptions{Seed: 3}, n)
	if slices.IsSorted(tags) || polls != 1 {
		t.Errorf("with a seed: %v after %d polls", tags, polls)
	}
	late, polls := order(t, faultdev.MemoryOptions{Seed: 3, Lateness: 5}, n)
	if slices.Equal(tags, late) || polls < 2 || polls > 5 {
		t.Errorf("with lateness: %v after %d polls", late, polls)
	}
	if again, _ := order(t, faultdev.MemoryOptions{Seed: 3, Lateness: 5}, n); !slices.Equal(again, late) {
		t.Error("one seed, two orders")
	}
	slices.Sort(late)
	for i, tag := range late {
		if uint64(i) != tag {
			t.Fatalf("not each once: %v", late)
		}
	}
}

// Bytes move when a request finishes, not when it is submitted.
func TestMemoryMovesLate(t *testing.T) {
	dev := faultdev.NewMemory(4096, 512, faultdev.MemoryOptions{})
	devtest.Close(t, dev)
	r := devtest.Open(t, dev, poller.QueueConfig{})
	w := &poller.Request{Op: poller.Write, Buf: r.Buf(512)}
	w.Buf[0] = 1
	r.Submit(w)
	if dev.Bytes()[0] != 0 {
		t.Error("written by Submit")
	}
	r.Drain()
	if dev.Bytes()[0] != 1 {
		t.Error("not written")
	}
}

func TestMemoryBudget(t *testing.T) {
	dev := faultdev.NewMemory(4096, 512, faultdev.MemoryOptions{Budget: 10, Unit: 512})
	devtest.Close(t, dev)
	a := devtest.Open(t, dev, poller.QueueConfig{Depth: 8, MaxTransfer: 512})
	b := devtest.Open(t, dev, poller.QueueConfig{Depth: 8, MaxTransfer: 512})
	if x, y := a.Queue.Limits().QueueDepth, b.Queue.Limits().QueueDepth; x != 8 || y != 2 {
		t.Errorf("granted %d and %d of 10", x, y)
	}
	if _, err := dev.NewQueue(poller.QueueConfig{MaxTransfer: 512}); !errors.Is(err, poller.ErrBudget) {
		t.Errorf("a third queue: %v", err)
	}
	if err := a.Queue.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.NewQueue(poller.QueueConfig{MaxTransfer: 8192}); !errors.Is(err, poller.ErrBudget) {
		t.Errorf("requests above MaxTransfer: %v", err)
	}
	if err := b.Queue.Close(); err != nil {
		t.Fatal(err)
	}
	c := devtest.Open(t, dev, poller.QueueConfig{Depth: 8, Queues: 2, MaxTransfer: 512})
	if d := c.Queue.Limits().QueueDepth; d != 5 {
		t.Errorf("one of two queues was granted %d of 10", d)
	}
	// Of 5 units, a request of 4 blocks takes 4.
	d := devtest.Open(t, dev, poller.QueueConfig{Depth: 8, Queues: 2, MaxTransfer: 2048})
	if n := d.Queue.Limits().QueueDepth; n != 1 {
		t.Errorf("%d requests of 4 units in 5", n)
	}
	long, short := &poller.Request{Op: poller.Read, Buf: d.Buf(2048)}, &poller.Request{Op: poller.Read, Buf: d.Buf(512)}
	if n := d.Try(long, long); n != 1 {
		t.Fatalf("took %d", n)
	}
	if n := d.Try(short, &poller.Request{Op: poller.Flush}); n != 1 {
		t.Errorf("took %d of two requests into one unit", n)
	}
	d.Drain()
}
