// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"

	"pollux/poller"
	"pollux/stripe"
)

// queue is the queue of a Volume. A request within one chunk is handed down to
// the member as it came, with the offset changed to the member's, as the kernel's
// stacked drivers do with a bio; any other becomes several children.
type queue struct {
	poller.Inner
	vol  *Volume
	tree *poller.Tree

	stripes     stripe.Geometry
	blockMask   int64
	maxTransfer int64
	lastOp      poller.Op // Read where a member is read-only, otherwise Write
	members     []member
	// staging and busy are the members that have something staged, and out.
	staging, busy memberSet

	// children are all that there can be. The Tag of a child's request is its
	// index. free is the first of those that are free.
	layer    poller.Layer
	children []child
	free     uint32

	// from is the member that the next Poll begins with, when done was full
	// before the last one got to it. Otherwise a busy member could keep those
	// behind it from being heard for ever.
	from int

	out      int // requests accepted and not returned
	finished poller.Fifo
	rec      poller.Recorder
}

// member is the queue's part on one member.
type member struct {
	queue poller.Queue
	// granted is how many requests the member takes, room how many more it
	// takes now. Counting here means that nothing is ever handed down in vain.
	granted, room int
	// children is how many of those out are children.
	children int
	// staged is what is handed down at the end of the call, nstaged of them.
	staged  []*poller.Request
	nstaged int
	done    []*poller.Request // what a poll returned, where children are out
}

// child is what a request of several wants from one member. The first of them
// counts for all: it is the parent.
type child struct {
	poller.Request
	parent *child
	next   uint32 // free child behind this one

	// Of a parent:
	request *poller.Request
	left    int32
	polled  bool
	err     error
	first   int64 // when the first part of it was done, by the tree's clock; 0: none is
}

// memberSet has one bit for each of the 128 members that there may be, so that a
// volume of many costs a request no more than those it goes to.
type memberSet [stripe.MaxMembers / 64]uint64

func (s *memberSet) add(slot int)    { s[slot>>6&1] |= 1 << (slot & 63) }
func (s *memberSet) remove(slot int) { s[slot>>6&1] &^= 1 << (slot & 63) }

// NewQueue implements poller.Device.
func (v *Volume) NewQueue(cfg poller.QueueConfig) (poller.Queue, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, fmt.Errorf("volume %s: %w", v.name, poller.ErrClosed)
	}
	q, err := poller.MakeQueue(cfg, v.newQueue)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.name, err)
	}
	return q, nil
}

func (v *Volume) newQueue(cfg poller.QueueConfig) (poller.Node, error) {
	q := &queue{
		vol:         v,
		tree:        cfg.Tree,
		stripes:     v.stripes,
		blockMask:   v.limits.BlockSize - 1,
		maxTransfer: cfg.MaxTransfer,
		lastOp:      poller.Write,
		members:     make([]member, len(v.members)),
		layer:       cfg.Tree.NewLayer(),
		finished:    cfg.Tree.NewFifo(),
	}
	if v.limits.ReadOnly {
		q.lastOp = poller.Read
	}
	perMember := v.stripes.MaxPerMember(cfg.MaxTransfer)
	cfg.Depth *= perMember
	cfg.MinDepth *= perMember
	cfg.MaxTransfer = v.stripes.MaxExtent(cfg.MaxTransfer)
	total := 0
	for i, dev := range v.members {
		mq, err := dev.NewQueue(cfg)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("member %d: %w", i, err), q.closeMembers())
		}
		granted := mq.Limits().QueueDepth
		total += granted
		q.members[i] = member{
			queue:   mq,
			granted: granted,
			room:    granted,
			staged:  make([]*poller.Request, granted),
			done:    make([]*poller.Request, granted),
		}
	}
	// A parent whose own part is back keeps its place while a sibling, which
	// holds room of its member, is out: hence twice as many as there is room.
	q.children = make([]child, 2*total)
	q.finished.Reserve(total)
	for i := range q.children {
		c := &q.children[i]
		c.Tag, c.next = uint64(i), uint32(i+1)
		q.layer.Adopt(&c.Request)
	}
	q.rec.Granted(q.Limits().QueueDepth, len(q.members))
	v.recorders.Add(&q.rec)
	return q, nil
}

// Limits implements poller.Node.
func (q *queue) Limits() poller.Limits {
	l := q.vol.limits
	perMember := q.stripes.MaxPerMember(q.maxTransfer)
	for i := range q.members {
		granted := q.members[i].granted / perMember
		if i == 0 || granted < l.QueueDepth {
			l.QueueDepth = granted
		}
	}
	l.MaxTransfer, l.Unit = q.maxTransfer, 0
	l.FixedBuffers = q.tree.FixedBuffers()
	l.Arena = q.tree.Arena()
	return l
}

// Stats implements poller.Node.
func (q *queue) Stats() poller.Stats { return q.rec.Snapshot() }

// Outstanding implements poller.Node.
func (q *queue) Outstanding() int { return q.out }

// Close implements poller.Node. What was handed down as it came is the members'
// to give up on.
func (q *queue) Close() error {
	free := make([]bool, len(q.children))
	for i := q.free; int(i) < len(q.children); i = q.children[i].next {
		free[i] = true
	}
	for i := range q.children {
		if p := &q.children[i]; !free[i] && p.parent == p {
			poller.Abandon(p.request, q.errorOf(p.request, -1, poller.ErrNotDrained))
		}
	}
	err := q.closeMembers()
	q.vol.recorders.Remove(&q.rec)
	return err
}

func (q *queue) closeMembers() error {
	var errs []error
	for i := range q.members {
		if mq := q.members[i].queue; mq != nil {
			errs = append(errs, mq.Close())
		}
	}
	return errors.Join(errs...)
}

// errorOf wraps err, of the given member or of the volume itself if that is -1.
func (q *queue) errorOf(r *poller.Request, member int, err error) error {
	return &poller.Error{Op: r.Op, Member: member, Path: "volume " + q.vol.name, Offset: r.Offset, Err: err}
}
