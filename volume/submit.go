// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"math/bits"

	"pollux/poller"
)

// Submit implements poller.Node.
func (q *queue) Submit(reqs []*poller.Request) (int, error) {
	n := 0
	if broken := q.vol.broken.Load(); broken != nil {
		return q.refuseAll(reqs, broken), nil
	}
	for n < len(reqs) {
		// The common case, written out, as a call for each costs a tenth of the layer: a
		// read or write within one chunk, without FUA and with nothing wrong that the
		// volume can see.
		r := reqs[n]
		length := int64(len(r.Buf))
		if uint64(length-1) < uint64(q.maxTransfer) && r.Op <= q.lastOp && r.Flags&poller.FUA == 0 &&
			(r.Offset|length)&q.blockMask == 0 && q.stripes.Contains(r.Offset, length) {
			if slot, offset, left := q.stripes.At(r.Offset); length <= left {
				m := &q.members[slot]
				if m.room == 0 {
					break
				}
				r.Offset = offset
				m.room--
				if len(reqs) == 1 {
					q.out++
					if got, err := m.queue.Submit(reqs); got == 1 {
						q.busy.add(slot)
					} else {
						q.notTaken(slot, reqs, err)
					}
					return 1, nil
				}
				m.staged[m.nstaged] = r
				m.nstaged++
				q.staging.add(slot)
				n++
				q.out++
				continue
			}
		}
		if !q.acceptAny(r, length) {
			break
		}
		n++
	}
	for set := q.staging[0]; set != 0; set &= set - 1 {
		q.handDown(bits.TrailingZeros64(set))
	}
	for set := q.staging[1]; set != 0; set &= set - 1 {
		q.handDown(64 + bits.TrailingZeros64(set))
	}
	q.staging = memberSet{}
	return n, nil
}

// acceptAny takes a request of any kind, unless a member has no room for it.
func (q *queue) acceptAny(r *poller.Request, n int64) bool {
	if r.Op == poller.Flush || r.Op == poller.Write && r.Flags&poller.FUA != 0 {
		if failed := q.vol.flushFailed.Load(); failed != nil {
			return q.refuse(r, q.errorOf(r, failed.member, failed.err))
		}
	}
	if r.Op == poller.Flush {
		return q.acceptFlush(r)
	}
	if err := q.fault(r, n); err != nil {
		return q.refuse(r, q.errorOf(r, -1, err))
	}
	if n == 0 {
		if !q.hasPlace() {
			return false
		}
		r.N, r.Polled = 0, false
		q.out++
		q.finished.Push(r)
		return true
	}
	if !q.hasRoom(r.Offset, n) {
		return false
	}
	if slot, offset, left := q.stripes.At(r.Offset); n <= left {
		r.Offset = offset
		q.stage(slot, r)
	} else {
		q.split(r, n)
	}
	q.out++
	return true
}

// split stages a child for each chunk that r touches.
func (q *queue) split(r *poller.Request, n int64) {
	var p *child
	q.rec.Split()
	for pos := int64(0); pos < n; {
		slot, offset, left := q.stripes.At(r.Offset + pos)
		length := min(left, n-pos)
		c := q.newChild(r, p)
		c.Offset, c.Buf = offset, r.Buf[pos:pos+length:pos+length]
		q.stageChild(slot, c)
		p = c.parent
		pos += length
	}
}

// acceptFlush sends a flush to all members at once.
func (q *queue) acceptFlush(r *poller.Request) bool {
	for i := range q.members {
		if q.members[i].room == 0 {
			return false
		}
	}
	var p *child
	for i := range q.members {
		c := q.newChild(r, p)
		c.Offset, c.Buf = 0, nil
		q.stageChild(i, c)
		p = c.parent
	}
	q.out++
	return true
}

