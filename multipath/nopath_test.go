// SPDX-License-Identifier: Apache-2.0

package multipath_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
)

// some are requests of all kinds.
func some(r *devtest.Rig) []*poller.Request {
	return []*poller.Request{request(r, poller.Read, 0), request(r, poller.Write, 1), request(r, poller.Flush, 0), request(r, poller.Write, 2)}
}

// With no path left requests wait, and go on when one is back: those that were out when
// the last one was lost, and later ones.
func TestNoPathForAWhile(t *testing.T) {
	for back := range 2 {
		p := newPaths(t, 2, true, multipath.Options{NoPathTimeout: time.Minute})
		r := devtest.Open(t, p, poller.QueueConfig{Depth: 16})
		before, after := some(r), some(r)
		p.vanish(0)
		p.vanish(1)
		r.Submit(before...)
		done := make([]*poller.Request, 16)
		for start := time.Now(); time.Since(start) < 30*time.Millisecond; {
			if n, err := r.Queue.Poll(done); n != 0 || err != nil {
				t.Fatalf("%d came back without a path, %v", n, err)
			}
		}
		if p.live(0) || p.live(1) {
			t.Fatal("a path that is gone is live")
		}
		r.Submit(after...)
		if n, err := r.Queue.Wait(1, done, 20*time.Millisecond); n != 0 || err != nil {
			t.Fatalf("%d came back without a path, %v", n, err)
		}
		p.comeBack(back)
		r.Drain()
		for _, req := range append(before, after...) {
			if req.Err != nil {
				t.Errorf("path %d came back: %v", back, req.Err)
			}
		}
	}
}

// A request that would have to wait, and is not to, is told so.
func TestNoPathNoWait(t *testing.T) {
	p := newPaths(t, 1, true, multipath.Options{NoPathTimeout: time.Minute})
	r := devtest.Open(t, p, poller.QueueConfig{})
	p.vanish(0)
	for range 2 {
		read := request(r, poller.Read, 0)
		read.Flags |= poller.NoWait
		if r.Do(read); !errors.Is(read.Err, syscall.EAGAIN) {
			t.Errorf("%v, want %v", read.Err, syscall.EAGAIN)
		}
	}
	p.comeBack(0)
	waitFor(t, "it is back", func() bool { return p.live(0) })
	r.MustDo(request(r, poller.Read, 0))
}

// When none comes back in time the drive is gone, and stays so.
func TestNoPathForTooLong(t *testing.T) {
	for _, timeout := range []time.Duration{50 * time.Millisecond, -1} {
		p := newPaths(t, 2, true, multipath.Options{Name: "the drive", NoPathTimeout: timeout})
		r := devtest.Open(t, p, poller.QueueConfig{Depth: 16})
		p.vanish(0)
		p.vanish(1)
		check := func(reqs []*poller.Request) {
			t.Helper()
			r.Do(reqs...)
			for _, req := range reqs {
				var typed *poller.Error
				if !errors.Is(req.Err, poller.ErrGone) || !errors.As(req.Err, &typed) || typed.Path != "the drive" || typed.Op != req.Op ||
					!strings.Contains(req.Err.Error(), "path0") || !strings.Contains(req.Err.Error(), "path1") {
					t.Errorf("timeout %v: %v", timeout, req.Err)
				}
			}
		}
		start := time.Now()
		check(some(r))
		if took := time.Since(start); took < timeout {
			t.Errorf("gave up after %v, before %v", took, timeout)
		}
		p.comeBack(0)
		for range 3 {
			check(some(r))
		}
		if p.did(0)+p.did(1) != 0 {
			t.Error("a drive that was given up was used")
		}
	}
}

// All paths fail what they are given, and are not gone: whoever asks them finds that out.
func TestNoPathThatWorks(t *testing.T) {
	p := newPaths(t, 2, false, multipath.Options{NoPathTimeout: time.Minute})
	for _, f := range p.faults {
		f.SetRules(faultdev.Rule{Err: syscall.ENOLINK})
	}
	r := devtest.Open(t, p, poller.QueueConfig{})
	read := request(r, poller.Read, 0)
	r.Submit(read)
	done := make([]*poller.Request, 1)
	for p.live(0) || p.live(1) {
		if n, err := r.Queue.Wait(1, done, time.Millisecond); n != 0 || err != nil {
			t.Fatalf("it came back: %v, %v", read.Err, err)
		}
	}
	p.comeBack(1)
	if r.Drain(); read.Err != nil {
		t.Error(read.Err)
	}
}

// Close gives up on what waits for a path.
func TestCloseWithoutPath(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{NoPathTimeout: time.Minute})
	q, err := p.NewQueue(poller.QueueConfig{CloseTimeout: 30 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := devtest.Around(t, q)
	p.vanish(0)
	p.vanish(1)
	reqs := some(r)
	r.Submit(reqs...)
	if err := q.Close(); !errors.Is(err, poller.ErrNotDrained) {
		t.Errorf("Close: %v", err)
	}
	for _, req := range reqs {
		if !errors.Is(req.Err, poller.ErrNotDrained) {
			t.Errorf("%v: %v", req.Op, req.Err)
		}
	}
}

// A device that cannot be asked is read from, and that is no I/O of anybody's.
func TestAskedByARead(t *testing.T) {
	memory := faultdev.NewMemory(testSize, testBlock, faultdev.MemoryOptions{Name: "a"})
	fault := faultdev.New(memory, faultdev.Rule{Times: 3, Err: syscall.EIO})
	m, err := multipath.New([]poller.Device{hidden{fault}, memory.Share(faultdev.MemoryOptions{Name: "b"})}, multipath.Options{Policy: multipath.Failover})
	if err != nil {
		t.Fatal(err)
	}
	devtest.Close(t, m)
	r := devtest.Open(t, m, poller.QueueConfig{})
	r.MustDo(request(r, poller.Read, 0))
	if m.Stats().Paths[0].Live {
		t.Error("the path that failed is live")
	}
	waitFor(t, "it is live", func() bool { return m.Stats().Paths[0].Live })
	r.MustDo(request(r, poller.Read, 1))
	if s := m.Stats(); completed(s) != 2 || s.Paths[0].Changes != 2 || completed(s.Members[0]) < 2 {
		t.Errorf("%d I/Os of 2, %d over the path, with those to ask it, %d changes", completed(s), completed(s.Members[0]), s.Paths[0].Changes)
	}
}

// hidden has no method but those of a device.
type hidden struct{ poller.Device }
