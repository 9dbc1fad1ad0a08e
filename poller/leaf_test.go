// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/internal/uring"
)

// What a kernel seldom says is put into its mouth: the completion is real, and
// is changed in the ring before the queue reads it.

const leafBlock = 4096

type leaf struct {
	t *testing.T
	d *Disk
	// queue is what callers have, q the leaf behind it.
	queue Queue
	q     *diskQueue
}

func newLeaf(t *testing.T, cfg QueueConfig) *leaf {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 64*leafBlock), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path, OpenOptions{Write: true, Polling: PollIfPossible})
	if errors.Is(err, blockdev.ErrNoDirectIO) {
		t.Skipf("%v: set TMPDIR", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	SetCaps(d, leafBlock, 64)
	q, err := d.NewQueue(cfg)
	if errors.Is(err, ErrNotAllowed) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return &leaf{t, d, q, (*Tree)(q.(*rootQueue)).root.(*diskQueue)}
}

// request is of n blocks.
func (l *leaf) request(op Op, flags Flags, n int) *Request {
	return &Request{Op: op, Flags: flags, Buf: l.q.tree.arena.Bytes()[:n*leafBlock]}
}

// completions submits r and returns its completions, which the queue has not
// seen.
func (l *leaf) completions(r *Request, n uint32) []*uring.CQE {
	l.t.Helper()
	if got, err := l.queue.Submit([]*Request{r}); got != 1 || err != nil {
		l.t.Fatalf("Submit: %d, %v", got, err)
	}
	ring := l.q.tree.plain
	for start := time.Now(); ring.Ready() < n; {
		if err := ring.Enter(); err != nil {
			l.t.Fatal(err)
		}
		runtime.Gosched()
		if time.Since(start) > 20*time.Second {
			l.t.Fatalf("%d completions of %d", ring.Ready(), n)
		}
	}
	var cqes []*uring.CQE
	for i := range n {
		cqes = append(cqes, ring.CQE(i))
	}
	return cqes
}

func (l *leaf) poll() (int, error) { return l.queue.Poll(make([]*Request, 4)) }

func (l *leaf) wait(r *Request) {
	l.t.Helper()
	done := make([]*Request, 1)
	if n, err := l.queue.Wait(1, done, 20*time.Second); n != 1 || err != nil || done[0] != r {
		l.t.Fatalf("Wait: %d, %v", n, err)
	}
}

// Case 19 at the leaf: EAGAIN is submitted again and counted; the wish to be
// polled that could not be granted is counted once all the same.
func TestLeafAgain(t *testing.T) {
	for _, op := range []Op{Read, Write} {
		l := newLeaf(t, QueueConfig{})
		r := l.request(op, HiPri, 1)
		for try := range 100 {
			var cqe *uring.CQE
			if try == 0 {
				cqe = l.completions(r, 1)[0]
			} else {
				for l.q.tree.plain.Ready() == 0 {
					if err := l.q.tree.plain.Enter(); err != nil {
						t.Fatal(err)
					}
					runtime.Gosched()
				}
				cqe = l.q.tree.plain.CQE(0)
			}
			cqe.Res = -int32(syscall.EAGAIN)
			if n, err := l.poll(); n != 0 || err != nil {
				t.Fatalf("try %d: %d, %v", try, n, err)
			}
		}
		l.wait(r)
		if r.Err != nil || r.N != leafBlock {
			t.Errorf("%v: N %d, %v", op, r.N, r.Err)
		}
		if err := l.queue.Close(); err != nil {
			t.Fatal(err)
		}
		s := l.d.Stats()
		if s.Retries != 100 {
			t.Errorf("%d retries of 100", s.Retries)
		}
		if n := s.Fallbacks[FallbackNotPollable]; n != 1 {
			t.Errorf("%d fallbacks for one request", n)
		}
		if n := s.IO[op][Plain].Latency.Count(); n != 1 {
			t.Errorf("counted %d times", n)
		}
	}
}

func TestLeafErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags Flags
		res   int32
		want  error
	}{
		{"EAGAIN for one that does not wait", NoWait, -int32(syscall.EAGAIN), syscall.EAGAIN},
		{"medium error", 0, -int32(syscall.ENODATA), syscall.ENODATA},
		{"EIO of a drive that is there", 0, -int32(syscall.EIO), syscall.EIO},
		{"ENOSPC of a file that is there", 0, -int32(syscall.ENOSPC), syscall.ENOSPC},
		{"nothing moved", 0, 0, ErrShort},
		{"half moved", 0, leafBlock / 2, ErrShort},
	} {
		l := newLeaf(t, QueueConfig{})
		r := l.request(Write, c.flags, 1)
		r.Offset = leafBlock
		l.completions(r, 1)[0].Res = c.res
		if n, err := l.poll(); n != 1 || err != nil {
			t.Fatalf("%s: %d, %v", c.name, n, err)
		}
		var typed *Error
		if !errors.Is(r.Err, c.want) || !errors.As(r.Err, &typed) || r.N != 0 || errors.Is(r.Err, ErrGone) {
			t.Fatalf("%s: N %d, %v", c.name, r.N, r.Err)
		}
		if typed.Member != -1 || typed.Offset != leafBlock || typed.Op != Write || typed.Path != l.d.info.Path {
			t.Errorf("%s: %+v", c.name, typed)
		}
		if n := l.d.Stats().IO[Write][Plain].Errors; n != 1 {
			t.Errorf("%s: %d errors counted", c.name, n)
		}
		// The slot is as good as new.
		r.Flags = 0
		if n, err := l.queue.Submit([]*Request{r}); n != 1 || err != nil {
			t.Fatal(err)
		}
		l.wait(r)
		if r.Err != nil {
			t.Errorf("%s: then %v", c.name, r.Err)
		}
	}
}

