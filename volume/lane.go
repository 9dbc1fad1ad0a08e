// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"os"
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
	blocks  *blockLocks       // of the handle
	timeout time.Duration     // of calls, below 0 for none
	timed   bool              // calls have deadlines
	led     atomic.Bool       // leader != nil, for those who pick a lane; changed under mu
	lacks   atomic.Uint32     // what the lane cannot give to those; changed under mu
	unsent  []*poller.Request // the leader's: pending, oldest first
	done    []*poller.Request // the leader's: what the last Wait returned

	mu     sync.Mutex
	leader *party
	inbox  []*poller.Request
	small  class
	large  class
	big    *class // large, or small where there are no others
	// waves are the parties whose ops are out, blocked those that wait for a write
	// to come back which is not theirs.
	waves, blocked parties
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
	// inWait says that the leader does not look at the inbox before it is woken,
	// I/O has finished, or until, of internal/clock, has passed; 0 is never. Who
	// resets it wakes it.
	inWait bool
	until  int64

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
		blocks:  &h.blocks,
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
	l.small.flag, l.large.flag = noShort, noLong
	l.big = &l.small
	if longs > 0 {
		l.big = &l.large
	} else {
		l.small.flag |= noLong
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
