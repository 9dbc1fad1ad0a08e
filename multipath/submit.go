// SPDX-License-Identifier: Apache-2.0

package multipath

import (
	"errors"
	"math/bits"

	"pollux/poller"
)

// Submit implements poller.Node.
func (q *queue) Submit(reqs []*poller.Request) (int, error) {
	live := pathSet(q.m.live.Load())
	if len(reqs) == 1 && q.out == 0 && q.m.opts.Policy != RoundRobin && live != 0 && reqs[0].Op != poller.Flush && !q.picky {
		// The common case at depth 1, written out.
		i := bits.TrailingZeros32(uint32(live))
		p := &q.paths[i]
		q.out = 1
		p.inFlight++
		q.busy |= 1 << i
		if n, err := p.queue.Submit(reqs); n != 1 {
			q.notTaken(i, reqs, err)
		}
		return 1, nil
	}
	n := min(len(reqs), q.granted-q.out)
	q.out += n
	gone := q.m.gone.Load()
	for _, r := range reqs[:n] {
		if gone != nil {
			q.finishWith(r, q.errorOf(r, *gone))
		} else {
			q.accept(r, live)
		}
	}
	q.handDownStaged()
	return n, nil
}

// accept stages r for one of the live paths.
func (q *queue) accept(r *poller.Request, live pathSet) {
	if r.Op == poller.Flush {
		q.beginFlush(r)
	} else if q.picky {
		if err := q.tree.Arena().Fault(r.Buf, q.m.limits.BufAlign); err != nil {
			q.finishWith(r, q.errorOf(r, err))
			return
		}
	}
	if live == 0 || len(q.trouble) != 0 && q.mustWait(r, len(q.trouble)) {
		q.hold(q.entry(-1, r), waiting)
		return
	}
	q.stage(q.pick(live), r)
}

// stage puts r among those to be handed to a path.
func (q *queue) stage(i int, r *poller.Request) {
	p := &q.paths[i]
	p.staged[p.nstaged] = r
	p.nstaged++
	p.inFlight++
	q.staging |= 1 << i
}

// handDownStaged submits what is staged. What a path does not take may be staged for
// another one meanwhile.
func (q *queue) handDownStaged() {
	for q.staging != 0 {
		i := bits.TrailingZeros32(uint32(q.staging))
		q.staging &= q.staging - 1
		p := &q.paths[i]
		staged := p.staged[:p.nstaged]
		p.nstaged = 0
		q.handDown(i, staged)
	}
}

// handDown submits requests, which are counted already, to a path, which has room for
// them.
func (q *queue) handDown(i int, reqs []*poller.Request) {
	n, err := q.paths[i].queue.Submit(reqs)
	q.busy |= 1 << i
	if n != len(reqs) {
		q.notTaken(i, reqs[n:], err)
	}
}

// notTaken sends elsewhere what a path did not take. Nothing of it was started, so that
// can do no harm.
func (q *queue) notTaken(i int, reqs []*poller.Request, err error) {
	if err == nil {
		err = errors.New("the path took fewer requests than it had granted")
	}
	if q.paths[i].inFlight -= len(reqs); q.paths[i].inFlight == 0 {
		q.busy &^= 1 << i
	}
	for _, r := range reqs {
		t := q.entry(q.find(r), r)
		q.note(t, i, err)
		q.elsewhere(t)
	}
}
