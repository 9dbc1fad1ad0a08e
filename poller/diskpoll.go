// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"fmt"
	"syscall"

	"pollux/internal/uring"
)

// errRing says that a completion came for nothing that is in flight.
var errRing = errors.New("completion of an unknown request: the ring cannot be trusted any more")

// Poll implements Node. One system call starts what is pending on the ring for
// polled I/O and asks the drive for what has finished.
func (q *diskQueue) Poll(done []*Request) (n int, err error) {
	if q.finished.Len() != 0 {
		n = q.finished.Pop(done)
		q.out -= n
	}
	if q.polledOut != 0 {
		ring := q.polled
		if q.onSolo {
			ring = q.tree.solo
		}
		if err := ring.Enter(); err != nil {
			return n, fmt.Errorf("%s: %w", q.disk.name(), err)
		}
		// Each completion finishes at most one request.
		if ready := min(ring.Ready(), uint32(len(done)-n)); ready != 0 {
			n += q.reapPolled(ring, ready, done[n:])
		}
	}
	q.rec.Polled(n, q.out)
	return n, q.tree.broken
}

func (q *diskQueue) reapPolled(ring *uring.Ring, ready uint32, done []*Request) (n int) {
	q.tree.Tick()
	for i := range ready {
		if r := q.complete(ring.CQE(i)); r != nil {
			done[n] = r
			n++
		}
	}
	ring.Advance(ready)
	if n == 1 {
		q.rec.Finish(done[0], q.tree.now)
	} else {
		q.count(done[:n])
	}
	// Only now, as a child that is submitted again must not change rings.
	q.polledOut -= int(ready)
	q.tree.polled -= int(ready)
	q.out -= n
	return n
}

// count counts requests that are finished, those that failed too.
func (q *diskQueue) count(done []*Request) {
	for i := 0; i < len(done); i++ {
		i += q.rec.FinishAll(done[i:], q.tree.now)
		if i < len(done) {
			q.rec.Finish(done[i], q.tree.now)
		}
	}
}

// complete takes one completion, which the caller has counted, and returns the
// request that it finished, or nil if children of it are still out. The caller counts
// that too.
func (q *diskQueue) complete(cqe *uring.CQE) *Request {
	i := uint32(cqe.UserData)
	if int(i) >= len(q.slots) {
		return q.unknown()
	}
	s := &q.slots[i]
	if s.userData != cqe.UserData {
		return q.unknown()
	}
	if uint32(cqe.Res) != s.len && q.fail(s, cqe.Res) {
		return nil
	}
	s.userData += 1 << generationShift
	s.next, q.free = q.free, i
	q.nfree++
	r := s.req
	if r.left--; r.left != 0 {
		return nil
	}
	r.Polled = s.polled
	r.N = len(r.Buf)
	if r.Err != nil || r.Op == Flush {
		r.N = 0
	}
	return r
}

// unknown breaks the tree: nothing that the ring says can be believed.
func (q *diskQueue) unknown() *Request {
	q.tree.broken = fmt.Errorf("%s: %w", q.disk.name(), errRing)
	return nil
}

// fail sets the error of a child that did not move what it should have, or
// submits it again and reports that.
func (q *diskQueue) fail(s *slot, res int32) (retry bool) {
	r := s.req
	var err error
	switch errno := syscall.Errno(-res); {
	case res < 0 && errno == syscall.EAGAIN && r.Flags&NoWait == 0:
		q.rec.Retried()
		addr, _ := q.mem.Addr(r.Buf)
		q.push(s, r, addr)
		return true
	case res < 0:
		err = errno
		switch errno {
		case syscall.ENOSPC, syscall.ENODEV, syscall.ENXIO, syscall.ENOLINK, syscall.EIO:
			if q.isGone(s) {
				err = fmt.Errorf("%w: %w", ErrGone, errno)
				if errno == syscall.ENOSPC {
					err = ErrGone // what the kernel says past the end of a drive of size 0
				}
			}
		}
	case res == 0 && q.isGone(s):
		err = ErrGone
	default:
		err = fmt.Errorf("%w: %d bytes of %d", ErrShort, res, s.len)
	}
	if r.Err == nil {
		r.Err = q.errorOf(r, err)
	}
	return false
}

func (q *diskQueue) errorOf(r *Request, err error) error {
	return &Error{Op: r.Op, Member: -1, Path: q.disk.name(), Offset: r.Offset + q.base, Err: err}
}
