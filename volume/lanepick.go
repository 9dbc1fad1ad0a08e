// SPDX-License-Identifier: Apache-2.0

package volume

import "fmt"

// What a lane lacks: short buffers, long ones, both of which may be out with I/O that
// does not come back, or a queue that works.
const (
	noShort = 1 << iota
	noLong
	noQueue
)

// serves reports whether the lane has a buffer for a call; small says that a short one
// is enough.
func (l *lane) serves(small bool) bool {
	lacks := l.lacks.Load()
	return lacks == 0 || lacks&noQueue == 0 && (lacks&noLong == 0 || small && lacks&noShort == 0)
}

// reapEvery is how many calls pass a lane by that is of no use to them, and that nobody
// leads, for each one that looks what has come back to it.
const reapEvery = 64

// pick returns a lane that serves the call and that nobody leads, or a new one while
// there may be more, or else that whose turn it is among those that serve.
func (h *Handle) pick(small bool) (*lane, error) {
	made := int(h.made.Load())
	if made == len(h.lanes) && made == 1 {
		return h.lanes[0].Load(), nil
	}
	useful := false
	for i := range made {
		l := h.lanes[i].Load()
		serves := l.serves(small)
		if !l.led.Load() {
			if serves || h.turn.Add(1)%reapEvery == 0 && l.reap() && l.serves(small) {
				return l, nil
			}
		}
		useful = useful || serves
	}
	if made < len(h.lanes) && !h.enough.Load() {
		if l, err := h.grow(made, !useful); l != nil || err != nil {
			return l, err
		}
		made = int(h.made.Load())
	}
	if made == 1 {
		return h.lanes[0].Load(), nil
	}
	turn := h.turn.Add(1)
	var second *lane // no buffer, but a queue
	for i := range uint32(made) {
		l := h.lanes[(turn+i)%uint32(made)].Load()
		if l.serves(small) {
			return l, nil
		}
		if second == nil && l.lacks.Load()&noQueue == 0 {
			second = l
		}
	}
	if second == nil {
		second = h.lanes[0].Load()
	}
	return second, nil
}

// reap takes back what has finished in a lane that rests, and says whether that was
// anything. It waits for nothing.
func (l *lane) reap() bool {
	l.mu.Lock()
	if l.leader != nil || l.out == 0 || l.closing || l.broken != nil {
		l.mu.Unlock()
		return false
	}
	me := strangers.Get().(*party)
	me.reset(0)
	l.calls++ // Close waits
	l.appoint(me)
	l.mu.Unlock()
	back, err := l.queue.Wait(1, l.done, 0)
	l.mu.Lock()
	l.out -= back
	var woken *party
	if err != nil {
		l.settleBroken(back, err)
	} else {
		woken = l.settle(back)
	}
	l.calls--
	if l.stopped {
		l.collect()
		l.abandonAll(given)
	}
	if l.closer != nil {
		l.checkCloser()
	}
	next := l.succeed()
	l.mu.Unlock()
	tell(woken)
	if next != nil {
		next.wake <- true
	}
	strangers.Put(me)
	return back != 0
}

// grow makes one more lane than there were and returns it; nil, nil means that there
// are others to be used. Only the first must succeed. needed says that none of those
// that are there is of use, so that it is better to wait for one that somebody else
// is making.
func (h *Handle) grow(had int, needed bool) (*lane, error) {
	if needed {
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
