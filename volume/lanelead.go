// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"runtime"
	"time"

	"pollux/internal/clock"
)

// appoint makes p, which may be nil, the leader.
func (l *lane) appoint(p *party) {
	l.leader = p
	l.led.Store(p != nil)
}

// await returns when the fate of p is settled. lead says that p leads; then mu is held
// when it is called, otherwise not, and in no case when it returns.
func (l *lane) await(p *party, lead bool) {
	for {
		if lead && l.lead(p) {
			return
		}
		if lead = <-p.wake; !lead {
			return
		}
		l.mu.Lock()
	}
}

// lead polls the queue for all until the fate of me is settled, and then hands the
// lane over. false means that there is nothing to poll for and me has to sleep. mu is
// held when it is called, and not when it returns.
func (l *lane) lead(me *party) bool {
	back := 0 // of done
	for {
		woken := l.settle(back)
		l.collect()
		if l.timed {
			l.expire()
		}
		if l.stopped {
			l.abandonAll(given)
		}
		if me.fate != pending || l.broken != nil || l.out == 0 && len(l.unsent) == 0 {
			settled, next := me.fate != pending, l.succeed()
			l.mu.Unlock()
			tell(woken)
			if next != nil {
				next.wake <- true
			}
			return settled
		}
		// Calls that were woken, or were so by the leader before, are about to
		// give their ops back and to come again. Letting them run first makes a
		// batch of what would otherwise be submitted one by one: where the
		// drive is as fast as a poll that is all the depth there is.
		if woken != nil || l.calls > l.waves.n+l.small.waiters.n+l.large.waiters.n {
			stopped := l.stopped
			l.mu.Unlock()
			tell(woken)
			runtime.Gosched()
			l.mu.Lock()
			if me.fate != pending || l.stopped != stopped {
				// Nobody woke the leader for that, as it was not in Wait.
				back = 0
				continue
			}
			l.collect()
		}
		timeout := l.patience()
		l.inWait = true
		l.mu.Unlock()
		sent, n, err := l.step(timeout)
		l.mu.Lock()
		l.inWait = false
		l.out += sent - n
		l.quick = l.out == 0
		back = n
		if err != nil {
			l.settleBroken(back, err)
			back = 0
		}
	}
}

// errStuck says that a device does not keep to its contract.
var errStuck = errors.New("an empty queue took no request: an error in pollux")

// step submits what is pending, and waits for one of those out. It is the only
// user of the queue beside Close.
func (l *lane) step(timeout time.Duration) (sent, back int, err error) {
	before := l.out // the leader alone changes it
	if n := len(l.unsent); n != 0 {
		if sent, err = l.queue.Submit(l.unsent); err != nil {
			return sent, 0, err
		}
		if sent == 0 && before == 0 {
			return 0, 0, errStuck
		}
		// What did not fit goes first next time.
		l.unsent = l.unsent[:copy(l.unsent, l.unsent[sent:])]
	}
	back, err = l.queue.Wait(1, l.done, timeout)
	return sent, back, err
}

// collect takes what is in the inbox. No op is in both, so there is room.
func (l *lane) collect() {
	if len(l.inbox) != 0 {
		l.unsent = append(l.unsent, l.inbox...)
		l.inbox = l.inbox[:0]
	}
}

// settle takes the first n of done and returns the parties to be told, chained by
// next.
func (l *lane) settle(n int) (woken *party) {
	for _, r := range l.done[:n] {
		o := &l.ops[r.Tag]
		l.notOut(o)
		if o.orphan {
			if o.across {
				l.blocks.isBack(o)
			}
			l.release(o)
			continue
		}
		p := &o.head.party
		if p.left--; p.left != 0 || p.fate != pending {
			continue
		}
		l.waves.remove(p)
		p.fate = finished
		if p != l.leader && p.asleep {
			p.next, woken = woken, p
		}
	}
	if l.closer != nil {
		l.checkCloser()
	}
	return woken
}

// tell wakes parties whose fate is settled. They are calls again at once, so the
// chain is read before.
func tell(woken *party) {
	for woken != nil {
		p := woken
		woken, p.next = p.next, nil
		p.wake <- false
	}
}

