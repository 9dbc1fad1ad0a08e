// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"pollux/poller"
)

// lane is a queue that many goroutines share. At most one of them, the leader, uses
// the queue at any moment:
//
//	call ──► op ──► inbox ──► pending ──► queue ──► settled: the call is woken
//	        (anyone, under mu)  (the leader alone)
//
// A call whose op is in the inbox leads if nobody does. Otherwise it sleeps until its
// op is done, or until the leader, whose own I/O is done, hands the lane over to it.
// The rule that keeps the lane alive: while a call waits for I/O, somebody leads.
//
// It rests when nobody waits, though abandoned I/O may be out then; the next leader
// takes that back.
type lane struct {
	name    string // of the device
	arena   *poller.Arena
	waker   *poller.Waker
	queue   poller.Queue // the leader's
	ops     []op
	timeout time.Duration     // of calls, below 0 for none
	timed   bool              // calls have deadlines
	led     atomic.Bool       // leader != nil, for those who pick a lane; changed under mu
	unsent  []*poller.Request // the leader's: pending, oldest first
	done    []*poller.Request // the leader's: what the last Wait returned

	mu     sync.Mutex
	leader *party
	inbox  []*poller.Request
	small  class
	large  class
	big    *class // large, or small where there are no others
	// waves are the parties whose ops are out.
	waves parties
	// calls is how many were admitted and have not left.
	calls int
	// out is how many requests the queue holds. The leader brings it up to date
	// when it has the mutex.
	out int
	// quick says that all that was out came back in the last turn. A call that
	// hands something over then does not go to sleep at once, but lets others run
	// first: most likely its I/O is done after that. This is where the drive is as
	// fast as a poll, and switching goroutines by sleep and wake costs as much as
	// half an I/O.
	quick bool
	// inWait says that the leader does not look at the inbox before it is woken or
	// I/O has finished. Who resets it wakes it.
	inWait bool

	closing bool   // nobody is admitted any more
	stopped bool   // nobody waits any more: the time of Close is up
	closer  *party // Close, waiting for all calls to leave and all I/O to come back
	broken  error  // of the queue
}

// largeShare is of how many ops with a short buffer there is one with a long one. The
// arena counts against RLIMIT_MEMLOCK, which is 8 MiB by default: with 256 ops it
// is 3 MiB.
const largeShare = 8

// slot returns how much of the arena a buffer of n bytes takes: all begin on a
// multiple of align, and on a page where they are long enough to have one.
func (h *Handle) slot(align, n int64) int64 {
	align = max(align, int64(os.Getpagesize()), h.blockMask+1)
	return (n + align - 1) / align * align
}

// newLane makes a lane of the handle. What is left of the budget may not suffice for
// a long request where it does for a short one.
func (h *Handle) newLane() (*lane, error) {
	l, err := h.newLaneOf(h.large)
	if errors.Is(err, poller.ErrBudget) && h.small < h.large {
		l, err = h.newLaneOf(h.small)
	}
	return l, err
}

func (h *Handle) newLaneOf(longest int64) (_ *lane, err error) {
	align := h.dev.Limits().BufAlign
	shorts, longs := h.opts.Depth, 0
	if longest > h.small {
		longs = max(shorts/largeShare, 1)
	}
	short, long := h.slot(align, h.small), h.slot(align, longest)
	l := &lane{
		name:    h.name,
		ops:     make([]op, longs+shorts),
		inbox:   make([]*poller.Request, 0, longs+shorts),
		unsent:  make([]*poller.Request, 0, longs+shorts),
		done:    make([]*poller.Request, longs+shorts),
		small:   class{size: h.small},
		large:   class{size: longest},
		timed:   h.opts.Timeout > 0,
		timeout: -1,
	}
	if l.timed {
		l.timeout = h.opts.Timeout
	}
	l.big = &l.small
	if longs > 0 {
		l.big = &l.large
	}
	if l.arena, err = poller.NewArena(int64(longs)*long + int64(shorts)*short); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = l.close()
		}
	}()
	if l.waker, err = poller.NewWaker(); err != nil {
		return nil, err
	}
	l.queue, err = h.dev.NewQueue(poller.QueueConfig{
		Depth:       len(l.ops),
		MaxTransfer: longest,
		Queues:      h.opts.Queues,
		Arena:       l.arena,
		Waker:       l.waker,
		// The handle drains: when it closes the queue its patience is at an end.
		CloseTimeout: 1,
	})
	if err != nil {
		return nil, err
	}
	mem := l.arena.Bytes()
	for i := range l.ops {
		o, c, n := &l.ops[i], &l.large, long
		if i >= longs {
			c, n = &l.small, short
		}
		o.req.Tag, o.class, o.mem = uint64(i), c, mem[:c.size:c.size]
		o.party.wake = make(chan bool, 1)
		o.next, c.free = c.free, o
		mem = mem[n:]
	}
	return l, nil
}

