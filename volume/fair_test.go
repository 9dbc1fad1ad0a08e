// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"slices"
	"syscall"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// A caller whose done has room for one, and who submits again at once what came
// back, hears of every member: one that is always ready does not keep those
// behind it waiting for ever.
func TestShortDoneStarvesNoMember(t *testing.T) {
	for _, c := range []struct {
		members int
		busy    int   // always has something finished
		others  []int // have one request each
	}{
		{2, 0, []int{1}},
		{2, 1, []int{0}},
		{3, 0, []int{1, 2}},
		{3, 1, []int{0, 2}},
		{70, 0, []int{1, 63, 64, 69}},
		{70, 66, []int{0, 65, 67}},
	} {
		v := newMemoryVolume(t, c.members)
		r := devtest.Open(t, v, poller.QueueConfig{})
		busy := &poller.Request{Op: poller.Read, Offset: int64(c.busy) * testChunk, Buf: r.Buf(512)}
		r.Submit(busy)
		for _, slot := range c.others {
			r.Submit(&poller.Request{Op: poller.Read, Offset: int64(slot) * testChunk, Buf: r.Buf(512)})
		}
		done := make([]*poller.Request, 1)
		left := len(c.others)
		for polls := 1; left > 0; polls++ {
			if polls > 4*(len(c.others)+1) {
				t.Fatalf("%d members, member %d busy: %d others were not heard in %d polls", c.members, c.busy, left, polls-1)
			}
			n, err := r.Queue.Poll(done)
			if err != nil {
				t.Fatal(err)
			}
			r.Take(done[:n])
			if slices.Contains(done[:n], busy) {
				r.Submit(busy)
			} else {
				left -= n
			}
		}
		r.Drain()
	}
}

// A done that is full, or has no room at all, keeps no member's I/O from being
// started.
func TestFullDoneStartsAll(t *testing.T) {
	for _, room := range []int{0, 1} {
		v := newMemoryVolume(t, 3)
		// That the I/O was started shows in the error counted, at once.
		v.faults[1].SetRules(faultdev.Rule{Err: syscall.EIO})
		v.faults[2].SetRules(faultdev.Rule{Err: syscall.EIO})
		r := devtest.Open(t, v, poller.QueueConfig{})
		for slot := range int64(3) {
			r.Submit(&poller.Request{Op: poller.Read, Offset: slot * testChunk, Buf: r.Buf(512)})
		}
		done := make([]*poller.Request, room)
		n, err := r.Queue.Poll(done)
		if n != room || err != nil {
			t.Fatalf("Poll with room for %d: %d, %v", room, n, err)
		}
		r.Take(done[:n])
		for slot := 1; slot < 3; slot++ {
			if got := v.faults[slot].Stats().IO[poller.Read][poller.Plain].Errors; got != 1 {
				t.Errorf("room for %d: member %d was not started", room, slot)
			}
		}
		r.Drain()
	}
}
