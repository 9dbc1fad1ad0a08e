// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestIndicesWrap(t *testing.T) {
	for _, entries := range []uint32{1, 4, 8} {
		r := newRing(t, Config{Entries: entries, CQEntries: entries})
		var sent, seen uint64
		// Batches of every size, so that they begin and end everywhere.
		for round := range uint32(5000) {
			batch := round%entries + 1
			for range batch {
				pushNop(t, r, sent)
				sent++
			}
			enter(t, r)
			if got := r.Ready(); got != batch {
				t.Fatalf("%d entries, round %d: %d completions of %d", entries, round, got, batch)
			}
			// In two steps, as a caller does whose own list is full.
			for _, part := range []uint32{batch / 2, batch - batch/2} {
				for i := range part {
					if cqe := r.CQE(i); cqe.UserData != seen || cqe.Res != 0 {
						t.Fatalf("%d entries, round %d: completion %+v, want user data %d", entries, round, *cqe, seen)
					}
					seen++
				}
				r.Advance(part)
			}
		}
	}
}

func TestFullSubmissionRing(t *testing.T) {
	r := newRing(t, Config{Entries: 4})
	sq, cq := r.Entries()
	if sq != 4 || cq != 8 {
		t.Fatalf("Entries() = %d, %d, want 4, 8", sq, cq)
	}
	for round := range uint64(3) {
		for i := range uint64(sq) {
			pushNop(t, r, round<<8|i)
		}
		for range 2 {
			if r.SQE() != nil {
				t.Fatal("an entry beyond the end of the submission ring")
			}
		}
		if got := r.Pending(); got != sq {
			t.Fatalf("Pending() = %d, want %d", got, sq)
		}
		enter(t, r)
		if got := r.Pending(); got != 0 {
			t.Fatalf("Pending() = %d after Enter", got)
		}
		for i, cqe := range await(t, r, sq) {
			if want := round<<8 | uint64(i); cqe.UserData != want {
				t.Fatalf("user data %#x, want %#x", cqe.UserData, want)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for _, tt := range []struct {
		cfg    Config
		sq, cq uint32
	}{
		{Config{}, 1, 2},
		{Config{Entries: 5}, 8, 16},
		{Config{Entries: 8, CQEntries: 100}, 8, 128},
		{Config{Entries: 4, CQEntries: 4}, 4, 4},
		{Config{Entries: 4 * MaxEntries}, MaxEntries, 2 * MaxEntries},
	} {
		r := newRing(t, tt.cfg)
		if sq, cq := r.Entries(); sq != tt.sq || cq != tt.cq {
			t.Errorf("%+v: %d and %d entries, want %d and %d", tt.cfg, sq, cq, tt.sq, tt.cq)
		}
		if r.SetupFlags()&setupIOPoll != 0 || r.SetupFlags()&setupSubmitAll == 0 {
			t.Errorf("%+v: setup flags %#x", tt.cfg, r.SetupFlags())
		}
	}
}

func TestNewRefused(t *testing.T) {
	before := len(descriptors())
	r, err := New(Config{Entries: 8, CQEntries: 4})
	if !errors.Is(err, unix.EINVAL) || r != nil {
		t.Fatalf("completion ring smaller than the submission ring: %v, %v", r, err)
	}
	if after := len(descriptors()); after != before {
		t.Fatalf("%d descriptors before, %d after", before, after)
	}
}

func TestCloseTwice(t *testing.T) {
	r := newRing(t, Config{Entries: 4})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	// The descriptor that the ring had is now this one, and must stay open.
	fd := eventfd(t)
	if err := r.Close(); !errors.Is(err, os.ErrClosed) {
		t.Fatalf("second Close: %v", err)
	}
	signal(t, fd)
}

func TestCloseInFlight(t *testing.T) {
	fd := eventfd(t)
	m := newMemory(t, 4096)
	before := len(descriptors())
	for range 50 {
		r := newRing(t, Config{Entries: 4})
		push(t, r, SQE{Opcode: OpRead, FD: int32(fd), Addr: mustAddr(t, m, m.Bytes()[:8]), Len: 8})
		pushNop(t, r, 1)
		enter(t, r)
		if got := reap(r); len(got) != 1 || got[0].UserData != 1 {
			t.Fatalf("completions %+v, want that of the NOP alone", got)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if after := len(descriptors()); after != before {
		t.Fatalf("%d descriptors before, %d after", before, after)
	}
	if left := ringsLeft(); left != nil {
		t.Fatal(left)
	}
}

func TestNoAllocations(t *testing.T) {
	r := newRing(t, Config{Entries: 8})
	fd := eventfd(t)
	var failed error
	allocs := testing.AllocsPerRun(500, func() {
		for i := range uint64(8) {
			*r.SQE() = SQE{Opcode: OpNop, UserData: i}
		}
		if err := r.Enter(); err != nil {
			failed = err
		}
		for i := range r.Ready() {
			if r.CQE(i).Res != 0 {
				failed = errors.New("NOP failed")
			}
		}
		r.Advance(r.Ready())
		*r.SQE() = SQE{Opcode: OpFsync, FD: int32(fd)} // an eventfd has none: EINVAL at once
		for r.Ready() == 0 && failed == nil {          // a signal ends a wait early
			failed = r.EnterWait(1, 1e9)
		}
		r.Advance(r.Ready())
		// A wait that runs out is no error and allocates none.
		if err := r.EnterWait(1, 1); err != nil {
			failed = err
		}
	})
	if failed != nil {
		t.Fatal(failed)
	}
	if allocs != 0 {
		t.Fatalf("%v allocations in a round", allocs)
	}
}
