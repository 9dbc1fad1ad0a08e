// SPDX-License-Identifier: Apache-2.0

package faultdev

import (
	"fmt"
	"math/rand/v2"
	"reflect"

	"pollux/poller"
)

// memQueue is the queue of a Memory. Bytes move when a request finishes, not
// before, so that whoever looks into a buffer too early sees that it is.
type memQueue struct {
	poller.Inner
	mem         *Memory
	tree        *poller.Tree
	maxTransfer int64
	share       int     // of the budget
	used        int     // by what is flying
	arena       uintptr // where it begins
	arenaLen    int

	random   *rand.Rand // nil: in order, at the next poll
	polls    int
	flying   []flight // each counted in the tree as polled
	finished poller.Fifo
	rec      poller.Recorder
}

type flight struct {
	req   *poller.Request
	units int // of the budget
	due   int // the poll that finishes it
}

// NewQueue implements poller.Device.
func (m *Memory) NewQueue(cfg poller.QueueConfig) (poller.Queue, error) {
	q, err := poller.MakeQueue(cfg, m.newQueue)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.opts.Name, err)
	}
	return q, nil
}

func (m *Memory) newQueue(cfg poller.QueueConfig) (poller.Node, error) {
	share, number, err := m.reserve(cfg)
	if err != nil {
		return nil, err
	}
	arena := cfg.Tree.Arena().Bytes()
	q := &memQueue{
		mem:         m,
		tree:        cfg.Tree,
		maxTransfer: cfg.MaxTransfer,
		share:       share,
		arena:       address(arena),
		arenaLen:    len(arena),
		flying:      make([]flight, 0, share),
		finished:    cfg.Tree.NewFifo(),
	}
	if m.opts.Seed != 0 {
		q.random = rand.New(rand.NewPCG(m.opts.Seed, number))
	}
	q.rec.Granted(q.Limits().QueueDepth, 0)
	m.recorders.Add(&q.rec)
	return q, nil
}

// address returns where b begins, by reflection: unsafe is fenced off here.
func address(b []byte) uintptr { return reflect.ValueOf(&b[0]).Pointer() }

// Limits implements poller.Node.
func (q *memQueue) Limits() poller.Limits {
	l := q.mem.Limits()
	l.MaxTransfer, l.QueueDepth, l.Unit = q.maxTransfer, q.share/q.mem.units(q.maxTransfer), 0
	l.Arena, l.FixedBuffers = q.tree.Arena(), q.tree.FixedBuffers()
	return l
}

// Submit implements poller.Node.
func (q *memQueue) Submit(reqs []*poller.Request) (int, error) {
	n := 0
	for n < len(reqs) && q.accept(reqs[n]) {
		n++
	}
	return n, nil
}

// accept takes r, unless there is no room. What needs none of the budget is
// bounded by it all the same.
func (q *memQueue) accept(r *poller.Request) bool {
	if q.Outstanding() >= q.share {
		return false
	}
	if err := q.fault(r); err != nil {
		r.N, r.Polled, r.Err = 0, false, q.errorOf(r, err)
		q.rec.Finish(r, q.tree.Now())
		q.finished.Push(r)
		return true
	}
	if r.Op != poller.Flush && len(r.Buf) == 0 {
		r.N, r.Polled, r.Err = 0, false, nil
		q.finished.Push(r)
		return true
	}
	units := 1
	if r.Op != poller.Flush {
		units = q.mem.units(int64(len(r.Buf)))
	}
	if q.used+units > q.share {
		return false
	}
	r.N, r.Err, r.Polled = 0, nil, false
	if r.Op == poller.Flush && r.Flags&poller.HiPri != 0 {
		q.rec.FellBack(poller.FallbackFlush)
	}
	due := q.polls + 1
	if q.random != nil && q.mem.opts.Lateness > 1 {
		due += q.random.IntN(q.mem.opts.Lateness)
	}
	q.used += units
	q.flying = append(q.flying, flight{r, units, due})
	q.tree.AddPolled(1)
	return true
}