// succeed appoints who leads next, and returns it if it has to be told. Of the waves it
// takes the last: it will wait longest, so that the lane changes hands no more than once
// for each time that the drive takes.
func (l *lane) succeed() *party {
	next := l.waves.last
	if next == nil && l.out > 0 && l.broken == nil && !l.stopped {
		switch {
		case l.blocked.first != nil:
			next = l.blocked.first
		case l.small.waiters.first != nil:
			next = l.small.waiters.first
		case l.large.waiters.first != nil:
			next = l.large.waiters.first
		case l.closer != nil && l.closer.fate == pending:
			next = l.closer
		}
	}
	l.appoint(next)
	if next != nil && !next.asleep {
		return nil // it will see
	}
	return next
}

// patience returns how long the leader may wait: until the first deadline of all, which
// it notes. There is no timer for any call, and the clock is read once a turn, where
// calls have deadlines at all.
func (l *lane) patience() time.Duration {
	if !l.timed {
		return -1
	}
	first := int64(0)
	for _, list := range [...]*parties{&l.waves, &l.blocked, &l.small.waiters, &l.large.waiters} {
		if p := list.first; p != nil && p.deadline != 0 && (first == 0 || p.deadline < first) {
			first = p.deadline
		}
	}
	if l.until = first; first == 0 {
		return -1
	}
	return time.Duration(max(first-clock.Now(), 0))
}

// expire settles the parties whose deadline has passed.
func (l *lane) expire() {
	now := clock.Now()
	l.abandon(&l.waves, expired, now)
	for _, list := range [...]*parties{&l.blocked, &l.small.waiters, &l.large.waiters} {
		l.turnAway(list, expired, now)
	}
}

// abandonAll settles every party that waits for I/O or for an op.
func (l *lane) abandonAll(f fate) {
	l.abandon(&l.waves, f, 0)
	l.turnAway(&l.blocked, f, 0)
	l.turnAway(&l.small.waiters, f, 0)
	l.turnAway(&l.large.waiters, f, 0)
}

// turnAway settles those who have no ops; with now, only those that are late.
func (l *lane) turnAway(list *parties, f fate, now int64) {
	for p := list.first; p != nil && (now == 0 || list.due(now)); p = list.first {
		list.remove(p)
		l.settleOne(p, f)
	}
}

// abandon settles those whose I/O is out; with now, only those that are late. What
// was not submitted yet will not be. The rest becomes orphans, save for the head of
// each wave, which keeps the fate until its call has seen it.
func (l *lane) abandon(list *parties, f fate, now int64) {
	var gone *party // chained by next
	for p := list.first; p != nil && (now == 0 || list.due(now)); p = list.first {
		list.remove(p)
		p.fate = f
		p.next, gone = gone, p
	}
	if gone == nil {
		return
	}
	kept := l.unsent[:0]
	for _, r := range l.unsent {
		if o := &l.ops[r.Tag]; o.head.party.fate == pending {
			kept = append(kept, r)
		} else {
			l.notOut(o)
		}
	}
	l.unsent = kept
	for gone != nil {
		p := gone
		gone, p.next = p.next, nil
		for o := p.ops.next; o != nil; {
			next := o.next
			if o.out {
				l.orphan(o)
			} else {
				l.release(o)
			}
			o = next
		}
		p.ops.next = nil
		l.settleOne(p, f)
	}
}

// settleBroken gives up on a queue that failed with err, after it gave back n
// requests.
func (l *lane) settleBroken(n int, err error) {
	woken := l.settle(n)
	l.broken = err
	l.lacks.Store(l.lacks.Load() | noQueue)
	l.collect()
	l.abandonAll(ringLost)
	if l.closer != nil {
		l.checkCloser()
	}
	tell(woken)
}

// checkCloser lets Close go on when nothing keeps it any more.
func (l *lane) checkCloser() {
	if p := l.closer; p.fate == pending && l.calls == 0 && (l.out == 0 || l.stopped || l.broken != nil) {
		l.settleOne(p, finished)
	}
}
