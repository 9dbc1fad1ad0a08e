// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"math/bits"
	"syscall"

	"pollux/poller"
)

// Poll implements poller.Node: it polls every member that has something out. An
// error of one member does not keep the others from being polled.
func (q *queue) Poll(done []*poller.Request) (n int, err error) {
	if q.finished.Len() != 0 {
		n = q.finished.Pop(done)
		q.out -= n
	}
	if q.from != 0 {
		n, err = q.pollFrom(q.from, done, n)
		q.rec.Polled(n, q.out)
		return n, err
	}
	for set := q.busy[0]; set != 0; set &= set - 1 {
		got, e := q.pollMember(bits.TrailingZeros64(set), done[n:])
		n += got
		if e != nil && err == nil {
			err = e
		}
	}
	for set := q.busy[1]; set != 0; set &= set - 1 {
		got, e := q.pollMember(64+bits.TrailingZeros64(set), done[n:])
		n += got
		if e != nil && err == nil {
			err = e
		}
	}
	q.rec.Polled(n, q.out)
	return n, err
}

// pollFrom is the walk of Poll beginning with another member than the first.
func (q *queue) pollFrom(from int, done []*poller.Request, n int) (_ int, err error) {
	q.from = 0
	for i := range q.members {
		slot := (from + i) % len(q.members)
		if q.busy[slot>>6&1]>>(slot&63)&1 == 0 {
			continue
		}
		got, e := q.pollMember(slot, done[n:])
		n += got
		if e != nil && err == nil {
			err = e
		}
	}
	return n, err
}

// pollMember polls the member at slot, puts the requests that finished into done
// and returns how many. What done has no room for is returned by the next Poll.
func (q *queue) pollMember(slot int, done []*poller.Request) (n int, err error) {
	m := &q.members[slot]
	if m.children != 0 {
		// Children need a place of their own: they are many, and done may be
		// short.
		n, err = m.queue.Poll(m.done)
		q.settle(m, slot, n)
		return q.takeAll(slot, m.done[:n], done), err
	}
	// Nothing but whole requests is out: the member puts them where they go.
	n, err = m.queue.Poll(done)
	if n == 0 {
		if len(done) == 0 && q.from == 0 {
			q.from = slot
		}
		return 0, err
	}
	q.settle(m, slot, n)
	if n == 1 && done[0].Err == nil {
		q.out--
		q.rec.Finish(done[0], q.tree.Now())
		return 1, err
	}
	good := q.rec.FinishAll(done[:n], q.tree.Now())
	q.out -= good
	if good != n {
		return good + q.takeAll(slot, done[good:n], done[good:]), err
	}
	return n, err
}

// settle takes note of n requests that the member at slot has given back.
func (q *queue) settle(m *member, slot, n int) {
	if m.room += n; m.room == m.granted {
		q.busy.remove(slot)
	}
}

// takeAll takes what the member at slot has given back, puts the requests that
// are finished by it into done, which may be the same memory, and returns how
// many.
func (q *queue) takeAll(slot int, back, done []*poller.Request) (n int) {
	for _, r := range back {
		if r = q.take(r, slot); r == nil {
			continue
		}
		if n < len(done) {
			done[n] = r
			n++
		} else {
			q.finished.Push(r)
		}
	}
	q.out -= n
	if q.members[slot].nstaged != 0 { // again
		q.handDown(slot)
	}
	return n
}

// take takes a request that the member at slot has given back and returns the
// request from above that it finished, or nil if there is none.
func (q *queue) take(r *poller.Request, slot int) *poller.Request {
	if r.Err != nil && again(r) {
		m := &q.members[slot]
		m.room--
		m.staged[m.nstaged] = r
		m.nstaged++
		r.Err = nil
		q.rec.Retried()
		return nil
	}
	return q.finish(r, slot)
}

// finish is take for what is not to be tried again.
func (q *queue) finish(r *poller.Request, slot int) *poller.Request {
	if q.layer.Owns(r) {
		q.members[slot].children--
		if r = q.countDown(&q.children[r.Tag], slot); r == nil {
			return nil
		}
	} else if r.Err != nil {
		r.Offset = q.stripes.Offset(slot, r.Offset)
		r.Err = q.failed(r, r.Op, slot, r.Err)
	}
	q.rec.Finish(r, q.tree.Now())
	return r
}

// again says that a member has not done a request that may wait: it answered
// EAGAIN.
func again(r *poller.Request) bool {
	return r.Flags&poller.NoWait == 0 && errors.Is(r.Err, syscall.EAGAIN)
}

// countDown counts a child that came back and returns the request it was the
// last of, or nil.
func (q *queue) countDown(c *child, slot int) *poller.Request {
	p := c.parent
	if c.Err != nil {
		if err := q.failed(p.request, c.Op, slot, c.Err); p.err == nil {
			p.err = err
		}
	}
	p.polled = p.polled && c.Polled
	if p != c {
		q.release(c)
	}
	now := q.tree.Now()
	if p.first == 0 {
		p.first = now
	}
	if p.left--; p.left != 0 {
		return nil
	}
	if now != p.first {
		q.rec.Straggled(slot, now-p.first)
	}
	r := p.request
	r.N, r.Err, r.Polled = len(r.Buf), p.err, p.polled
	if r.Err != nil || r.Op == poller.Flush {
		r.N = 0
	}
	q.release(p)
	return r
}

func (q *queue) release(c *child) {
	c.next = q.free
	q.free = uint32(c.Tag)
}

// failed returns the error of r for one that the member at slot gave, and
// remembers what it says about the whole volume.
func (q *queue) failed(r *poller.Request, op poller.Op, slot int, err error) error {
	q.vol.remember(op, slot, err)
	return q.errorOf(r, slot, err)
}
