// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// poll enters until there were n completions.
func poll(t *testing.T, r *Ring, n int) (got []CQE) {
	t.Helper()
	for end := time.Now().Add(patience); len(got) < n; {
		enter(t, r)
		// An IOPOLL ring looks for more only while none is waiting to be read.
		got = append(got, reap(r)...)
		if time.Now().After(end) {
			t.Fatalf("%d completions of %d after %v", len(got), n, patience)
		}
	}
	return got
}

func TestPolledNop(t *testing.T) {
	r := newRing(t, Config{Entries: 4, IOPoll: true})
	if r.SetupFlags()&setupIOPoll == 0 {
		t.Fatal("not an IOPOLL ring")
	}
	for round := range uint64(100) {
		for i := range uint64(4) {
			pushNop(t, r, round<<2|i)
		}
		got := poll(t, r, 4)
		for i, cqe := range got {
			if cqe != (CQE{UserData: round<<2 | uint64(i)}) {
				t.Fatalf("round %d: completions %+v", round, got)
			}
		}
	}
}

// Entering an IOPOLL ring with nothing in flight returns.
func TestPolledIdle(t *testing.T) {
	r := newRing(t, Config{Entries: 4, IOPoll: true})
	enter(t, r)
	for _, timeout := range []time.Duration{0, time.Millisecond, -1} {
		if err := r.EnterWait(0, timeout); err != nil {
			t.Fatal(err)
		}
	}
	if r.Ready() != 0 {
		t.Fatal("a completion of nothing")
	}
}

// A file without poll queues beneath: one completion, which says so.
func TestPolledReadRefused(t *testing.T) {
	direct := directFile(t, 4096)
	buffered, err := unix.MemfdCreate("buffered", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(buffered)
	m := newMemory(t, 4096)
	// A read of a hole asks no device, and would succeed.
	for _, fd := range []int{direct, buffered} {
		if n, err := unix.Pwrite(fd, m.Bytes(), 0); n != 4096 || err != nil {
			t.Fatalf("pwrite: %d, %v", n, err)
		}
	}
	if err := unix.Fsync(direct); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		fd   int
	}{{"buffered", buffered}, {"direct", direct}} {
		r := newRing(t, Config{Entries: 4, IOPoll: true})
		push(t, r, SQE{Opcode: OpRead, FD: int32(tt.fd), Addr: mustAddr(t, m, m.Bytes()), Len: 4096, UserData: 9})
		got := poll(t, r, 1)
		for range 100 {
			enter(t, r)
		}
		got = append(got, reap(r)...)
		if len(got) != 1 || got[0].UserData != 9 {
			t.Fatalf("%s: completions %+v, want one", tt.name, got)
		}
		switch res := got[0].Res; {
		case res == -int32(unix.EOPNOTSUPP):
		case tt.fd == direct && res == 4096 && !kernelAtLeast(t, 6, 12):
			// Until then the kernel completed it by interrupt and said nothing.
		default:
			t.Errorf("%s: result %d, want %d", tt.name, res, -int32(unix.EOPNOTSUPP))
		}
	}
}

// Only reads, writes and NOPs go on an IOPOLL ring.
func TestPolledFsyncRefused(t *testing.T) {
	fd := directFile(t, 4096)
	r := newRing(t, Config{Entries: 4, IOPoll: true})
	push(t, r, SQE{Opcode: OpFsync, FD: int32(fd), UserData: 3})
	if got := poll(t, r, 1); len(got) != 1 || got[0] != (CQE{UserData: 3, Res: -int32(unix.EINVAL)}) {
		t.Fatalf("completions %+v", got)
	}
}

// Real polled reads, where there is a drive for them.
func TestPolledReads(t *testing.T) {
	path := os.Getenv("POLLUX_TEST_POLLED")
	if path == "" {
		t.Skip("POLLUX_TEST_POLLED names no block device that has poll queues")
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	const block, depth, rounds, span = 4096, 16, 200, 4 << 20
	m := newMemory(t, depth*block)
	want := newMemory(t, span).Bytes()
	if n, err := unix.Pread(fd, want, 0); err != nil || n != span {
		t.Fatalf("pread: %d, %v", n, err)
	}
	r := newRing(t, Config{Entries: depth, IOPoll: true})
	if err := r.RegisterFiles([]int32{int32(fd)}); err != nil {
		t.Fatal(err)
	}
	if err := r.RegisterMemory(m); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed(t), 2))
	for round := range rounds {
		var pos [depth]int
		for i := range pos {
			pos[i] = block * rng.IntN(span/block)
			sqe := SQE{Opcode: OpReadFixed, Flags: FixedFile, Off: uint64(pos[i]), Addr: mustAddr(t, m, m.Bytes()[block*i:][:block]), Len: block, UserData: uint64(i)}
			if rng.IntN(2) == 0 {
				sqe.Opcode, sqe.Flags, sqe.FD = OpRead, 0, int32(fd)
			}
			push(t, r, sqe)
		}
		clear(m.Bytes())
		for _, cqe := range poll(t, r, depth) {
			i := int(cqe.UserData)
			if cqe.Res != block || !bytes.Equal(m.Bytes()[block*i:][:block], want[pos[i]:][:block]) {
				t.Fatalf("round %d, read at %d: result %d, or other bytes than pread", round, pos[i], cqe.Res)
			}
		}
	}
}
