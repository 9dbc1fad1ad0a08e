// SPDX-License-Identifier: Apache-2.0

package multipath

import (
	"errors"
	"fmt"

	"pollux/poller"
)

// queue is the queue of a Multipath. Every request goes down as it came, to one path.
// Each path was granted as much as the whole, so there is always room.
type queue struct {
	poller.Inner
	m    *Multipath
	tree *poller.Tree

	paths   []pathQueue
	granted int
	out     int // requests accepted and not returned
	// picky says that a path may find fault with a buffer that another one takes.
	picky   bool
	staging pathSet // paths that have something staged
	busy    pathSet // and out
	next    int     // where round robin goes on
	// from is the path that the next Poll begins with, when done was full before the
	// last one got to it.
	from int

	// trouble are the requests that a path has failed or that have none to go over, and
	// those that wait for one of them; in the order in which they came to be here.
	trouble  []trouble
	flushes  []pendingFlush
	finished poller.Fifo
	// rec counts what fails; what succeeds is what the paths have counted: see stats.go.
	rec poller.Recorder
}

// pathQueue is the queue's part on one path.
type pathQueue struct {
	queue    poller.Queue
	inFlight int
	// staged is what is handed down at the end of the call, nstaged of them.
	staged  []*poller.Request
	nstaged int
}

// NewQueue implements poller.Device.
func (m *Multipath) NewQueue(cfg poller.QueueConfig) (poller.Queue, error) {
	q, err := poller.MakeQueue(cfg, m.newQueue)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.opts.Name, err)
	}
	return q, nil
}

func (m *Multipath) newQueue(cfg poller.QueueConfig) (poller.Node, error) {
	q := &queue{
		m:        m,
		tree:     cfg.Tree,
		paths:    make([]pathQueue, len(m.paths)),
		picky:    m.uneven,
		finished: cfg.Tree.NewFifo(),
	}
	for i := range m.paths {
		pq, err := m.paths[i].dev.NewQueue(cfg)
		if err != nil {
			return nil, errors.Join(err, q.closePaths())
		}
		q.paths[i].queue = pq
		if n := pq.Limits().QueueDepth; i == 0 || n < q.granted {
			q.granted = n
		}
	}
	for i := range q.paths {
		q.paths[i].staged = make([]*poller.Request, q.granted)
	}
	q.finished.Reserve(q.granted)
	if err := m.add(q); err != nil {
		return nil, errors.Join(err, q.closePaths())
	}
	return q, nil
}

// add makes q one of the open queues.
func (m *Multipath) add(q *queue) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return poller.ErrClosed
	}
	q.rec.Granted(q.granted, 0)
	m.recorders.Add(&q.rec)
	return nil
}

// Limits implements poller.Node.
func (q *queue) Limits() poller.Limits {
	l := q.m.limits
	l.MaxTransfer, l.QueueDepth, l.Unit = q.paths[0].queue.Limits().MaxTransfer, q.granted, 0
	l.FixedBuffers = q.tree.FixedBuffers()
	l.Arena = q.tree.Arena()
	return l
}

// Stats implements poller.Node.
func (q *queue) Stats() poller.Stats {
	s := q.rec.Snapshot()
	for i := range q.paths {
		s = withPath(s, q.paths[i].queue.Stats())
	}
	return s
}

// Outstanding implements poller.Node.
func (q *queue) Outstanding() int { return q.out }

// Close implements poller.Node. What is out on a path is the path's to give up on.
func (q *queue) Close() error {
	for i := range q.trouble {
		if t := &q.trouble[i]; t.state != flying {
			poller.Abandon(t.req, q.errorOf(t.req, poller.ErrNotDrained))
		}
	}
	err := q.closePaths()
	q.m.recorders.Remove(&q.rec)
	return err
}

func (q *queue) closePaths() error {
	var errs []error
	for i := range q.paths {
		if pq := q.paths[i].queue; pq != nil {
			errs = append(errs, pq.Close())
		}
	}
	return errors.Join(errs...)
}

func (q *queue) errorOf(r *poller.Request, err error) error {
	return &poller.Error{Op: r.Op, Member: -1, Path: q.m.opts.Name, Offset: r.Offset, Err: err}
}
