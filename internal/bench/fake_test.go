// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"pollux/poller"
)

// fakeDevice is memory behind the contract of poller.Device. Everything
// submitted is finished by the next Wait, last first, at most batch at once.
type fakeDevice struct {
	data      []byte
	blockSize int64
	grant     int // the depth granted, if less than asked; 0 means as asked
	room      int // requests that fit at once; 0 means all
	batch     int // completions per Wait; 0 means all
	failAt    int // the number, from 1, of the request that fails; 0 means none
	stuckAt   int // the same, of the first that never comes back
	miscount  bool
	lazy      bool // reads bring nothing
	pollable  bool
	delay     time.Duration

	recorders poller.Recorders
	mu        sync.Mutex
	queues    []*fakeQueue
}

func newFake(size int) *fakeDevice {
	return &fakeDevice{data: make([]byte, size), blockSize: 512, pollable: true}
}

func (d *fakeDevice) Limits() poller.Limits {
	l := poller.Limits{
		Size:        int64(len(d.data)),
		BlockSize:   d.blockSize,
		BufAlign:    1,
		MaxTransfer: 1 << 20,
		QueueDepth:  1024,
	}
	if !d.pollable {
		l.NotPollable = poller.ErrNotPollable
	}
	return l
}

func (d *fakeDevice) NewQueue(cfg poller.QueueConfig) (poller.Queue, error) {
	arena, err := poller.NewArena(int64(cfg.Depth) * cfg.MaxTransfer)
	if err != nil {
		return nil, err
	}
	q := &fakeQueue{dev: d, cfg: cfg, arena: arena, inFlight: make([]*poller.Request, 0, cfg.Depth)}
	d.recorders.Add(&q.rec)
	d.mu.Lock()
	d.queues = append(d.queues, q)
	d.mu.Unlock()
	return q, nil
}

func (d *fakeDevice) Stats() poller.Stats { return d.recorders.Sum("fake") }
func (d *fakeDevice) Close() error        { return nil }

type fakeQueue struct {
	dev      *fakeDevice
	cfg      poller.QueueConfig
	arena    *poller.Arena
	inFlight []*poller.Request
	accepted int
	most     int // in flight at once
	stuck    bool
	closed   bool
	rec      poller.Recorder
}

func (q *fakeQueue) Limits() poller.Limits {
	l := q.dev.Limits()
	l.MaxTransfer, l.QueueDepth, l.Arena = q.cfg.MaxTransfer, q.cfg.Depth, q.arena
	if q.dev.grant > 0 {
		l.QueueDepth = min(l.QueueDepth, q.dev.grant)
	}
	return l
}

func (q *fakeQueue) Stats() poller.Stats { return q.rec.Snapshot() }

func (q *fakeQueue) Submit(reqs []*poller.Request) (int, error) {
	for i, r := range reqs {
		if q.dev.room > 0 && len(q.inFlight) == q.dev.room {
			return i, nil
		}
		r.N, r.Err, r.Polled = 0, nil, false
		q.accepted++
		if q.accepted == q.dev.failAt {
			r.Err = &poller.Error{Op: r.Op, Member: -1, Path: "fake", Offset: r.Offset, Err: syscall.ENODATA}
		}
		q.stuck = q.stuck || q.accepted == q.dev.stuckAt
		q.inFlight = append(q.inFlight, r)
		q.most = max(q.most, len(q.inFlight))
	}
	return len(reqs), nil
}

func (q *fakeQueue) Poll(done []*poller.Request) (int, error) { return q.Wait(0, done, 0) }

func (q *fakeQueue) Wait(_ int, done []*poller.Request, _ time.Duration) (int, error) {
	if q.stuck {
		select {}
	}
	time.Sleep(q.dev.delay)
	n := min(len(done), len(q.inFlight))
	if q.dev.batch > 0 {
		n = min(n, q.dev.batch)
	}
	for i := range n {
		r := q.inFlight[len(q.inFlight)-1]
		q.inFlight = q.inFlight[:len(q.inFlight)-1]
		q.finish(r)
		done[i] = r
	}
	q.rec.Polled(n, len(q.inFlight))
	return n, nil
}

func (q *fakeQueue) finish(r *poller.Request) {
	r.Polled = q.dev.pollable && r.Flags&poller.HiPri != 0
	if r.Err != nil {
		q.rec.Finish(r, 0)
		return
	}
	r.N = len(r.Buf)
	there := q.dev.data[r.Offset : r.Offset+int64(r.N)]
	q.dev.mu.Lock()
	if r.Op == poller.Write {
		copy(there, r.Buf)
	} else if !q.dev.lazy {
		copy(r.Buf, there)
	}
	q.dev.mu.Unlock()
	if !q.dev.miscount {
		q.rec.Finish(r, 1000)
	}
}

func (q *fakeQueue) Close() error {
	q.closed = true
	q.dev.recorders.Remove(&q.rec)
	return q.arena.Close()
}

// checkClosed fails the test if a queue of d is still open.
func (d *fakeDevice) checkClosed(t *testing.T) {
	t.Helper()
	if slices.ContainsFunc(d.queues, func(q *fakeQueue) bool { return !q.closed || len(q.inFlight) > 0 }) {
		t.Error("a queue was left open or with requests in flight")
	}
}