// close closes what the lane is made of.
func (l *lane) close() error {
	var err error
	if l.queue != nil {
		err = l.queue.Close()
	}
	if !errors.Is(err, poller.ErrNotDrained) {
		// Otherwise it is kept, as the device may still write to it.
		err = errors.Join(err, l.arena.Close())
	}
	if l.waker != nil {
		err = errors.Join(err, l.waker.Close())
	}
	return err
}

// pick returns a lane that nobody leads, or a new one while there may be more, or
// else that whose turn it is.
func (h *Handle) pick() (*lane, error) {
	made := int(h.made.Load())
	if made == len(h.lanes) && made == 1 {
		return h.lanes[0].Load(), nil
	}
	for i := range made {
		if l := h.lanes[i].Load(); !l.led.Load() {
			return l, nil
		}
	}
	if made < len(h.lanes) && !h.enough.Load() {
		if l, err := h.grow(made); l != nil || err != nil {
			return l, err
		}
		made = int(h.made.Load())
	}
	if made == 1 {
		return h.lanes[0].Load(), nil
	}
	return h.lanes[h.turn.Add(1)%uint32(made)].Load(), nil
}

// grow makes one more lane than there were and returns it; nil, nil means that there
// are others to be used. Only the first must succeed.
func (h *Handle) grow(had int) (*lane, error) {
	if had == 0 {
		h.mu.Lock()
	} else if !h.mu.TryLock() {
		return nil, nil // somebody else is making one
	}
	defer h.mu.Unlock()
	if h.closed.Load() {
		return nil, errHandleClosed
	}
	if int(h.made.Load()) != had {
		return nil, nil
	}
	l, err := h.newLane()
	if err != nil {
		if had == 0 {
			return nil, fmt.Errorf("the first queue: %w", err)
		}
		h.enough.Store(true)
		return nil, nil
	}
	h.lanes[had].Store(l)
	h.made.Store(int32(had + 1))
	return l, nil
}

// enter admits a call, unless the handle is being closed.
func (l *lane) enter() bool {
	l.mu.Lock()
	ok := !l.closing
	if ok {
		l.calls++
	}
	l.mu.Unlock()
	return ok
}

// exit takes leave of an admitted call.
func (l *lane) exit() {
	l.mu.Lock()
	l.calls--
	if l.closer != nil {
		l.checkCloser()
	}
	l.mu.Unlock()
}

// take takes as many ops as are free, at most want, chained by next. While none is it
// waits, until the deadline. small says that a short buffer is long enough, begun that
// the call has done some of its I/O already, and is to finish while Close waits.
func (l *lane) take(small, begun bool, want int, deadline int64) (*op, error) {
	l.mu.Lock()
	c := l.big
	if small && (l.small.free != nil || l.big.free == nil) {
		c = &l.small
	}
	if o := c.free; o != nil {
		last := o
		for n := 1; n < want && last.next != nil; n++ {
			last = last.next
		}
		c.free, last.next = last.next, nil
		l.mu.Unlock()
		return o, nil
	}
	if err := l.unfit(); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	p := strangers.Get().(*party)
	p.reset(deadline)
	p.begun = begun
	c.waiters.add(p)
	// Who holds the ops gives them back soon, or they are out: then somebody must
	// poll for them.
	lead := l.leader == nil && l.out > 0
	if lead {
		l.appoint(p)
	} else {
		l.mu.Unlock()
	}
	l.await(p, lead)
	o, f := p.got, p.fate
	strangers.Put(p)
	if f != finished {
		return nil, l.errorFor(f)
	}
	return o, nil
}

// unfit says why no further I/O is taken, if so.
func (l *lane) unfit() error {
	switch {
	case l.broken != nil:
		return l.broken
	case l.stopped:
		return poller.ErrNotDrained
	}
	return nil
}

// give gives a wave of ops back that are not out.
func (l *lane) give(head *op) {
	l.mu.Lock()
	for o := head; o != nil; {
		next := o.next
		l.release(o)
		o = next
	}
	l.mu.Unlock()
}

// release makes an op free, or gives it to who waits for it.
func (l *lane) release(o *op) {
	o.orphan = false
	p := o.class.waiters.first
	if p == nil {
		o.next, o.class.free = o.class.free, o
		return
	}
	o.class.waiters.remove(p)
	o.next = nil
	p.got = o
	l.settleOne(p, finished)
}

// settleOne decides the fate of a party and lets it know. This is for the rare cases;
// what comes back from the queue is told to all at once.
func (l *lane) settleOne(p *party, f fate) {
	p.fate = f
	if p != l.leader {
		if p.asleep {
			p.wake <- false
		}
	} else if l.inWait {
		l.inWait = false
		l.waker.Wake()
	}
}

// run has the ops of the wave that begins with head done, and returns when all are
// back: their requests have the results. On error none of the ops is the caller's any
// more.
func (l *lane) run(head *op, deadline int64) error {
	l.mu.Lock()
	if err := l.unfit(); err != nil {
		l.mu.Unlock()
		l.give(head)
		return err
	}
	return l.runLocked(head, deadline)
}