// fault says what is wrong with a request, if anything.
func (q *memQueue) fault(r *poller.Request) error {
	n, size := int64(len(r.Buf)), q.mem.size
	switch {
	case r.Op > poller.Flush:
		return fmt.Errorf("%w: %v", poller.ErrOp, r.Op)
	case r.Op == poller.Flush:
		return nil
	case r.Op == poller.Write && q.mem.opts.ReadOnly:
		return poller.ErrReadOnly
	case r.Offset < 0 || r.Offset > size || n > size-r.Offset:
		return fmt.Errorf("%w: %d bytes at %d of %d", poller.ErrRange, n, r.Offset, size)
	case n > q.maxTransfer:
		return fmt.Errorf("%w: %d bytes, at most %d", poller.ErrTooLong, n, q.maxTransfer)
	case n == 0:
		return nil
	case (r.Offset|n)&(q.mem.block-1) != 0:
		return fmt.Errorf("%w: %d bytes at %d, both must be multiples of %d", poller.ErrAlignment, n, r.Offset, q.mem.block)
	}
	addr := address(r.Buf)
	if len(r.Buf) > q.arenaLen || addr-q.arena > uintptr(q.arenaLen-len(r.Buf)) {
		return poller.ErrArena
	}
	if off := addr & uintptr(q.mem.opts.BufAlign-1); off != 0 {
		return fmt.Errorf("%w: the buffer begins %d bytes off a multiple of %d", poller.ErrAlignment, off, q.mem.opts.BufAlign)
	}
	return nil
}

// Poll implements poller.Node.
func (q *memQueue) Poll(done []*poller.Request) (int, error) {
	n := q.finished.Pop(done)
	q.polls++
	if len(q.flying) > 0 && n < len(done) {
		n += q.finish(done[n:])
	}
	q.rec.Polled(n, q.Outstanding())
	return n, nil
}

// finish moves the bytes of what is due, as much as done has room for.
func (q *memQueue) finish(done []*poller.Request) (n int) {
	q.tree.Tick()
	q.mem.content.mu.Lock()
	defer q.mem.content.mu.Unlock()
	if q.random != nil {
		q.random.Shuffle(len(q.flying), func(i, j int) { q.flying[i], q.flying[j] = q.flying[j], q.flying[i] })
	}
	still := q.flying[:0]
	for _, f := range q.flying {
		if n == len(done) || f.due > q.polls {
			still = append(still, f)
			continue
		}
		q.move(f)
		done[n] = f.req
		n++
	}
	clear(q.flying[len(still):])
	q.flying = still
	q.tree.AddPolled(-n)
	return n
}

func (q *memQueue) move(f flight) {
	r := f.req
	q.used -= f.units
	switch r.Op {
	case poller.Read:
		copy(r.Buf, q.mem.content.bytes[r.Offset:])
	case poller.Write:
		copy(q.mem.content.bytes[r.Offset:], r.Buf)
	}
	if r.Op != poller.Flush {
		r.N = len(r.Buf)
	}
	r.Polled = r.Flags&poller.HiPri != 0 && r.Op != poller.Flush
	q.rec.Finish(r, q.tree.Now())
}

// Stats implements poller.Node.
func (q *memQueue) Stats() poller.Stats { return q.rec.Snapshot() }

// Outstanding implements poller.Node.
func (q *memQueue) Outstanding() int { return len(q.flying) + q.finished.Len() }

// Close implements poller.Node.
func (q *memQueue) Close() error {
	for _, f := range q.flying {
		poller.Abandon(f.req, q.errorOf(f.req, poller.ErrNotDrained))
	}
	q.mem.recorders.Remove(&q.rec)
	q.mem.mu.Lock()
	defer q.mem.mu.Unlock()
	q.mem.reserved -= q.share
	return nil
}

func (q *memQueue) errorOf(r *poller.Request, err error) error {
	return &poller.Error{Op: r.Op, Member: -1, Path: q.mem.opts.Name, Offset: r.Offset, Err: err}
}
