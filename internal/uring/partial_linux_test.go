// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"cmp"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// With SUBMIT_ALL a bad entry fails alone.
func TestBadEntryStopsNone(t *testing.T) {
	r := newRing(t, Config{Entries: 8})
	for i := range uint64(8) {
		push(t, r, SQE{Opcode: OpNop, UserData: i})
	}
	enter(t, r) // so that the bad one is not at the start of the ring
	reap(r)
	for i := range uint64(5) {
		if i == 1 || i == 2 {
			push(t, r, SQE{Opcode: badOpcode, UserData: i})
		} else {
			pushNop(t, r, i)
		}
	}
	enter(t, r)
	if got := r.Pending(); got != 0 {
		t.Fatalf("%d entries not taken", got)
	}
	checkBatch(t, await(t, r, 5), 0)
}

// A kernel that takes fewer entries than offered. With SUBMIT_ALL it does so
// only when it runs out of memory for requests; without, at a bad entry.
func TestPartialEnter(t *testing.T) {
	for _, wait := range []bool{false, true} {
		r := newRing(t, Config{Entries: 8, stopAtBad: true})
		if r.SetupFlags()&setupSubmitAll != 0 {
			t.Fatal("SUBMIT_ALL was not asked for")
		}
		call := r.Enter
		if wait {
			call = func() error { return r.EnterWait(0, 0) }
		}
		for round := range 5 { // so that the stops are all over the ring
			for i := range uint64(5) {
				if i == 1 || i == 2 {
					push(t, r, SQE{Opcode: badOpcode, UserData: i})
				} else {
					pushNop(t, r, i)
				}
			}
			for _, left := range []uint32{3, 2, 0} {
				if err := call(); err != nil {
					t.Fatal(err)
				}
				if got := r.Pending(); got != left {
					t.Fatalf("round %d: Pending() = %d, want %d", round, got, left)
				}
				if got := r.Ready(); got != 5-left {
					t.Fatalf("round %d: Ready() = %d with %d pending", round, got, left)
				}
				if left == 3 {
					// What is free can be used before the rest has been taken.
					for i := range 8 - left {
						pushNop(t, r, uint64(5+i))
					}
					if r.SQE() != nil {
						t.Fatal("an entry that the kernel has not taken was given out")
					}
					break
				}
			}
			for r.Pending() != 0 {
				if err := call(); err != nil {
					t.Fatal(err)
				}
			}
			checkBatch(t, await(t, r, 10), 5)
		}
	}
}

// checkBatch checks a batch whose entries 1 and 2 were bad, and more good ones
// behind it.
func checkBatch(t *testing.T, got []CQE, more int) {
	t.Helper()
	if len(got) != 5+more {
		t.Fatalf("%d completions, want %d: %+v", len(got), 5+more, got)
	}
	// Linux 6.1 completes a bad entry before the good ones that precede it.
	slices.SortFunc(got, func(a, b CQE) int { return cmp.Compare(a.UserData, b.UserData) })
	for i, cqe := range got {
		want := CQE{UserData: uint64(i)}
		if i == 1 || i == 2 {
			want.Res = -int32(unix.EINVAL)
		}
		if cqe != want {
			t.Errorf("completion %d is %+v, want %+v", i, cqe, want)
		}
	}
}