// runLocked is run with mu held, which it releases.
func (l *lane) runLocked(head *op, deadline int64) error {
	p := &head.party
	p.reset(deadline)
	p.ops = head
	for o := head; o != nil; o = o.next {
		o.head, o.out = head, true
		p.left++
		l.inbox = append(l.inbox, &o.req)
	}
	l.waves.add(p)
	if l.leader == nil {
		l.appoint(p)
		l.await(p, true)
		return l.outcome(head)
	}
	wake, quick := l.inWait, l.quick
	l.inWait, p.asleep = false, !quick
	l.mu.Unlock()
	if wake {
		l.waker.Wake()
	}
	if !quick || !l.yield(p) {
		l.await(p, false)
	}
	return l.outcome(head)
}

// yield lets other goroutines run, the leader among them, and says whether the fate
// of p is settled after that. Otherwise p is to sleep.
func (l *lane) yield(p *party) bool {
	runtime.Gosched()
	l.mu.Lock()
	p.asleep = true
	switch {
	case p.fate != pending:
		l.mu.Unlock()
		return true
	case l.leader == p:
		l.await(p, true)
		return true
	}
	l.mu.Unlock()
	return false
}

// outcome is what has become of a wave whose fate is settled.
func (l *lane) outcome(head *op) error {
	f := head.party.fate
	if f == finished {
		return nil
	}
	l.letGo(head)
	return l.errorFor(f)
}

// readShort is the way of most calls, a read of whole blocks that fit into a short
// buffer, from beginning to end, with the mutex taken twice. false means that it did
// nothing, and that the call has to go the long way.
func (l *lane) readShort(p []byte, off int64, flags poller.Flags, deadline int64) (bool, error) {
	l.mu.Lock()
	o := l.small.free
	if o == nil || l.closing || l.broken != nil {
		l.mu.Unlock()
		return false, nil
	}
	l.small.free, o.next = o.next, nil
	l.calls++
	r := &o.req
	r.Op, r.Flags, r.Offset, r.Buf = poller.Read, flags, off, o.mem[:len(p)]
	alone, err := false, error(nil)
	if l.calls == 1 && l.leader == nil && l.out == 0 {
		alone, err = l.runAlone(o, deadline)
	} else {
		err = l.runLocked(o, deadline)
	}
	if err != nil {
		l.exit()
		return true, err
	}
	if err = r.Err; err == nil {
		copy(p, r.Buf)
	}
	l.mu.Lock()
	l.release(o)
	l.calls--
	if l.closer != nil {
		l.checkCloser()
	}
	var next *party
	if alone {
		l.inWait = false
		if l.stopped {
			l.collect()
			l.abandonAll(given)
		}
		next = l.succeed()
	}
	l.mu.Unlock()
	if next != nil {
		next.wake <- true
	}
	return true, err
}

// runAlone is runLocked for one op while nobody else is in the lane and nothing is
// out: the leader then has nothing to keep account of. Others may come meanwhile; they
// find the lane led and wait in the inbox. true means that the call leads the lane
// still and has to hand it over.
func (l *lane) runAlone(o *op, deadline int64) (bool, error) {
	l.appoint(&o.party)
	l.inWait = true
	l.mu.Unlock()
	l.unsent = l.unsent[:1]
	l.unsent[0] = &o.req
	sent, err := l.queue.Submit(l.unsent)
	back := 0
	if err == nil {
		if sent == 0 {
			err = errStuck
		} else {
			back, err = l.queue.Wait(1, l.done, l.timeout)
		}
	}
	l.unsent = l.unsent[:0]
	if back != 0 && err == nil {
		// inWait stays, for whoever hands something over until the mutex is
		// taken again: the wake that costs is one too many, not one too few.
		return true, nil
	}
	// It takes longer: others have come, or time is up.
	l.mu.Lock()
	l.inWait = false
	p := &o.party
	p.reset(deadline)
	p.ops, p.left = o, 1
	o.head, o.out = o, true
	l.waves.add(p)
	l.out += sent - back
	if err != nil {
		l.settleBroken(back, err)
	}
	l.await(p, true)
	return false, l.outcome(o)
}

// letGo gives up a wave that did not finish. Its head was kept, as it had the fate.
func (l *lane) letGo(head *op) {
	l.mu.Lock()
	if head.out {
		head.orphan = true
	} else {
		l.release(head)
	}
	l.mu.Unlock()
}

// errorFor is what a call with such a fate returns.
func (l *lane) errorFor(f fate) error {
	switch f {
	case expired:
		return fmt.Errorf("no answer in the time allowed: %w", os.ErrDeadlineExceeded)
	case refused:
		return errHandleClosed
	case ringLost:
		return l.broken // set for good, and before the fate
	}
	return poller.ErrNotDrained
}