// Errors that a vanished drive gives are ErrGone once the drive is known to
// have vanished; the caller never sees ENOSPC for it.
func TestLeafGone(t *testing.T) {
	for _, c := range []struct {
		op    Op
		res   int32
		errno error
	}{
		{Read, 0, nil},
		{Write, -int32(syscall.ENOSPC), nil},
		{Read, -int32(syscall.ENODEV), syscall.ENODEV},
		{Write, -int32(syscall.EIO), syscall.EIO},
		{Read, -int32(syscall.ENXIO), syscall.ENXIO},
		{Read, -int32(syscall.ENOLINK), syscall.ENOLINK},
	} {
		l := newLeaf(t, QueueConfig{})
		r := l.request(c.op, 0, 1)
		cqe := l.completions(r, 1)[0]
		cqe.Res = c.res
		l.d.drive.Load().gone.Store(true)
		if n, err := l.poll(); n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		if !errors.Is(r.Err, ErrGone) || errors.Is(r.Err, syscall.ENOSPC) || c.errno != nil && !errors.Is(r.Err, c.errno) {
			t.Errorf("%v, result %d: %v", c.op, c.res, r.Err)
		}
	}
}

// A request of several children comes back once, after the last, with the first
// of their errors.
func TestLeafSplit(t *testing.T) {
	l := newLeaf(t, QueueConfig{})
	r := l.request(Read, HiPri, 5)
	cqes := l.completions(r, 5)
	cqes[1].Res = -int32(syscall.ENODATA)
	cqes[2].Res = -int32(syscall.EIO)
	cqes[4].Res = 512
	if n, err := l.poll(); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if !errors.Is(r.Err, syscall.ENODATA) || errors.Is(r.Err, syscall.EIO) || r.N != 0 {
		t.Errorf("N %d, %v", r.N, r.Err)
	}
	if n, err := l.poll(); n != 0 || err != nil {
		t.Errorf("then %d, %v", n, err)
	}
	s := l.d.Stats()
	if s.Splits != 1 || s.Fallbacks[FallbackNotPollable] != 1 || s.IO[Read][Plain].Errors != 1 {
		t.Errorf("%d splits, %d fallbacks, %d errors", s.Splits, s.Fallbacks[FallbackNotPollable], s.IO[Read][Plain].Errors)
	}
}

