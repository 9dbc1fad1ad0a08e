// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"testing"
)

// A completion ring of 4 entries, and 200 in flight.
func TestOverflow(t *testing.T) {
	const size, total = 4, 200
	for _, tt := range []struct {
		name string
		// bring moves completions that the kernel kept aside into the ring.
		bring func(*Ring) error
	}{
		{"Flush", (*Ring).Flush},
		{"EnterWait", func(r *Ring) error { return r.EnterWait(1, 0) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRing(t, Config{Entries: size, CQEntries: size})
			if r.Overflowed() {
				t.Fatal("overflowed before anything was submitted")
			}
			for i := range uint64(total) {
				pushNop(t, r, i)
				if r.Pending() == size {
					enter(t, r)
				}
			}
			if !r.Overflowed() {
				t.Fatalf("%d completions in a ring of %d, and Overflowed() = false", total, size)
			}
			for seen := uint64(0); seen < total; {
				got := reap(r)
				for _, cqe := range got {
					if cqe.UserData != seen || cqe.Res != 0 {
						t.Fatalf("completion %+v, want user data %d", cqe, seen)
					}
					seen++
				}
				if len(got) == 0 && !r.Overflowed() {
					t.Fatalf("%d completions of %d, then nothing", seen, total)
				}
				if err := tt.bring(r); err != nil {
					t.Fatal(err)
				}
			}
			if r.Overflowed() || r.Ready() != 0 {
				t.Fatalf("all reaped, and Overflowed() = %v, Ready() = %d", r.Overflowed(), r.Ready())
			}
		})
	}
}

// Real I/O that outnumbers the completion ring while it is in flight.
func TestOverflowByReads(t *testing.T) {
	const size, total = 2, 64
	r := newRing(t, Config{Entries: size, CQEntries: size})
	fd := eventfd(t)
	m := newMemory(t, 8*total)
	for i := range total {
		push(t, r, SQE{Opcode: OpRead, FD: int32(fd), Addr: mustAddr(t, m, m.Bytes()[8*i:8*i+8]), Len: 8, UserData: uint64(i)})
		if r.Pending() == size {
			enter(t, r)
		}
	}
	if r.Ready() != 0 {
		t.Fatal("a read of an eventfd of 0 has ended")
	}
	seen := map[uint64]bool{}
	for len(seen) < total {
		signal(t, fd) // one read each time, or more where several were woken
		for r.Ready() == 0 {
			if err := r.EnterWait(1, 10e6); err != nil {
				t.Fatal(err)
			}
			if r.Ready() == 0 {
				signal(t, fd)
			}
		}
		if len(seen) < total/2 && r.Ready() < size {
			continue // leave them lying until the ring is full
		}
		for _, cqe := range reap(r) {
			if seen[cqe.UserData] || cqe.Res != 8 {
				t.Fatalf("completion %+v, seen before: %v", cqe, seen[cqe.UserData])
			}
			seen[cqe.UserData] = true
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}
