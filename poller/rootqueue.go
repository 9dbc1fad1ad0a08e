// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"fmt"
	"time"

	"pollux/internal/clock"
	"pollux/internal/uring"
)

// rootQueue is the Queue of a whole tree: it reads the clock, waits, drains and
// keeps other goroutines out, for the node at the root and all below it.
type rootQueue Tree

// Limits implements Queue.
func (q *rootQueue) Limits() Limits { return q.root.Limits() }

// Stats implements Queue.
func (q *rootQueue) Stats() Stats { return q.root.Stats() }

// Submit implements Queue.
func (q *rootQueue) Submit(reqs []*Request) (int, error) {
	t := (*Tree)(q)
	if err := t.enter(); err != nil {
		return 0, err
	}
	now := clock.Now()
	t.now = now
	for _, r := range reqs {
		r.Err, r.origin, r.start = nil, r.Offset, now
	}
	t.alone = t.solo != nil && len(reqs) == 1 && t.polled == 0
	n, err := t.root.Submit(reqs)
	t.guard.Exit()
	return n, err
}

// Poll implements Queue.
func (q *rootQueue) Poll(done []*Request) (int, error) {
	t := (*Tree)(q)
	if err := t.enter(); err != nil {
		return 0, err
	}
	n, err := t.poll(done)
	return t.leave(done, n), err
}

// Wait implements Queue.
func (q *rootQueue) Wait(min int, done []*Request, timeout time.Duration) (int, error) {
	t := (*Tree)(q)
	if err := t.enter(); err != nil {
		return 0, err
	}
	if t.polled == 0 || t.plainOut != 0 {
		n, err := t.wait(0, min, done, timeout)
		return t.leave(done, n), err
	}
	// Most waits for polled I/O end with this first look.
	n, err := t.look(done)
	if n < min && err == nil && timeout != 0 {
		n, err = t.wait(n, min, done, timeout)
	}
	return t.leave(done, n), err
}

// Close implements Queue.
func (q *rootQueue) Close() error {
	t := (*Tree)(q)
	if !t.guard.Enter() {
		return ErrConcurrent
	}
	defer t.guard.Exit()
	if t.closed {
		return errQueueClosed
	}
	lost := t.drain()
	err := t.root.Close()
	if e := t.close(lost); e != nil {
		err = e
	}
	return err
}

func (t *Tree) enter() error {
	if !t.guard.Enter() {
		return ErrConcurrent
	}
	if t.broken != nil {
		t.guard.Exit()
		return t.broken
	}
	return nil
}

// leave ends what enter began; n requests go back to their owner.
func (t *Tree) leave(done []*Request, n int) int {
	giveBack(done[:n])
	t.guard.Exit()
	return n
}

// drain waits until every request has come back or the close timeout has
// passed, and returns how many are still out.
func (t *Tree) drain() int {
	deadline := time.Now().Add(t.timeout)
	done := make([]*Request, 64)
	for t.root.Outstanding() > 0 && t.broken == nil {
		left := time.Until(deadline)
		if left <= 0 {
			break
		}
		n, _ := t.wait(0, 1, done, left) // an error is in t.broken
		giveBack(done[:n])
	}
	// Some may have finished all the same: on a list, or on a ring that was not
	// read to its end. Where there was no time at all nobody has looked yet.
	if t.plainOut > 0 {
		t.reapPlain()
	}
	for n := 1; n > 0 && t.root.Outstanding() > 0; {
		n, _ = t.root.Poll(done)
		giveBack(done[:n])
	}
	return t.root.Outstanding()
}

// giveBack makes requests again what their owner submitted.
func giveBack(done []*Request) {
	for _, r := range done {
		r.Offset = r.origin
	}
}

// soloOut says that something is in flight on the solo ring.
func (t *Tree) soloOut() bool {
	for _, leaf := range t.leaves {
		if leaf.onSolo && leaf.polledOut > 0 {
			return true
		}
	}
	return false
}

// closeRing closes a ring with nothing in flight. The drives are let go of at once,
// so that whoever opens one next does not find it claimed.
func closeRing(r *uring.Ring) error {
	_ = r.UnregisterFiles() // ENXIO where making the ring had failed before it had any
	return r.Close()
}

var errQueueClosed = fmt.Errorf("queue: %w", ErrClosed)

// distrusted reports whether a ring gave back something unknown. What is in flight is
// not known then, and closing a ring may wait for it for ever.
func (t *Tree) distrusted() bool { return errors.Is(t.broken, errRing) }

// close gives back what the tree has; lost is how many requests are still out.
// Rings and memory that the kernel or a device may still use are kept.
func (t *Tree) close(lost int) error {
	keep := t.distrusted()
	t.closed, t.broken = true, errQueueClosed
	var err error
	if t.plain != nil && t.plainOut == 0 && !keep {
		err = closeRing(t.plain)
	}
	if t.solo != nil && !t.soloOut() && !keep {
		if e := closeRing(t.solo); err == nil {
			err = e
		}
	}
	t.arena.release(lost)
	if t.ownArena && lost == 0 {
		if e := t.arena.Close(); err == nil {
			err = e
		}
	}
	if lost > 0 {
		err = fmt.Errorf("queue: %d requests %w: their memory is kept", lost, ErrNotDrained)
	}
	return err
}
