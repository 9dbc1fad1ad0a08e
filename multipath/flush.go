// SPDX-License-Identifier: Apache-2.0

package multipath

import (
	"fmt"

	"pollux/poller"
)

// A flush goes over one path and makes durable what the drive has, by whichever path
// that came. What a path had acknowledged and then took along when it was lost (its
// controller may have had a cache of its own) no other path can flush: the next flush
// says so, once, and is good otherwise.
//
// Time is counted in flushes. A write that came back when n had been submitted is
// covered by those from n+1 on. So a path has writes that no flush has covered while
// wrote >= flushed, where flushed is the number of the last flush that succeeded.

// never is the time of a write where there was none.
const never = -1

// pendingFlush is a flush that is out.
type pendingFlush struct {
	req    *poller.Request
	number int64
}

// beginFlush numbers a flush.
func (q *queue) beginFlush(r *poller.Request) {
	q.flushes = append(q.flushes, pendingFlush{r, q.m.flushes.Add(1)})
}

// endFlush takes note of a flush that is finished and gives it an error if a path was
// lost.
func (q *queue) endFlush(r *poller.Request) {
	number := int64(0)
	for i := range q.flushes {
		if q.flushes[i].req == r {
			number = q.flushes[i].number
			last := len(q.flushes) - 1
			q.flushes[i] = q.flushes[last]
			q.flushes[last] = pendingFlush{}
			q.flushes = q.flushes[:last]
			break
		}
	}
	if r.Err != nil {
		return
	}
	for i := range q.m.paths {
		p := &q.m.paths[i]
		for {
			old := p.flushed.Load()
			if old >= number || p.flushed.CompareAndSwap(old, number) {
				break
			}
		}
	}
	if lost := q.m.lost.Swap(0); lost != 0 {
		r.Err = q.errorOf(r, fmt.Errorf("%w: %s", poller.ErrPathLost, q.m.names(pathSet(lost))))
	}
}

// wroteOver notes that writes came back from a path.
func (m *Multipath) wroteOver(i int) {
	p := &m.paths[i]
	// Mostly it is known already, and the line stays shared among the CPUs.
	if now := m.flushes.Load(); p.wrote.Load() < now {
		p.wrote.Store(now)
	}
	if p.gone.Load() {
		// They came back before that, and nobody had looked.
		m.lose(i)
	}
}

// lose notes that a path is lost, if it has writes that no flush has covered.
func (m *Multipath) lose(i int) {
	p := &m.paths[i]
	if p.wrote.Swap(never) >= p.flushed.Load() {
		m.lost.Or(1 << i)
	}
}
