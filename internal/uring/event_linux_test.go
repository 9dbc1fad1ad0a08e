// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newEvent(tb testing.TB) *Event {
	tb.Helper()
	e, err := NewEvent()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			tb.Error(err)
		}
	})
	return e
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// An event ends a sleep in a ring once for each time that it is armed, whether it
// is raised before or in the meantime, and however often.
func TestEvent(t *testing.T) {
	r, e := newRing(t, Config{Entries: 2}), newEvent(t)
	arm := func() { push(t, r, SQE{Opcode: OpPollAdd, FD: e.FD(), OpFlags: PollIn, UserData: 7}) }
	woken := func() {
		t.Helper()
		got := await(t, r, 1)
		if len(got) != 1 || got[0].UserData != 7 || got[0].Res != PollIn {
			t.Fatalf("completions %+v, want one with 7 and %d", got, PollIn)
		}
	}
	for raises := 1; raises <= 3; raises++ { // before
		for range raises {
			must(t, e.Raise())
		}
		arm()
		woken()
		must(t, e.Drain())
	}
	for range 3 { // during the sleep
		arm()
		go func() {
			time.Sleep(time.Millisecond)
			if err := e.Raise(); err != nil {
				t.Error(err)
			}
		}()
		woken()
		must(t, e.Drain())
	}
	// Drained, it wakes nobody.
	arm()
	must(t, r.EnterWait(1, 10*time.Millisecond))
	if n := r.Ready(); n != 0 {
		t.Errorf("%d completions of an event that nobody raised", n)
	}
	must(t, e.Drain()) // and draining does not sleep
}

// What is full is raised: Raise does not sleep in it.
func TestEventFull(t *testing.T) {
	e := newEvent(t)
	full := [8]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if _, err := unix.Write(int(e.FD()), full[:]); err != nil {
		t.Fatal(err)
	}
	must(t, e.Raise())
	must(t, e.Drain())
	must(t, e.Close())
	if err := e.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	if err := e.Raise(); err == nil {
		t.Error("a closed event was raised")
	}
	if err := e.Drain(); err == nil {
		t.Error("a closed event was drained")
	}
}
