// SPDX-License-Identifier: Apache-2.0

package faultdev

import (
	"fmt"
	"time"

	"pollux/poller"
)

// queue is the queue of a Device. A request becomes one child on the wrapped
// queue. A child is held, or ready to be handed down, or below, or finished.
type queue struct {
	poller.Inner
	dev   *Device
	tree  *poller.Tree
	layer poller.Layer
	inner poller.Queue
	block int

	// slots are as many as the wrapped queue holds requests, so that there is
	// always room below in the end. A child's Tag is the index of its slot.
	slots    []slot
	free     []uint32
	held     []*slot           // each counted in the tree as polled
	ready    []*poller.Request // children to be handed down, oldest first
	below    int
	finished poller.Fifo
	got      []*poller.Request // what the last poll of the wrapped queue returned
	rec      poller.Recorder
}

// slot is a request and what becomes of it; request is nil in a free one.
type slot struct {
	request *poller.Request
	child   poller.Request
	rule    *Rule // that disturbs it, or nil
	due     time.Time
}

// Limits implements poller.Node.
func (q *queue) Limits() poller.Limits { return q.inner.Limits() }

// Submit implements poller.Node.
func (q *queue) Submit(reqs []*poller.Request) (int, error) {
	n := 0
	for n < len(reqs) && len(q.free) > 0 {
		q.accept(reqs[n])
		n++
	}
	return n, q.handDown()
}

func (q *queue) accept(r *poller.Request) {
	s := &q.slots[q.free[len(q.free)-1]]
	q.free = q.free[:len(q.free)-1]
	r.N, r.Polled = 0, false
	s.request, s.rule = r, q.dev.rules.match(r)
	c := &s.child
	c.Op, c.Flags, c.Priority, c.Offset, c.Buf = r.Op, r.Flags, r.Priority, r.Offset, r.Buf
	q.layer.Begin(c, r)
	if s.rule == nil {
		q.ready = append(q.ready, c)
		return
	}
	// Even a fault without delay waits for the next Poll: Submit starts
	// nothing.
	s.due = time.Time{}
	if s.rule.Delay > 0 {
		s.due = time.Now().Add(s.rule.Delay)
	}
	q.held = append(q.held, s)
	q.tree.AddPolled(1)
}

// handDown submits the children that are ready, as far as there is room.
func (q *queue) handDown() error {
	if len(q.ready) == 0 {
		return nil
	}
	n, err := q.inner.Submit(q.ready)
	q.below += n
	q.ready = q.ready[:copy(q.ready, q.ready[n:])]
	return err
}

// Poll implements poller.Node.
func (q *queue) Poll(done []*poller.Request) (n int, err error) {
	if len(q.held) > 0 {
		q.release()
	}
	err = q.handDown()
	if q.below > 0 && err == nil {
		var got int
		got, err = q.inner.Poll(q.got)
		q.below -= got
		for _, c := range q.got[:got] {
			q.complete(&q.slots[c.Tag], c.Err)
		}
		// There may be room now for what is ready still, and nobody is told to
		// come back for it.
		if e := q.handDown(); err == nil {
			err = e
		}
	}
	n = q.finished.Pop(done)
	q.rec.Polled(n, q.Outstanding())
	return n, err
}

// release ends the wait of the held children whose time has come.
func (q *queue) release() {
	still := q.held[:0]
	for _, s := range q.held {
		if s.rule.Hold != nil && !s.rule.Hold.open.Load() || !s.due.IsZero() && time.Now().Before(s.due) {
			still = append(still, s)
			continue
		}
		q.tree.AddPolled(-1)
		switch {
		case s.rule.Err != nil:
			q.tree.Tick()
			q.complete(s, q.errorOf(s.request, s.rule.Err))
		case s.rule.Short && s.request.Op != poller.Flush:
			s.child.Buf = s.child.Buf[:len(s.child.Buf)/2/q.block*q.block]
			q.ready = append(q.ready, &s.child)
		default:
			q.ready = append(q.ready, &s.child)
		}
	}
	clear(q.held[len(still):])
	q.held = still
}

// complete finishes the request in s and gives the slot back.
func (q *queue) complete(s *slot, err error) {
	r, polled := s.request, s.child.Polled
	if s.rule != nil && s.rule.Err != nil {
		polled = false // the child was never below
	}
	if s.rule != nil && s.rule.Short && err == nil && r.Op != poller.Flush {
		err = q.errorOf(r, fmt.Errorf("%w: %d bytes of %d", poller.ErrShort, len(s.child.Buf), len(r.Buf)))
	}
	s.request = nil
	q.free = append(q.free, uint32(s.child.Tag))
	r.N, r.Err, r.Polled = len(r.Buf), err, polled
	if err != nil || r.Op == poller.Flush {
		r.N = 0
	}
	if err != nil || r.N > 0 || r.Op == poller.Flush {
		q.rec.Finish(r, q.tree.Now())
	}
	q.finished.Push(r)
}

// Stats implements poller.Node.
func (q *queue) Stats() poller.Stats { return q.rec.Snapshot() }

// Outstanding implements poller.Node.
func (q *queue) Outstanding() int { return len(q.slots) - len(q.free) + q.finished.Len() }

// Close implements poller.Node.
func (q *queue) Close() error {
	for i := range q.slots {
		if r := q.slots[i].request; r != nil {
			poller.Abandon(r, q.errorOf(r, poller.ErrNotDrained))
		}
	}
	err := q.inner.Close()
	q.dev.recorders.Remove(&q.rec)
	return err
}

func (q *queue) errorOf(r *poller.Request, err error) error {
	return &poller.Error{Op: r.Op, Member: -1, Path: q.dev.name, Offset: r.Offset, Err: err}
}
