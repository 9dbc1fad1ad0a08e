// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"pollux/poller"
)

// run has the ops of the wave that begins with head done, and returns when all are
// back: their requests have the results. On error none of the ops is the caller's any
// more. alone says that the call has a span, or needs none; a write without one may be
// refused with errBlocked.
func (l *lane) run(head *op, alone bool, deadline int64) error {
	l.mu.Lock()
	err := l.unfit()
	if err == nil && !alone && !l.blocks.mayRun(head) {
		err = errBlocked
	}
	if err != nil {
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
	if l.small.free == nil {
		l.lacks.Store(l.lacks.Load() | l.small.flag)
	}
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
	l.inWait, l.until = true, deadline
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
		l.orphan(head)
	} else {
		l.release(head)
	}
	l.mu.Unlock()
}

// lateError is the error of a call that has taken longer than timeout.
func lateError(timeout time.Duration) error {
	return fmt.Errorf("no answer in %v (Options.Timeout): %w", timeout, os.ErrDeadlineExceeded)
}

// errorFor is what a call with such a fate returns.
func (l *lane) errorFor(f fate) error {
	switch f {
	case expired:
		return lateError(l.timeout)
	case refused:
		return errHandleClosed
	case ringLost:
		return l.broken // set for good, and before the fate
	}
	return poller.ErrNotDrained
}
