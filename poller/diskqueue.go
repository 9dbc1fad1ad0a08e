// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"fmt"

	"pollux/internal/uring"
)

// diskQueue is the queue of a Disk. Requests become children, one submission
// entry and one slot each, for what the drive takes in one piece is limited.
type diskQueue struct {
	Inner
	disk *Disk
	// drive is what the rings have registered.
	drive *drive
	tree  *Tree

	// What a request is checked against, beside each other and in the types
	// of the check.
	base        int64 // where on the device the disk begins
	size        int64
	blockMask   int64
	caps        childCaps
	maxTransfer int64
	single      int64 // up to here a request is one child
	lastOp      Op    // Read where the disk is open read-only, otherwise Write
	mem         *uring.Memory
	opcodes     [4]uint8
	// fixedMask is of buffer addresses that a registered arena cannot serve:
	// the kernel keeps it as one segment a page, and direct I/O from such
	// segments must be whole logical blocks (iov_iter_aligned_bvec).
	fixedMask uintptr
	index     int32 // of the leaf among the registered files of the tree's rings

	polled    *uring.Ring // nil where the drive is not pollable
	onSolo    bool        // polled I/O goes through the tree's solo ring instead, until none is out
	polledOut int         // children pending or in flight on either
	plainOut  int         // and on the tree's plain ring

	slots []slot
	free  uint32 // first free slot, len(slots) when there is none
	nfree int
	// out counts accepted requests that have not come back; at most one for
	// each slot, so that requests which need none are bounded too.
	out      int
	finished Fifo
	rec      Recorder
}

// slot is a child in flight.
type slot struct {
	req *Request
	// userData is generation, leaf and slot: what the completion must carry.
	// The generation, on top where its overflow is lost, moves on when the slot
	// is given back, so that a completion that comes twice is noticed and not
	// taken for its successor's.
	userData uint64
	pos      int    // of the child in the request's buffer
	len      uint32 // 0 for a flush
	polled   bool
	// before is the userData of a child that went to a drive which was replaced since.
	before uint64
	next   uint32 // free slot behind this one
}

const (
	leafShift       = 32
	generationShift = 48
	maxLeaves       = 1 << (generationShift - leafShift)
)

// NewQueue implements Device.
func (d *Disk) NewQueue(cfg QueueConfig) (Queue, error) {
	q, err := MakeQueue(cfg, d.newQueue)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name(), err)
	}
	return q, nil
}

func (d *Disk) newQueue(cfg QueueConfig) (Node, error) {
	t := cfg.Tree
	perRequest := d.caps.count(cfg.MaxTransfer)
	if len(t.leaves) == maxLeaves {
		return nil, fmt.Errorf("a tree of more than %d disks", maxLeaves)
	}
	q := &diskQueue{
		disk:        d,
		drive:       d.drive.Load(),
		tree:        t,
		base:        d.base,
		size:        d.size,
		blockMask:   d.info.BlockSize - 1,
		fixedMask:   uintptr(max(d.info.BufAlign, d.info.BlockSize) - 1),
		caps:        d.caps,
		maxTransfer: cfg.MaxTransfer,
		single:      min(d.caps.single(), cfg.MaxTransfer, d.size),
		lastOp:      Read,
		mem:         t.arena.mem,
		finished:    t.NewFifo(),
		index:       int32(len(t.leaves)),
	}
	if d.opts.Write {
		q.lastOp = Write
	}
	tags, err := d.reserve(cfg.Depth*perRequest, cfg.MinDepth*perRequest, cfg.Queues, &q.rec)
	if err != nil {
		return nil, err
	}
	q.slots, q.nfree = make([]slot, tags), tags
	q.finished.Reserve(tags)
	for i := range q.slots {
		q.slots[i].userData = uint64(q.index)<<leafShift | uint64(i)
		q.slots[i].next = uint32(i + 1)
		q.slots[i].before = noUserData
	}
	t.leaves = append(t.leaves, q)
	q.rec.Granted(tags/perRequest, 0)
	return q, nil
}

// useFixed picks the opcodes, once it is known whether every ring of the tree
// has the memory registered.
func (q *diskQueue) useFixed(fixed bool) {
	q.opcodes = unfixed
	flags := q.tree.plain.SetupFlags()
	if q.polled != nil {
		flags = q.polled.SetupFlags()
	}
	q.rec.rings(fixed, flags)
	if fixed {
		q.opcodes[Read], q.opcodes[Write] = uring.OpReadFixed, uring.OpWriteFixed
	}
}

// pollRing returns the ring that the next polled child goes through, and the
// index of the disk among its files. A leaf changes rings only while it has
// nothing out.
func (q *diskQueue) pollRing() (ring *uring.Ring, file int32) {
	if q.polledOut == 0 {
		q.onSolo, q.tree.alone = q.tree.alone, false
	}
	if q.onSolo {
		return q.tree.solo, q.index
	}
	return q.polled, 0
}

// Limits implements Node.
func (q *diskQueue) Limits() Limits {
	l := q.disk.Limits()
	l.MaxTransfer = q.maxTransfer
	l.QueueDepth = len(q.slots) / q.caps.count(q.maxTransfer)
	l.Unit = 0
	l.FixedBuffers = q.tree.fixed
	l.Arena = q.tree.arena
	return l
}

// Stats implements Node.
func (q *diskQueue) Stats() Stats { return q.rec.Snapshot() }

// Outstanding implements Node.
func (q *diskQueue) Outstanding() int { return q.out }

// Close implements Node. A ring with I/O in flight is kept, and so are the tags:
// the drive still holds those requests. So is a ring that cannot be trusted.
func (q *diskQueue) Close() error {
	free := make([]bool, len(q.slots))
	for i := q.free; int(i) < len(q.slots); i = q.slots[i].next {
		free[i] = true
	}
	for i := range q.slots {
		if r := q.slots[i].req; !free[i] && !errors.Is(r.Err, ErrNotDrained) {
			Abandon(r, q.errorOf(r, ErrNotDrained))
		}
	}
	q.disk.recorders.Remove(&q.rec)
	if q.polledOut+q.plainOut > 0 || q.tree.distrusted() {
		return nil
	}
	q.disk.release(len(q.slots))
	if q.polled == nil {
		return nil
	}
	return closeRing(q.polled)
}
