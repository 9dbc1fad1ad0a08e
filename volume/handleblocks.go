// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"pollux/internal/clock"
)

// blockLocks keep the writes of a handle apart where one of them does not cover its
// blocks: it reads them, changes them and writes them, and what another write put
// there in between would be lost. Writes of whole blocks need nothing of each other.
//
// A write within blocks has a span from before its read to its end, and those that
// overlap follow each other in the order of coming. A write of whole blocks has none:
// it asks, as it puts a wave into the inbox of its lane, whether a span of the other
// kind is in the way (mayRun). So it costs an atomic load while there are no such
// spans. If one is in the way it takes a span too, to wait for its turn.
//
// Nor is the end of a call the end of its writes: those that it gave up on are out
// until they come back. So who has got its span then looks into the lanes: a write
// within blocks for every write out that overlaps (settled), a write of whole blocks
// for those that a write within blocks has left there, the orphans. It waits for them
// in their lane, where it polls for them if nobody else does.
//
// Nothing is missed: a wave is marked as out, after the question, under the mutex of
// its lane. A span is entered before the lanes are looked at under the same mutex. So
// either the wave's mark is seen, or the wave sees the span.
//
// The mutex of a lane may be held when mu is taken, and not the other way round.
type blockLocks struct {
	// across counts the spans of writes within blocks, and the orphans. It is
	// changed under mu and read without.
	across atomic.Int32

	mu          sync.Mutex
	first, last *span // in the order of coming
	orphans     []*op // out, and nobody's
}

// span is a range of blocks that a write has, or waits for.
type span struct {
	from, to   int64
	across     bool // of a write within blocks
	ahead      int  // spans that came before and are in the way
	granted    chan struct{}
	prev, next *span
}

var spans = sync.Pool{New: func() any { return &span{granted: make(chan struct{}, 1)} }}

// errBlocked says that a wave was not put into the inbox, as a write within its blocks
// is in progress.
var errBlocked = errors.New("blocks of another write")

// inTheWay reports whether one of two writes has to wait for the other.
func (s *span) inTheWay(t *span) bool {
	return (s.across || t.across) && s.from < t.to && t.from < s.to
}

// mayRun reports whether the wave that begins with head, of a write of whole blocks
// without a span, is in nobody's way.
func (b *blockLocks) mayRun(head *op) bool {
	if b.across.Load() == 0 {
		return true
	}
	last := head
	for last.next != nil {
		last = last.next
	}
	from, to := head.from, last.to
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := b.first; s != nil; s = s.next {
		if s.across && s.from < to && from < s.to {
			return false
		}
	}
	return !b.overlapsOrphan(from, to)
}

func (b *blockLocks) overlapsOrphan(from, to int64) bool {
	for _, o := range b.orphans {
		if o.from < to && from < o.to {
			return true
		}
	}
	return false
}

// hasOrphan reports whether a write within these blocks is out that nobody waits for.
func (b *blockLocks) hasOrphan(from, to int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.overlapsOrphan(from, to)
}

// lock waits until nobody else has a span that is in the way, and returns one, or nil
// after the deadline.
func (b *blockLocks) lock(from, to int64, across bool, deadline int64) *span {
	s := spans.Get().(*span)
	s.from, s.to, s.across, s.ahead = from, to, across, 0
	b.mu.Lock()
	for t := b.first; t != nil; t = t.next {
		if t.inTheWay(s) {
			s.ahead++
		}
	}
	if s.prev = b.last; s.prev == nil {
		b.first = s
	} else {
		s.prev.next = s
	}
	b.last = s
	if across {
		b.across.Add(1)
	}
	granted := s.ahead == 0
	b.mu.Unlock()
	if granted || s.wait(deadline) {
		return s
	}
	b.mu.Lock()
	if granted = s.ahead == 0; !granted {
		b.remove(s)
	}
	b.mu.Unlock()
	if granted {
		<-s.granted
		return s
	}
	spans.Put(s)
	return nil
}

// wait waits for the span's turn and reports whether it came before the deadline.
func (s *span) wait(deadline int64) bool {
	if deadline == 0 {
		<-s.granted
		return true
	}
	late := time.NewTimer(time.Duration(deadline - clock.Now()))
	defer late.Stop()
	select {
	case <-s.granted:
		return true
	case <-late.C:
		return false
	}
}

// unlock gives a span back.
func (b *blockLocks) unlock(s *span) {
	b.mu.Lock()
	b.remove(s)
	b.mu.Unlock()
	spans.Put(s)
}

// remove takes s off the list, whether its turn has come or not, and lets those go on
// that waited for it alone.
func (b *blockLocks) remove(s *span) {
	for t := s.next; t != nil; t = t.next {
		if t.inTheWay(s) {
			if t.ahead--; t.ahead == 0 {
				t.granted <- struct{}{} // once in a span's life, so there is room
			}
		}
	}
	if s.prev == nil {
		b.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		b.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.prev, s.next = nil, nil
	if s.across {
		b.across.Add(-1)
	}
}

// orphaned keeps the blocks of o, a write within blocks that is out, from other writes
// until it is back. Its call has its span still.
func (b *blockLocks) orphaned(o *op) {
	b.mu.Lock()
	b.orphans = append(b.orphans, o)
	b.across.Add(1)
	b.mu.Unlock()
}

// isBack undoes orphaned.
func (b *blockLocks) isBack(o *op) {
	b.mu.Lock()
	i := slices.Index(b.orphans, o)
	b.orphans = slices.Delete(b.orphans, i, i+1)
	b.across.Add(-1)
	b.mu.Unlock()
}
