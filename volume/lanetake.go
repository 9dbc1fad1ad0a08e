// SPDX-License-Identifier: Apache-2.0

package volume

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
		if c.free == nil {
			l.lacks.Store(l.lacks.Load() | c.flag)
		}
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
	// Who holds the ops gives them back soon, or they are out.
	l.awaitStranger(p)
	o, f := p.got, p.fate
	strangers.Put(p)
	if f != finished {
		return nil, l.errorFor(f)
	}
	return o, nil
}

// awaitStranger is await for a party without ops, which is on a list. If something is
// out somebody must poll for it. mu is held when it is called, and not when it returns.
func (l *lane) awaitStranger(p *party) {
	lead := l.leader == nil && l.out > 0
	if lead {
		l.appoint(p)
	} else {
		// A call of several waves may have to end before all others.
		wake := l.inWait && p.deadline != 0 && (l.until == 0 || p.deadline < l.until)
		if wake {
			l.inWait = false
		}
		l.mu.Unlock()
		if wake {
			l.waker.Wake()
		}
	}
	l.await(p, lead)
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
	c := o.class
	p := c.waiters.first
	if p == nil {
		if c.free == nil {
			l.lacks.Store(l.lacks.Load() &^ c.flag)
		}
		o.next, c.free = c.free, o
		return
	}
	c.waiters.remove(p)
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
