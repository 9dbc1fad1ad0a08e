// SPDX-License-Identifier: Apache-2.0

package multipath

import (
	"math/bits"

	"pollux/poller"
)

// Poll implements poller.Node: it polls every path that has something out. An error
// of one path does not keep the others from being polled.
func (q *queue) Poll(done []*poller.Request) (n int, err error) {
	if len(q.trouble)|q.finished.Len()|q.from != 0 {
		return q.pollMore(done)
	}
	for set := q.busy; set != 0; set &= set - 1 {
		got, e := q.pollPath(bits.TrailingZeros32(uint32(set)), done[n:])
		n += got
		if e != nil && err == nil {
			err = e
		}
	}
	return n, err
}

// pollMore is Poll where there is something to do beside that.
func (q *queue) pollMore(done []*poller.Request) (n int, err error) {
	if len(q.trouble) != 0 {
		q.resume()
	}
	n = q.finished.Pop(done)
	q.out -= n
	// Those from there on, then the others.
	late := q.busy & (1<<q.from - 1)
	q.from = 0
	for _, set := range [2]pathSet{q.busy &^ late, late} {
		for ; set != 0; set &= set - 1 {
			got, e := q.pollPath(bits.TrailingZeros32(uint32(set)), done[n:])
			n += got
			if e != nil && err == nil {
				err = e
			}
		}
	}
	return n, err
}

// pollPath polls a path and returns how many requests it put into done.
func (q *queue) pollPath(i int, done []*poller.Request) (int, error) {
	p := &q.paths[i]
	n, err := p.queue.Poll(done)
	if n == 0 {
		if len(done) == 0 && q.from == 0 {
			q.from = i
		}
		return 0, err
	}
	if p.inFlight -= n; p.inFlight == 0 {
		q.busy &^= 1 << i
	}
	if len(q.trouble) != 0 {
		return q.takeAll(i, done[:n]), err
	}
	ops := poller.Op(0)
	for at, r := range done[:n] {
		if r.Err != nil || r.Op == poller.Flush {
			q.out -= at
			if ops != poller.Read {
				q.m.wroteOver(i)
			}
			return at + q.takeAll(i, done[at:n]), err
		}
		ops |= r.Op
	}
	if ops != poller.Read {
		q.m.wroteOver(i)
	}
	q.out -= n
	return n, err
}

// takeAll takes what a path has given back, moves those that are finished to the front,
// and returns how many.
func (q *queue) takeAll(i int, back []*poller.Request) (n int) {
	for _, r := range back {
		if !q.take(i, r) {
			continue
		}
		if r.Op == poller.Flush {
			q.endFlush(r)
		} else if r.Op == poller.Write && r.Err == nil {
			q.m.wroteOver(i)
		}
		if r.Err != nil {
			q.rec.Finish(r, q.tree.Now())
		}
		back[n] = r
		n++
	}
	q.rec.Publish()
	q.out -= n
	q.handDownStaged()
	return n
}
