// SPDX-License-Identifier: Apache-2.0

//go:build linux

package multipath_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
)

// What the drive itself says no to, no other path is asked for.
func TestErrorsOfTheDrive(t *testing.T) {
	for _, err := range []error{syscall.EOPNOTSUPP, syscall.ENODATA, syscall.EILSEQ, syscall.EREMOTEIO, syscall.EBADE, syscall.EINVAL,
		syscall.ENOSPC, poller.ErrAlignment, poller.ErrReadOnly, poller.ErrNotRetried} {
		for _, op := range []poller.Op{poller.Read, poller.Write, poller.Flush} {
			p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover, RetryWrites: true})
			p.faults[0].SetRules(faultdev.Rule{Err: err})
			r := devtest.Open(t, p, poller.QueueConfig{})
			req := request(r, op, 3)
			r.Do(req)
			if !errors.Is(req.Err, err) || p.faults[0].Struck() != 1 || p.did(1) != 0 || !p.live(0) {
				t.Errorf("%v, %v: came back with %v after %d tries and %d over the other path, live: %v",
					op, err, req.Err, p.faults[0].Struck(), p.did(1), p.live(0))
			}
			if s := p.Stats(); s.IO[op][poller.Plain].Errors != 1 || s.Paths[0].Errors != 0 {
				t.Errorf("%v, %v: %d errors counted, of the path %d", op, err, s.IO[op][poller.Plain].Errors, s.Paths[0].Errors)
			}
		}
	}
}

// What may be the path's fault is read over another one at once.
func TestErrorsOfThePath(t *testing.T) {
	for _, err := range []error{syscall.EIO, syscall.ENOLINK, syscall.ETIMEDOUT, syscall.ENODEV, syscall.ENXIO, poller.ErrShort, poller.ErrGone} {
		for _, final := range []bool{false, true} {
			p := newPaths(t, 2, final, multipath.Options{Policy: multipath.Failover})
			copy(p.memory.Bytes()[3*testBlock:], "over the other path")
			p.faults[0].SetRules(faultdev.Rule{Err: err})
			r := devtest.Open(t, p, poller.QueueConfig{})
			req := request(r, poller.Read, 3)
			r.MustDo(req)
			if string(req.Buf[:19]) != "over the other path" {
				t.Errorf("%v: read %q", err, req.Buf[:19])
			}
			s := p.Stats()
			if a, b := s.Paths[0], s.Paths[1]; a.Live || a.Err == nil || a.Errors != 1 || a.Retries != 1 || a.Changes != 1 || !b.Live || b.Errors+b.Changes != 0 {
				t.Errorf("%v: %+v", err, s.Paths)
			}
			if n := s.IO[poller.Read][poller.Polled]; n.Latency.Count() != 1 || n.Errors != 0 {
				t.Errorf("%v: %d reads and %d errors counted", err, n.Latency.Count(), n.Errors)
			}
		}
	}
}

// A bad block that the drive calls EIO is read over each path once, and no path is lost
// for it: the last one has shown that it works.
func TestBadBlockOnEveryPath(t *testing.T) {
	for _, final := range []bool{false, true} {
		p := newPaths(t, 3, final, multipath.Options{})
		for _, f := range p.faults {
			f.SetRules(faultdev.Rule{Ops: faultdev.Reads, From: 8 * testBlock, To: 9 * testBlock, Err: syscall.EIO})
		}
		r := devtest.Open(t, p, poller.QueueConfig{})
		bad, good := request(r, poller.Read, 8), request(r, poller.Read, 9)
		r.Do(bad)
		if !errors.Is(bad.Err, syscall.EIO) || errors.Is(bad.Err, poller.ErrGone) {
			t.Errorf("a bad block: %v", bad.Err)
		}
		for i, f := range p.faults {
			if f.Struck() != 1 {
				t.Errorf("path %d was tried %d times", i, f.Struck())
			}
		}
		r.MustDo(good)
		waitFor(t, "all paths are live", func() bool { return p.live(0) && p.live(1) && p.live(2) })
	}
}

