// SPDX-License-Identifier: Apache-2.0

package volume

import "pollux/poller"

// awaitWrites waits, until the deadline, for every write in the lane that overlaps the
// blocks from up to to; with orphans, only for those within blocks that nobody waits
// for. begun is as in take. The caller sees to it that no more of these writes come.
func (l *lane) awaitWrites(from, to int64, orphans, begun bool, deadline int64) error {
	for {
		l.mu.Lock()
		o := l.findWrite(from, to, orphans)
		if o == nil {
			l.mu.Unlock()
			return nil
		}
		err := l.unfit()
		if err == nil && l.closing && !begun {
			err = errHandleClosed
		}
		if err != nil {
			l.mu.Unlock()
			return err
		}
		p := strangers.Get().(*party)
		p.reset(deadline)
		p.begun, p.on, o.watched = begun, o, true
		l.blocked.add(p)
		l.awaitStranger(p)
		f := p.fate
		strangers.Put(p)
		if f != finished {
			return l.errorFor(f)
		}
	}
}

// findWrite returns an op that awaitWrites waits for, or nil.
func (l *lane) findWrite(from, to int64, orphans bool) *op {
	for i := range l.ops {
		o := &l.ops[i]
		if o.out && o.req.Op == poller.Write && o.from < to && from < o.to && (!orphans || o.orphan && o.across) {
			return o
		}
	}
	return nil
}

// notOut marks an op that was out, and lets those go on that it blocked.
func (l *lane) notOut(o *op) {
	o.out = false
	if !o.watched {
		return
	}
	o.watched = false
	for p := l.blocked.first; p != nil; {
		next := p.next
		if p.on == o {
			l.blocked.remove(p)
			l.settleOne(p, finished)
		}
		p = next
	}
}

// orphan leaves an op to itself that is out.
func (l *lane) orphan(o *op) {
	o.orphan = true
	if o.across {
		l.blocks.orphaned(o)
	}
}
