// SPDX-License-Identifier: Apache-2.0

// Package devtest is what tests of devices have in common. It watches over the
// rules of the contract that hold for every request, whatever a test is about.
package devtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// Patience is how long a request may take before a test fails.
const Patience = 20 * time.Second

// Rig is a queue under test and what is out on it.
type Rig struct {
	TB    testing.TB
	Queue poller.Queue
	out   map[*poller.Request]bool
	arena []byte
	used  int
}

// Open makes a queue on dev and closes it at the end of the test.
func Open(tb testing.TB, dev poller.Device, cfg poller.QueueConfig) *Rig {
	tb.Helper()
	q, err := dev.NewQueue(cfg)
	if errors.Is(err, poller.ErrNotAllowed) {
		tb.Skip(err)
	} else if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := q.Close(); err != nil && !errors.Is(err, poller.ErrClosed) {
			tb.Errorf("closing the queue: %v", err)
		}
	})
	return Around(tb, q)
}

// Around makes a rig of a queue that the test closes itself.
func Around(tb testing.TB, q poller.Queue) *Rig {
	return &Rig{TB: tb, Queue: q, out: make(map[*poller.Request]bool), arena: q.Limits().Arena.Bytes()}
}

// Close closes dev at the end of the test, after its queues.
func Close(tb testing.TB, dev poller.Device) {
	tb.Cleanup(func() {
		if err := dev.Close(); err != nil && !errors.Is(err, poller.ErrClosed) {
			tb.Errorf("closing the device: %v", err)
		}
	})
}

// TempFile makes a file of size zero bytes, all of them written, so that its
// blocks are there.
func TempFile(tb testing.TB, size int) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// OpenDisk opens the file at path for writing, polled if it can be, which it
// cannot.
func OpenDisk(tb testing.TB, path string) *poller.Disk {
	tb.Helper()
	return OpenDiskWith(tb, path, poller.OpenOptions{Write: true, Polling: poller.PollIfPossible})
}

// OpenDiskWith opens the file at path. The test is skipped where its
// filesystem has no direct I/O.
func OpenDiskWith(tb testing.TB, path string, opts poller.OpenOptions) *poller.Disk {
	tb.Helper()
	d, err := poller.Open(path, opts)
	if errors.Is(err, blockdev.ErrNoDirectIO) {
		tb.Skipf("%v: set TMPDIR", err)
	} else if err != nil {
		tb.Fatal(err)
	}
	return d
}

// Buf returns the next n bytes of the arena; requests made from it do not
// overlap.
func (r *Rig) Buf(n int64) []byte {
	r.TB.Helper()
	if r.used+int(n) > len(r.arena) {
		r.TB.Fatalf("arena of %d bytes is used up", len(r.arena))
	}
	b := r.arena[r.used:][:n:n]
	r.used += int(n)
	return b
}

// Try submits, and returns how many were taken.
func (r *Rig) Try(reqs ...*poller.Request) int {
	r.TB.Helper()
	n, err := r.Queue.Submit(reqs)
	if err != nil {
		r.TB.Fatalf("Submit: %v", err)
	}
	if n < 0 || n > len(reqs) {
		r.TB.Fatalf("Submit took %d of %d", n, len(reqs))
	}
	for _, req := range reqs[:n] {
		if r.out[req] {
			r.TB.Fatal("the test submits a request twice")
		}
		r.out[req] = true
	}
	return n
}

// Submit submits requests that must all be taken.
func (r *Rig) Submit(reqs ...*poller.Request) {
	r.TB.Helper()
	if n := r.Try(reqs...); n != len(reqs) {
		r.TB.Fatalf("Submit took %d requests of %d", n, len(reqs))
	}
}

// Out returns how many requests are out.
func (r *Rig) Out() int { return len(r.out) }

// Take checks what a Poll or Wait returned.
func (r *Rig) Take(done []*poller.Request) {
	r.TB.Helper()
	for _, req := range done {
		if !r.out[req] {
			r.TB.Fatalf("%v at %d came back and was not out", req.Op, req.Offset)
		}
		delete(r.out, req)
		if err := Result(req); err != nil {
			r.TB.Error(err)
		}
	}
}

// Result checks the results of a request against each other.
func Result(req *poller.Request) error {
	var typed *poller.Error
	want := len(req.Buf)
	if req.Err != nil || req.Op == poller.Flush {
		want = 0
	}
	switch {
	case req.N != want:
		return fmt.Errorf("%v at %d: N is %d of %d with error %v", req.Op, req.Offset, req.N, len(req.Buf), req.Err)
	case req.Err != nil && !errors.As(req.Err, &typed):
		return fmt.Errorf("%v at %d: %T is no *poller.Error: %v", req.Op, req.Offset, req.Err, req.Err)
	}
	return nil
}

// Drain waits until nothing is out.
func (r *Rig) Drain() {
	r.TB.Helper()
	done := make([]*poller.Request, 16)
	for len(r.out) > 0 {
		n, err := r.Queue.Wait(1, done, Patience)
		if err != nil {
			r.TB.Fatalf("Wait: %v", err)
		}
		if n == 0 {
			r.TB.Fatalf("%d requests did not come back within %v", len(r.out), Patience)
		}
		r.Take(done[:n])
	}
}

// Do submits requests that must all be taken, and waits for them.
func (r *Rig) Do(reqs ...*poller.Request) {
	r.TB.Helper()
	r.Submit(reqs...)
	r.Drain()
}

// MustDo is Do of requests that must succeed.
func (r *Rig) MustDo(reqs ...*poller.Request) {
	r.TB.Helper()
	r.Do(reqs...)
	for _, req := range reqs {
		if req.Err != nil {
			r.TB.Fatal(req.Err)
		}
	}
}

// LeafIO returns how many I/Os the devices at the bottom have completed.
func LeafIO(s poller.Stats) (n uint64) {
	for _, m := range s.Members {
		n += LeafIO(m)
	}
	if len(s.Members) == 0 {
		for op := range s.IO {
			for mode := range s.IO[op] {
				n += s.IO[op][mode].Latency.Count()
			}
		}
	}
	return n
}
