// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"fmt"
	"os"

	"pollux/internal/uring"
)

// Submit implements Node.
func (q *diskQueue) Submit(reqs []*Request) (int, error) {
	n := 0
	if now := q.disk.drive.Load(); now != q.drive {
		if err := q.attach(now); err != nil {
			return 0, err
		}
	}
	for n < len(reqs) && q.accept(reqs[n]) {
		n++
	}
	return n, nil
}

// accept takes r, unless there is no room for all of its children.
func (q *diskQueue) accept(r *Request) bool {
	// The common case, written out: a read or write that is one child whatever
	// the alignment of its buffer, and has nothing wrong with it.
	n := int64(len(r.Buf))
	free := q.free
	if uint64(n-1) >= uint64(q.single) || r.Op > q.lastOp || int(free) >= len(q.slots) ||
		(r.Offset|n)&q.blockMask != 0 || uint64(r.Offset) > uint64(q.size-n) {
		return q.acceptAny(r)
	}
	addr, inArena := q.mem.Addr(r.Buf)
	if !inArena || addr&q.fixedMask != 0 {
		return q.acceptAny(r)
	}
	s := &q.slots[free]
	q.free = s.next
	q.nfree--
	q.out++
	r.left = 1
	s.req, s.pos, s.len = r, 0, uint32(n)
	if r.Flags != HiPri || q.polled == nil {
		q.countFallback(r)
		q.push(s, r, addr)
		return true
	}
	// What push does for this case.
	ring, file := q.pollRing()
	sqe := ring.SQE()
	s.polled = true
	q.polledOut++
	q.tree.polled++
	sqe.Opcode = q.opcodes[r.Op&3]
	sqe.Flags = uring.FixedFile
	sqe.IOPrio = uint16(r.Priority)
	sqe.FD = file
	sqe.Off = uint64(r.Offset + q.base)
	sqe.Addr = uint64(addr)
	sqe.Len = uint32(n)
	sqe.OpFlags = 0
	sqe.UserData = s.userData
	sqe.BufIndex = 0
	return true
}

// acceptAny is accept for every kind of request.
func (q *diskQueue) acceptAny(r *Request) bool {
	if q.out >= len(q.slots) {
		return false
	}
	r.N, r.Polled = 0, false
	n := len(r.Buf)
	switch {
	case r.Op == Flush && !q.disk.info.WriteThrough:
		if q.nfree == 0 {
			return false
		}
		if r.Flags&HiPri != 0 {
			q.rec.FellBack(FallbackFlush)
		}
		r.left = 1
		q.start(r, 0, 0, 0)
	case r.Op == Flush, r.Op <= Write && n == 0 && uint64(r.Offset) <= uint64(q.size):
		q.finished.Push(r)
	default:
		if err := q.fault(r, n); err != nil {
			r.Err = q.errorOf(r, err)
			q.rec.Finish(r, q.tree.now)
			q.finished.Push(r)
			break
		}
		addr, _ := q.mem.Addr(r.Buf)
		if !q.acceptSplit(r, addr, n) {
			return false
		}
	}
	q.out++
	return true
}

// pageMask is of the offset within a page.
var pageMask = uintptr(os.Getpagesize() - 1)

// acceptSplit starts a request of one or more children.
func (q *diskQueue) acceptSplit(r *Request, addr uintptr, n int) bool {
	// Where the first child begins on a page and is whole pages long, so does
	// and is every other.
	aligned := (addr|uintptr(q.caps.aligned))&pageMask == 0
	children := 0
	for pos := int64(0); pos < int64(n); children++ {
		pos += q.caps.next(r.Offset+pos, int64(n)-pos, aligned)
	}
	if children > q.nfree {
		return false
	}
	if children > 1 {
		q.rec.Split()
	}
	q.countFallback(r)
	r.left = int32(children)
	for pos := int64(0); pos < int64(n); {
		length := q.caps.next(r.Offset+pos, int64(n)-pos, aligned)
		q.start(r, addr, int(pos), uint32(length))
		pos += length
	}
	return true
}

// countFallback counts a read or write that is to be polled and cannot be.
func (q *diskQueue) countFallback(r *Request) {
	if r.Flags&HiPri != 0 && q.polled == nil {
		q.rec.FellBack(FallbackNotPollable)
	}
}

// start gives a child a slot and an entry of the ring it goes through. length 0
// is a flush.
func (q *diskQueue) start(r *Request, addr uintptr, pos int, length uint32) {
	s := &q.slots[q.free]
	q.free = s.next
	q.nfree--
	s.req, s.pos, s.len = r, pos, length
	q.push(s, r, addr)
}

// push fills an entry for the child of r in s, at first and after an EAGAIN;
// addr is that of the request's buffer.
func (q *diskQueue) push(s *slot, r *Request, addr uintptr) {
	var sqe *uring.SQE
	if r.Flags&HiPri != 0 && q.polled != nil && r.Op != Flush {
		ring, file := q.pollRing()
		sqe = ring.SQE() // there is one for each slot
		sqe.FD = file
		s.polled = true
		q.polledOut++
		q.tree.polled++
	} else {
		sqe = q.tree.plainSQE()
		sqe.FD = q.index
		s.polled = false
		q.plainOut++
	}
	sqe.Opcode = q.opcodes[r.Op&3]
	if addr&q.fixedMask != 0 {
		sqe.Opcode = unfixed[r.Op&3]
	}
	sqe.Flags = uring.FixedFile
	sqe.IOPrio = uint16(r.Priority)
	sqe.Off = uint64(r.Offset+q.base) + uint64(s.pos)
	sqe.Addr = uint64(addr) + uint64(s.pos)
	sqe.Len = s.len
	sqe.OpFlags = 0
	if r.Flags&(FUA|NoWait) != 0 || r.Op == Flush {
		sqe.OpFlags = opFlags(r)
	}
	if r.Op == Flush {
		sqe.Off = 0 // a range would be all that is synced
	}
	sqe.UserData = s.userData
	sqe.BufIndex = 0
}

// unfixed are the opcodes for memory that is not registered.
var unfixed = [4]uint8{Read: uring.OpRead, Write: uring.OpWrite, Flush: uring.OpFsync}

// opFlags are the bits of the operation, which for a flush are those of fsync.
func opFlags(r *Request) (bits uint32) {
	if r.Op == Flush {
		return uring.FsyncDatasync
	}
	if r.Flags&FUA != 0 && r.Op == Write {
		bits |= uring.RWDsync
	}
	if r.Flags&NoWait != 0 {
		bits |= uring.RWNowait
	}
	return bits
}

// fault says what is wrong with a read or write of n bytes, if anything.
func (q *diskQueue) fault(r *Request, n int) error {
	switch {
	case r.Op > Flush:
		return fmt.Errorf("%w: %v", ErrOp, r.Op)
	case r.Op > q.lastOp:
		return ErrReadOnly
	case r.Offset < 0 || r.Offset > q.size || int64(n) > q.size-r.Offset:
		return fmt.Errorf("%w: %d bytes at %d of %d", ErrRange, n, r.Offset, q.size)
	case int64(n) > q.maxTransfer:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLong, n, q.maxTransfer)
	case (r.Offset|int64(n))&q.blockMask != 0:
		return fmt.Errorf("%w: %d bytes at %d, both must be multiples of %d", ErrAlignment, n, r.Offset, q.blockMask+1)
	}
	return q.tree.arena.Fault(r.Buf, q.disk.info.BufAlign)
}