// A completion of nothing that is in flight means that the ring cannot be
// trusted: every call says so from then on, and Close sets the results.
func TestLeafUnknownCompletion(t *testing.T) {
	for name, change := range map[string]func(userData uint64) uint64{
		"slot beyond":        func(u uint64) uint64 { return u + 1<<20 },
		"last slot there is": func(u uint64) uint64 { return u | 0xffffffff },
		"free slot":          func(u uint64) uint64 { return u + 1 },
		"other generation":   func(u uint64) uint64 { return u + 1<<generationShift },
		"other leaf":         func(u uint64) uint64 { return u + 1<<leafShift },
		"probe":              func(uint64) uint64 { return 0xffffffffffffffff },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeaf(t, QueueConfig{})
			before := l.request(Read, 0, 1)
			if n, err := l.queue.Submit([]*Request{before}); n != 1 || err != nil {
				t.Fatalf("Submit: %d, %v", n, err)
			}
			l.wait(before)
			r := l.request(Read, 0, 1)
			cqe := l.completions(r, 1)[0]
			cqe.UserData = change(cqe.UserData)
			if n, err := l.poll(); n != 0 || !errors.Is(err, errRing) {
				t.Fatalf("Poll: %d, %v", n, err)
			}
			if n, err := l.queue.Submit([]*Request{l.request(Read, 0, 1)}); n != 0 || !errors.Is(err, errRing) {
				t.Errorf("Submit: %d, %v", n, err)
			}
			if n, err := l.queue.Wait(1, make([]*Request, 1), -1); n != 0 || !errors.Is(err, errRing) {
				t.Errorf("Wait: %d, %v", n, err)
			}
			ring := l.q.tree.plain
			sq, cq := ring.Entries()
			err := l.queue.Close()
			if !errors.Is(err, ErrNotDrained) || !strings.Contains(err.Error(), "1 requests") {
				t.Errorf("Close: %v", err)
			}
			// By the counters nothing is in flight, which is as wrong as the rest.
			if gotSQ, gotCQ := ring.Entries(); gotSQ != sq || gotCQ != cq {
				t.Error("Close closed a ring that may have something in flight")
			} else if err := closeRing(ring); err != nil { // it has not
				t.Error(err)
			}
			if !errors.Is(r.Err, ErrNotDrained) || r.N != 0 {
				t.Errorf("the request that was out: N %d, %v", r.N, r.Err)
			}
			if before.Err != nil || before.N != leafBlock {
				t.Errorf("a request that had come back was changed: N %d, %v", before.N, before.Err)
			}
		})
	}
}

// A completion that comes twice is not taken for that of the slot's next user.
func TestLeafCompletionTwice(t *testing.T) {
	l := newLeaf(t, QueueConfig{Depth: 1})
	r := l.request(Read, 0, 1)
	first := l.completions(r, 1)[0].UserData
	if n, err := l.poll(); n != 1 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	cqe := l.completions(r, 1)[0]
	if cqe.UserData == first {
		t.Fatal("two requests of one user data")
	}
	cqe.UserData = first
	if n, err := l.poll(); n != 0 || !errors.Is(err, errRing) {
		t.Errorf("Poll: %d, %v", n, err)
	}
	ring := l.q.tree.plain
	if err := l.queue.Close(); !errors.Is(err, ErrNotDrained) {
		t.Errorf("Close: %v", err)
	}
	if err := closeRing(ring); err != nil {
		t.Error(err)
	}
}

// The generation wraps around without touching leaf and slot beside it.
func TestLeafGenerationWraps(t *testing.T) {
	l := newLeaf(t, QueueConfig{Depth: 2})
	for i := range l.q.slots {
		l.q.slots[i].userData -= 3 << generationShift // three before it begins again
	}
	r := l.request(Read, 0, 1)
	for i := range 10 {
		if n, err := l.queue.Submit([]*Request{r}); n != 1 || err != nil {
			t.Fatalf("Submit: %d, %v", n, err)
		}
		l.wait(r)
		if r.Err != nil {
			t.Fatalf("request %d: %v", i, r.Err)
		}
	}
	wrapped := false
	for i := range l.q.slots {
		u := l.q.slots[i].userData
		if u&(1<<generationShift-1) != uint64(l.q.index)<<leafShift|uint64(i) {
			t.Errorf("slot %d has user data %#x", i, u)
		}
		wrapped = wrapped || u>>generationShift < 100
	}
	if !wrapped {
		t.Error("no generation wrapped around")
	}
}

// Slots, tags and counts of what is out are the same after I/O as before, also
// when it failed.
func TestLeafNothingLeaks(t *testing.T) {
	l := newLeaf(t, QueueConfig{Depth: 4, MaxTransfer: 4 * leafBlock})
	for i := range 50 {
		reqs := []*Request{l.request(Read, 0, 4), l.request(Write, FUA, 3), {Op: Flush}, {Op: Read, Offset: -1, Buf: l.request(Read, 0, 1).Buf}}
		if n, err := l.queue.Submit(reqs); n != len(reqs) || err != nil {
			t.Fatalf("Submit: %d, %v", n, err)
		}
		for got := 0; got < len(reqs); {
			n, err := l.queue.Wait(1+i%4, make([]*Request, 4), -1)
			if err != nil {
				t.Fatal(err)
			}
			got += n
		}
	}
	q, tr := l.q, l.q.tree
	if q.out != 0 || q.plainOut != 0 || q.polledOut != 0 || tr.plainOut != 0 || tr.polled != 0 || tr.held != 0 {
		t.Errorf("out %d, plain %d, polled %d; tree: plain %d, polled %d, held %d", q.out, q.plainOut, q.polledOut, tr.plainOut, tr.polled, tr.held)
	}
}