// hasRoom reports whether the members take all children of a range. Extents go
// round the members, so the first of them have one more than the rest.
func (q *queue) hasRoom(offset, n int64) bool {
	count, width := q.stripes.Count(offset, n), len(q.members)
	first, _, _ := q.stripes.At(offset)
	for i := range q.members {
		behind := i - first
		if behind < 0 {
			behind += width
		}
		if q.members[i].room < (count-behind+width-1)/width {
			return false
		}
	}
	return true
}

// newChild takes a free child for a part of r. p is the parent, nil for the first
// child, which becomes it.
func (q *queue) newChild(r *poller.Request, p *child) *child {
	c := &q.children[q.free]
	q.free = c.next
	if p == nil {
		p = c
		p.request, p.left, p.polled, p.err, p.first = r, 0, true, nil, 0
	}
	p.left++
	c.parent = p
	c.Op, c.Flags, c.Priority = r.Op, r.Flags, r.Priority
	return c
}

func (q *queue) stageChild(slot int, c *child) {
	q.layer.Begin(&c.Request, c.parent.request)
	q.members[slot].children++
	q.stage(slot, &c.Request)
}

// stage puts a request among those to be handed to the member at slot, which
// has room.
func (q *queue) stage(slot int, r *poller.Request) {
	m := &q.members[slot]
	m.room--
	m.staged[m.nstaged] = r
	m.nstaged++
	q.staging.add(slot)
}

// handDown submits what is staged for a member.
func (q *queue) handDown(slot int) {
	m := &q.members[slot]
	staged := m.nstaged
	m.nstaged = 0
	n, err := m.queue.Submit(m.staged[:staged])
	if n != 0 {
		q.busy.add(slot)
	}
	if n != staged {
		q.notTaken(slot, m.staged[n:staged], err)
	}
}

// notTaken fails what a member did not take. It had room for all of it, so it
// cannot be taken later either.
func (q *queue) notTaken(slot int, staged []*poller.Request, err error) {
	if err == nil {
		err = errors.New("the member took fewer requests than it had granted")
	}
	for _, r := range staged {
		r.N, r.Err, r.Polled = 0, err, false
		q.members[slot].room++
		if finished := q.finish(r, slot); finished != nil {
			q.finished.Push(finished)
		}
	}
}

// hasPlace bounds what is accepted without room on a member.
func (q *queue) hasPlace() bool { return q.finished.Len() < len(q.children) }

// refuse accepts a request for which there is an error already.
func (q *queue) refuse(r *poller.Request, err error) bool {
	if !q.hasPlace() {
		return false
	}
	r.N, r.Polled, r.Err = 0, false, err
	q.rec.Finish(r, q.tree.Now())
	q.out++
	q.finished.Push(r)
	return true
}

func (q *queue) refuseAll(reqs []*poller.Request, why *sticky) (n int) {
	for n < len(reqs) && q.refuse(reqs[n], q.errorOf(reqs[n], why.member, why.err)) {
		n++
	}
	return n
}

// fault says what is wrong with a read or write, if anything. Its buffer is
// looked at too, as members with different needs must not do half of a request
// that will be split.
func (q *queue) fault(r *poller.Request, n int64) error {
	switch {
	case r.Op > poller.Flush:
		return fmt.Errorf("%w: %v", poller.ErrOp, r.Op)
	case r.Op > q.lastOp:
		return poller.ErrReadOnly
	case !q.stripes.Contains(r.Offset, n):
		return fmt.Errorf("%w: %d bytes at %d of %d", poller.ErrRange, n, r.Offset, q.stripes.Size())
	case n > q.maxTransfer:
		return fmt.Errorf("%w: %d bytes, at most %d", poller.ErrTooLong, n, q.maxTransfer)
	case n != 0 && (r.Offset|n)&q.blockMask != 0:
		return fmt.Errorf("%w: %d bytes at %d, both must be multiples of %d", poller.ErrAlignment, n, r.Offset, q.blockMask+1)
	}
	return q.tree.Arena().Fault(r.Buf, q.vol.limits.BufAlign)
}
