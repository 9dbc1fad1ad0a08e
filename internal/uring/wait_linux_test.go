// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWaitTimeout(t *testing.T) {
	r := newRing(t, Config{Entries: 4})
	for _, timeout := range []time.Duration{0, 20 * time.Millisecond} {
		slept := false
		// A signal of the Go scheduler may cut one short.
		for attempt := 0; attempt < 20 && !slept; attempt++ {
			start := time.Now()
			if err := r.EnterWait(1, timeout); err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			if took > timeout+patience {
				t.Errorf("EnterWait(1, %v) took %v", timeout, took)
			}
			slept = took >= timeout
		}
		if !slept {
			t.Errorf("EnterWait(1, %v) never took as long as that", timeout)
		}
		if r.Ready() != 0 {
			t.Fatal("a completion of nothing")
		}
	}
}

func TestWaitForMany(t *testing.T) {
	for _, timeout := range []time.Duration{-1, time.Minute} {
		r := newRing(t, Config{Entries: 4})
		fd := eventfd(t)
		m := newMemory(t, 4096)
		push(t, r, SQE{Opcode: OpRead, FD: int32(fd), Addr: mustAddr(t, m, m.Bytes()[:8]), Len: 8, UserData: 7})
		pushNop(t, r, 8)
		start := time.Now()
		time.AfterFunc(10*time.Millisecond, func() { signal(t, fd) })
		for r.Ready() < 2 {
			if err := r.EnterWait(2, timeout); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took < 10*time.Millisecond || took > patience {
			t.Errorf("EnterWait(2, %v) took %v, want at least 10ms", timeout, took)
		}
		got := inOrder(reap(r))
		if len(got) != 2 || got[0] != (CQE{UserData: 7, Res: 8}) || got[1] != (CQE{UserData: 8}) {
			t.Errorf("completions %+v", got)
		}
	}
}

// What is ready before the wait ends it at once, and the entries go along.
func TestWaitForReady(t *testing.T) {
	r := newRing(t, Config{Entries: 4})
	pushNop(t, r, 1)
	enter(t, r)
	pushNop(t, r, 2)
	for _, n := range []uint32{0, 1, 2} {
		if err := r.EnterWait(n, -1); err != nil {
			t.Fatal(err)
		}
		if r.Ready() != 2 || r.Pending() != 0 {
			t.Fatalf("EnterWait(%d, -1): Ready() = %d, Pending() = %d", n, r.Ready(), r.Pending())
		}
	}
}

func TestSignalsWhileWaiting(t *testing.T) {
	for _, timeout := range []time.Duration{-1, time.Minute} {
		testSignals(t, timeout)
	}
}

func testSignals(t *testing.T, timeout time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := newRing(t, Config{Entries: 4})
	fd := eventfd(t)
	m := newMemory(t, 4096)
	addr := mustAddr(t, m, m.Bytes()[:8])

	var stop atomic.Bool
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop.Store(true)
	pid, tid := unix.Getpid(), unix.Gettid()
	helpers.Go(func() {
		// The runtime's own signal for preemption: a handler is there, and a
		// stray one is ignored.
		for !stop.Load() {
			if err := unix.Tgkill(pid, tid, unix.SIGURG); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(20 * time.Microsecond)
		}
	})
	early := 0
	for round := range uint64(100) {
		push(t, r, SQE{Opcode: OpRead, FD: int32(fd), Addr: addr, Len: 8, UserData: round << 1})
		pushNop(t, r, round<<1|1)
		helpers.Go(func() {
			time.Sleep(500 * time.Microsecond)
			signal(t, fd)
		})
		for r.Ready() < 2 {
			if err := r.EnterWait(2, timeout); err != nil {
				t.Fatal(err)
			}
			if r.Ready() < 2 {
				early++
			}
		}
		if r.Pending() != 0 {
			t.Fatalf("%d entries not taken", r.Pending())
		}
		got := inOrder(reap(r))
		if len(got) != 2 || got[0] != (CQE{UserData: round << 1, Res: 8}) || got[1] != (CQE{UserData: round<<1 | 1}) {
			t.Fatalf("round %d: completions %+v", round, got)
		}
	}
	if early == 0 {
		t.Fatal("no wait was interrupted: this has tested nothing")
	}
	t.Logf("timeout %v: %d waits were interrupted", timeout, early)
}