// A write is sent again only where the first copy is sure to be dead.
func TestWritesThatFail(t *testing.T) {
	type verdict struct{ retried, notRetried bool }
	for _, c := range []struct {
		name  string
		final bool
		retry bool // RetryWrites
		err   error
		want  bool // sent again
	}{
		{"PCI, gone", true, false, poller.ErrGone, true},
		{"PCI, EIO of a path that works", true, false, syscall.EIO, false},
		{"PCI, link error of a path that works", true, false, syscall.ENOLINK, false},
		{"PCI, timed out", true, false, syscall.ETIMEDOUT, false},
		{"fabric, gone", false, false, poller.ErrGone, false},
		{"fabric, link error", false, false, syscall.ENOLINK, false},
		{"fabric, timed out", false, false, syscall.ETIMEDOUT, false},
		{"fabric, gone, asked for", false, true, poller.ErrGone, true},
		{"fabric, timed out, asked for", false, true, syscall.ETIMEDOUT, true},
		{"PCI, EIO, asked for", true, true, syscall.EIO, true},
	} {
		for _, op := range []poller.Op{poller.Write, poller.Flush} {
			p := newPaths(t, 2, c.final, multipath.Options{Policy: multipath.Failover, RetryWrites: c.retry})
			rule := faultdev.Rule{Ops: faultdev.Writes | faultdev.Flushes, Err: c.err}
			if errors.Is(c.err, poller.ErrGone) {
				rule.Ops = 0
			}
			p.faults[0].SetRules(rule)
			r := devtest.Open(t, p, poller.QueueConfig{})
			req := request(r, op, 3)
			if op == poller.Write {
				copy(req.Buf, "new")
			}
			r.Do(req)
			got := verdict{req.Err == nil && p.did(1) == 1, errors.Is(req.Err, poller.ErrNotRetried) && p.did(1) == 0}
			if got.retried != c.want || got.notRetried == c.want || errors.Is(req.Err, poller.ErrGone) {
				t.Errorf("%s: %v: %v, %d over the other path; want it sent again: %v", c.name, op, req.Err, p.did(1), c.want)
			}
			if !c.want && !errors.Is(c.err, poller.ErrGone) && !errors.Is(req.Err, c.err) {
				t.Errorf("%s: %v: %v does not say %v", c.name, op, req.Err, c.err)
			}
			if wrote := string(p.memory.Bytes()[3*testBlock:][:3]) == "new"; op == poller.Write && wrote != c.want {
				t.Errorf("%s: written: %v", c.name, wrote)
			}
		}
	}
}

// The kernel fails what was in flight some time before it takes a device away: the write
// waits to know.
func TestGoneALittleLater(t *testing.T) {
	for _, op := range []poller.Op{poller.Write, poller.Flush} {
		p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
		// Whoever asks whether it works does not get an answer that says more.
		p.faults[0].SetRules(faultdev.Rule{Err: syscall.ENOLINK})
		r := devtest.Open(t, p, poller.QueueConfig{})
		req := request(r, op, 3)
		r.Submit(req)
		done := make([]*poller.Request, 1)
		for start := time.Now(); time.Since(start) < 50*time.Millisecond; {
			if n, err := r.Queue.Poll(done); n != 0 || err != nil {
				t.Fatalf("%v: it came back before anybody could know: %v, %v", op, done[0].Err, err)
			}
		}
		p.vanish(0)
		r.Drain()
		if req.Err != nil || p.did(1) != 1 {
			t.Errorf("%v: %v, %d over the other path", op, req.Err, p.did(1))
		}
	}
}

// A write that timed out is not sent again even where its path is gone by then.
func TestTimedOutThenGone(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
	p.faults[0].SetRules(faultdev.Rule{Ops: faultdev.Writes, Times: 1, Err: syscall.ETIMEDOUT}, faultdev.Rule{Err: poller.ErrGone})
	r := devtest.Open(t, p, poller.QueueConfig{})
	write := request(r, poller.Write, 3)
	if r.Do(write); !errors.Is(write.Err, poller.ErrNotRetried) || !errors.Is(write.Err, syscall.ETIMEDOUT) || p.did(1) != 0 {
		t.Errorf("%v, %d over the other path", write.Err, p.did(1))
	}
}

// A path that was gone and is back may be tried again by what it had failed.
func TestTriedInAnotherLife(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.RoundRobin})
	r := devtest.Open(t, p, poller.QueueConfig{})
	p.vanish(1)
	r.MustDo(request(r, poller.Read, 0), request(r, poller.Read, 0)) // the second finds out
	p.faults[0].SetRules(faultdev.Rule{Err: syscall.EIO})
	write := request(r, poller.Write, 3)
	r.Submit(write)
	done := make([]*poller.Request, 1)
	for p.live(0) {
		if n, err := r.Queue.Poll(done); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	// Nobody polls while it goes, and comes back.
	changes := p.Stats().Paths[0].Changes
	p.vanish(0)
	waitFor(t, "path 0 is gone", func() bool { return errors.Is(p.Stats().Paths[0].Err, poller.ErrGone) })
	p.comeBack(0)
	waitFor(t, "path 0 is back", func() bool { return p.live(0) && p.Stats().Paths[0].Changes > changes })
	if r.Drain(); write.Err != nil {
		t.Error(write.Err)
	}
}

