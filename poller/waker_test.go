// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const wakerPatience = 20 * time.Second

func newWaker(t *testing.T) *Waker {
	t.Helper()
	w, err := NewWaker()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return w
}

// hangs makes a queue believe that a request is out which does not come back, until
// the end of the test: polled, so that it spins, or plain, so that it sleeps.
func hangs(t *testing.T, l *leaf, polled bool) {
	out, tree := &l.q.tree.plainOut, l.q.tree
	if polled {
		out = &tree.polled
	}
	*out++
	l.q.out++
	t.Cleanup(func() {
		*out--
		l.q.out--
	})
}

// eachHanging runs a test on a queue that spins in Wait and on one that sleeps.
func eachHanging(t *testing.T, test func(t *testing.T, l *leaf, w *Waker)) {
	for name, polled := range map[string]bool{"spinning": true, "sleeping": false} {
		t.Run(name, func(t *testing.T) {
			w := newWaker(t)
			l := newLeaf(t, QueueConfig{Depth: 4, MaxTransfer: leafBlock, Waker: w})
			hangs(t, l, polled)
			test(t, l, w)
		})
	}
}

// A Wait ends when it is woken, while it spins and while it sleeps, however many it
// waits for; a wake that came before it counts, and only once.
func TestWaker(t *testing.T) {
	eachHanging(t, func(t *testing.T, l *leaf, w *Waker) {
		wait := func(timeout time.Duration) time.Duration {
			t.Helper()
			start := time.Now()
			if n, err := l.queue.Wait(3, make([]*Request, 4), timeout); n != 0 || err != nil {
				t.Fatalf("Wait: %d, %v", n, err)
			}
			return time.Since(start)
		}
		const nap = 5 * time.Millisecond
		asleep := func(what string) {
			t.Helper()
			if took := wait(nap); took < nap {
				t.Errorf("%s: a Wait of %v took %v", what, nap, took)
			}
		}
		woken := func(what string) {
			t.Helper()
			if took := wait(wakerPatience); took > wakerPatience/2 {
				t.Fatalf("%s: the wake was lost", what)
			}
		}
		asleep("nobody woke it")
		asleep("nor a second time")
		w.Wake()
		w.Wake()
		woken("woken before")
		asleep("two wakes are one")
		for range 200 {
			delay := time.Duration(rand.IntN(200)) * time.Microsecond
			go func() {
				time.Sleep(delay)
				w.Wake()
			}()
			woken("woken after " + delay.String())
		}
		asleep("all wakes are taken")
	})
}

// The event of a wake that the owner has seen already comes late: the next sleep goes
// on.
func TestWakerLateEvent(t *testing.T) {
	w := newWaker(t)
	l := newLeaf(t, QueueConfig{Depth: 4, MaxTransfer: leafBlock, Waker: w})
	hangs(t, l, false)
	for range 5 {
		if err := w.event.Raise(); err != nil {
			t.Fatal(err)
		}
		const nap = 20 * time.Millisecond
		start := time.Now()
		if n, err := l.queue.Wait(1, make([]*Request, 1), nap); n != 0 || err != nil {
			t.Fatalf("Wait: %d, %v", n, err)
		}
		if took := time.Since(start); took < nap {
			t.Errorf("an event without a wake ended a sleep of %v after %v", nap, took)
		}
	}
}

// Two goroutines hand numbers over as fast as they can. Were a wake ever lost, the
// Wait, which has no timeout, would not end.
func TestWakerRace(t *testing.T) {
	eachHanging(t, func(t *testing.T, l *leaf, w *Waker) {
		const turns = 5000
		var sent, seen atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := int64(1); i <= turns; i++ {
				sent.Store(i)
				w.Wake()
				// Every other time it waits for the answer, so that the owner
				// goes to sleep; in between it wakes one that is awake.
				for start := time.Now(); i%2 == 0 && seen.Load() < i && time.Since(start) < wakerPatience; {
					time.Sleep(time.Microsecond)
				}
			}
		}()
		late := time.AfterFunc(2*wakerPatience, func() { panic("a wake was lost") })
		defer late.Stop()
		for seen.Load() < turns {
			if n, err := l.queue.Wait(1, make([]*Request, 1), -1); n != 0 || err != nil {
				t.Fatalf("Wait: %d, %v", n, err)
			}
			seen.Store(sent.Load())
		}
		<-ended
	})
}

// Wakes without end disturb no I/O. The ring's entries are all taken by it, so that
// the one that waits for the event has to be fitted in.
func TestWakerBesideIO(t *testing.T) {
	w := newWaker(t)
	l := newLeaf(t, QueueConfig{Depth: 8, MaxTransfer: leafBlock, Waker: w})
	var stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stop.Load() {
			w.Wake()
			time.Sleep(10 * time.Microsecond)
		}
	}()
	reqs, done := make([]*Request, 8), make([]*Request, 8)
	for i := range reqs {
		reqs[i] = &Request{Op: Op(i % 3), Offset: int64(i) * leafBlock, Buf: l.q.tree.arena.Bytes()[i*leafBlock:][:leafBlock]}
		if reqs[i].Op == Flush {
			reqs[i].Buf = nil
		}
	}
	for range 200 {
		if n, err := l.queue.Submit(reqs); n != len(reqs) || err != nil {
			t.Fatalf("Submit: %d, %v", n, err)
		}
		for got, start := 0, time.Now(); got < len(reqs); {
			n, err := l.queue.Wait(len(reqs)-got, done, wakerPatience)
			if err != nil || time.Since(start) > wakerPatience {
				t.Fatalf("%d of %d came back: %v", got, len(reqs), err)
			}
			for _, r := range done[:n] {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			got += n
		}
	}
	stop.Store(true)
	<-ended
}

// Who sleeps uses no CPU, armed event or not.
func TestWakerSleeps(t *testing.T) {
	w := newWaker(t)
	l := newLeaf(t, QueueConfig{Depth: 4, MaxTransfer: leafBlock, Waker: w})
	hangs(t, l, false)
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	const nap = 300 * time.Millisecond
	for range 2 {
		before := used()
		if n, err := l.queue.Wait(1, make([]*Request, 1), nap); n != 0 || err != nil {
			t.Fatalf("Wait: %d, %v", n, err)
		}
		if took := used() - before; took > nap/3 {
			t.Errorf("a Wait of %v used %v of CPU", nap, took)
		}
		w.Wake()
		if n, err := l.queue.Wait(1, make([]*Request, 1), wakerPatience); n != 0 || err != nil {
			t.Fatalf("Wait: %d, %v", n, err)
		}
	}
}

func TestWakerClose(t *testing.T) {
	w := newWaker(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Wake()
	w.state.Store(wakerSleeping)
	w.Wake() // writes to nobody's descriptor
	if err := w.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
}