// A path that always has something does not keep another one from being heard, which
// has what was sent over it while it was the first.
func TestEveryPathIsHeard(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
	r := devtest.Open(t, p, poller.QueueConfig{Depth: 8})
	p.vanish(0)
	r.MustDo(request(r, poller.Read, 0))
	gate := new(faultdev.Gate)
	p.faults[1].SetRules(faultdev.Rule{Hold: gate})
	late := request(r, poller.Read, 1)
	r.Submit(late)
	p.comeBack(0)
	waitFor(t, "path 0 is back", func() bool { return p.live(0) })
	for i := range int64(4) {
		r.Submit(request(r, poller.Read, 2+i))
	}
	gate.Release()
	done := make([]*poller.Request, 1)
	for turn := 0; ; turn++ {
		n, err := r.Queue.Wait(1, done, devtest.Patience)
		if n != 1 || err != nil {
			t.Fatal(n, err)
		}
		r.Take(done)
		if done[0] == late {
			break
		}
		if turn > 100 {
			t.Fatal("100 requests of the first path came back, and not that of the second")
		}
		r.Submit(done[0])
	}
	r.Drain()
}

// A path that stays unsure costs a write a second, no more.
func TestNeverSure(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
	p.faults[0].SetRules(faultdev.Rule{Err: syscall.ENOLINK})
	r := devtest.Open(t, p, poller.QueueConfig{})
	write := request(r, poller.Write, 3)
	r.Do(write)
	if !errors.Is(write.Err, poller.ErrNotRetried) || !errors.Is(write.Err, syscall.ENOLINK) || p.did(1) != 0 {
		t.Errorf("%v, %d over the other path", write.Err, p.did(1))
	}
}

// EAGAIN is no fault of a path.
func TestAgainOnAPath(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
	p.faults[0].SetRules(faultdev.Rule{Err: syscall.EAGAIN, Times: 100})
	r := devtest.Open(t, p, poller.QueueConfig{})
	for _, op := range []poller.Op{poller.Read, poller.Write, poller.Flush} {
		r.MustDo(request(r, op, 1))
	}
	if s := p.Stats(); s.Retries != 100 || s.Paths[0].Errors != 0 || p.did(1) != 0 {
		t.Errorf("%d times again, %d errors, %d over the other path", s.Retries, s.Paths[0].Errors, p.did(1))
	}
	p.faults[0].SetRules(faultdev.Rule{Err: syscall.EAGAIN})
	now := request(r, poller.Read, 1)
	now.Flags |= poller.NoWait
	if r.Do(now); !errors.Is(now.Err, syscall.EAGAIN) {
		t.Errorf("one that does not wait: %v", now.Err)
	}
}

// Case 24: one path dies under load, and no read or write error reaches the caller; the
// healthy path is not touched. A write that timed out, or was sent over a fabric that
// broke, is not sent again unless asked for.
func TestCase24(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{})
	r := devtest.Open(t, p, poller.QueueConfig{Depth: 32})
	var reqs []*poller.Request
	for i := range 32 {
		reqs = append(reqs, request(r, poller.Op(i%2), int64(i)))
	}
	for round := range 50 {
		if round == 20 {
			p.vanish(0)
		}
		r.MustDo(reqs...)
	}
	if s := p.Stats().Paths; s[0].Live || s[0].Errors == 0 || s[0].Errors != s[0].Retries || !s[1].Live || s[1].Changes+s[1].Errors != 0 {
		t.Errorf("%+v", s)
	}
	for _, c := range []struct {
		final bool
		err   error
	}{{true, syscall.ETIMEDOUT}, {false, syscall.ENOLINK}} {
		p := newPaths(t, 2, c.final, multipath.Options{Policy: multipath.Failover})
		p.faults[0].SetRules(faultdev.Rule{Ops: faultdev.Writes, Err: c.err})
		r := devtest.Open(t, p, poller.QueueConfig{})
		write := request(r, poller.Write, 0)
		if r.Do(write); !errors.Is(write.Err, poller.ErrNotRetried) || p.did(1) != 0 {
			t.Errorf("%v: %v, %d over the other path", c.err, write.Err, p.did(1))
		}
	}
}
