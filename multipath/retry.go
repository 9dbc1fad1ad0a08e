// SPDX-License-Identifier: Apache-2.0

package multipath

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"pollux/poller"
)

// What happens to a request that a path has failed:
//
//   - What the drive itself says no to (a bad block, a wrong request) is its owner's: no
//     other path would do better.
//   - A read goes to another live path at once, to each one once.
//   - A write or a flush goes to another path only if the first copy is sure to be dead:
//     the path was PCI Express and its device is gone. Where that may be but is not sure
//     yet, the request waits for it. Otherwise it goes back to its owner with
//     ErrNotRetried, unless Options.RetryWrites.
//   - Where all live paths have failed it, it waits until the last of them was asked: one
//     that works has an error to tell, one that does not was no path any more.
//   - With no path left it waits for one, up to Options.NoPathTimeout; then the drive is
//     gone.
//
// From the moment on that a write is in trouble, others to the same bytes wait until it
// is back: sent again later than they, it would undo them.

// trouble is a request that a path has failed, that has none to go over, or that waits
// for one of those.
type trouble struct {
	req   *poller.Request
	state troubleState
	// offset is that of the request, which a path that is stacked itself changes while
	// it has it.
	offset int64
	// path is the last that has failed it, and err what it failed with there; deaths
	// and asks are those of the path then.
	path         int
	err          error
	deaths, asks uint64
	// tried are the paths that have failed it in this life of theirs: one that was gone
	// and is back may be tried again.
	tried pathSet
	// until is when a wait for certainty or for a path ends, by the tree's clock; 0
	// where it has not begun.
	until int64
}

type troubleState uint8

const (
	flying  troubleState = iota // out on a path
	waiting                     // for a path, or for a write before it
	unsure                      // a write: whether its path is gone
	failed                      // by all: whether the last of them works
)

// certainty is how long a request waits to know what has become of its path. The kernel
// fails what was in flight some time before it takes the device away.
const certainty = time.Second

// take takes a request that a path has given back and says whether it is finished. What
// is sent again is staged.
func (q *queue) take(i int, r *poller.Request) (finished bool) {
	at := q.find(r)
	switch {
	case r.Err == nil:
		q.dismiss(at)
		return true
	case r.Flags&poller.NoWait == 0 && errors.Is(r.Err, syscall.EAGAIN):
		r.Err = nil
		q.rec.Retried()
		q.stage(i, r)
		return false
	case !pathFault(r.Err):
		q.dismiss(at)
		return true
	}
	t := q.entry(at, r)
	q.note(t, i, r.Err)
	p := &q.m.paths[i]
	switch {
	case r.Op == poller.Read, q.m.opts.RetryWrites, p.final && p.deaths.Load() != t.deaths, p.final && p.gone.Load():
		q.elsewhere(t)
		return false
	case p.final && !errors.Is(t.err, syscall.ETIMEDOUT):
		q.hold(t, unsure)
		return false
	}
	err := t.err
	q.dismiss(q.find(r))
	r.N, r.Err = 0, q.errorOf(r, notRetried(err))
	return true
}

// note remembers that a path has failed a request, and has the path looked at.
func (q *queue) note(t *trouble, i int, err error) {
	p := &q.m.paths[i]
	t.path, t.err, t.until = i, err, 0
	t.deaths, t.asks = p.deaths.Load(), p.asks.Load()
	if !errors.Is(err, poller.ErrGone) {
		t.tried |= 1 << i
	}
	q.m.fail(i, err)
}

// hold makes a request wait.
func (q *queue) hold(t *trouble, state troubleState) {
	t.state = state
	if state != waiting {
		t.until = q.tree.Now() + int64(certainty)
	}
	q.tree.AddPolled(1)
}

// elsewhere sends a request that a path has failed over another one: at once, if there
// is one that it may take.
func (q *queue) elsewhere(t *trouble) {
	live := pathSet(q.m.live.Load())
	left := live &^ t.tried
	switch {
	case live == 0, left != 0 && (q.m.unordered || q.mustWait(t.req, q.find(t.req))):
		q.hold(t, waiting)
	case left == 0:
		q.hold(t, failed)
	default:
		q.sendAgain(t, left)
	}
}

// sendAgain stages a request for one of some paths.
func (q *queue) sendAgain(t *trouble, to pathSet) {
	if t.err != nil {
		q.m.paths[t.path].retries.Add(1)
	}
	t.state, t.until, t.req.Err = flying, 0, nil
	q.stage(q.pick(to), t.req)
}

// resume looks at what becomes of those that wait. It reads the clock, as nothing else
// might while there is no path.
func (q *queue) resume() {
	q.tree.Tick()
	kept := 0
	for at := range q.trouble {
		if t := &q.trouble[at]; t.state != flying && q.settle(t, kept) {
			continue
		}
		q.trouble[kept] = q.trouble[at]
		kept++
	}
	clear(q.trouble[kept:])
	q.trouble = q.trouble[:kept]
	q.handDownStaged()
}

// settle sends a request on its way whose wait is over, or finishes it and says so.
// before is how many in trouble are before it.
func (q *queue) settle(t *trouble, before int) (finished bool) {
	if t.state != waiting {
		lost, err := q.fate(t)
		switch {
		case err != nil:
			return q.giveBack(t, err)
		case !lost:
			return false
		}
		t.state, t.until = waiting, 0
		t.tried &^= 1 << t.path
	}
	live := pathSet(q.m.live.Load())
	if live == 0 {
		return q.withoutPath(t)
	}
	switch left := live &^ t.tried; {
	case q.mustWait(t.req, before):
		if t.req.Flags&poller.NoWait != 0 {
			return q.giveBack(t, syscall.EAGAIN)
		}
	case left == 0:
		return q.giveBack(t, withoutGone(t.err))
	default:
		q.tree.AddPolled(-1)
		q.sendAgain(t, left)
	}
	return false
}

// fate says whether the path that a request has failed on is known to be lost, or else
// the request's error, once it is known that it is not. Until then it says neither.
func (q *queue) fate(t *trouble) (lost bool, err error) {
	p := &q.m.paths[t.path]
	live := pathSet(q.m.live.Load())
	switch {
	case p.deaths.Load() != t.deaths, t.state == failed && !live.has(t.path):
		return true, nil
	case p.works.Load() <= t.asks && q.tree.Now() < t.until:
		return false, nil
	case t.state == unsure:
		return false, notRetried(t.err)
	}
	return false, withoutGone(t.err)
}

// withoutPath is what becomes of a request while there is no path.
func (q *queue) withoutPath(t *trouble) (finished bool) {
	// One that comes back from now on may be tried again.
	t.tried = 0
	if gone := q.m.gone.Load(); gone != nil {
		return q.giveBack(t, *gone)
	}
	if t.req.Flags&poller.NoWait != 0 {
		return q.giveBack(t, syscall.EAGAIN)
	}
	now := q.tree.Now()
	if t.until == 0 {
		t.until = now + int64(max(0, q.m.opts.NoPathTimeout))
	}
	if now < t.until {
		return false
	}
	return q.giveBack(t, q.m.giveUp())
}

// giveBack finishes a request that has waited in vain.
func (q *queue) giveBack(t *trouble, err error) (finished bool) {
	q.tree.AddPolled(-1)
	q.finishWith(t.req, q.errorOf(t.req, err))
	return true
}

// mustWait says that r writes to what one of the first n in trouble writes.
func (q *queue) mustWait(r *poller.Request, n int) bool {
	if r.Op != poller.Write || q.m.unordered {
		return false
	}
	for i := range q.trouble[:n] {
		o := &q.trouble[i]
		if o.req.Op == poller.Write && o.offset < r.Offset+int64(len(r.Buf)) && r.Offset < o.offset+int64(len(o.req.Buf)) {
			return true
		}
	}
	return false
}

// finishWith finishes a request that is not on any path.
func (q *queue) finishWith(r *poller.Request, err error) {
	r.N, r.Polled, r.Err = 0, false, err
	if r.Op == poller.Flush {
		q.endFlush(r)
	}
	q.rec.Finish(r, q.tree.Now())
	q.finished.Push(r)
}

// find returns where a request is among those in trouble, or -1.
func (q *queue) find(r *poller.Request) int {
	for i := range q.trouble {
		if q.trouble[i].req == r {
			return i
		}
	}
	return -1
}

// entry returns the entry at, or a new one for r where that is -1.
func (q *queue) entry(at int, r *poller.Request) *trouble {
	if at < 0 {
		at = len(q.trouble)
		q.trouble = append(q.trouble, trouble{req: r, offset: r.Offset})
	}
	return &q.trouble[at]
}

// dismiss takes the entry at out of those in trouble, if it is one.
func (q *queue) dismiss(at int) {
	if at >= 0 {
		last := len(q.trouble) - 1
		copy(q.trouble[at:], q.trouble[at+1:])
		q.trouble[last] = trouble{}
		q.trouble = q.trouble[:last]
	}
}

// ownErrors say something about the request, or were decided below.
var ownErrors = []error{
	poller.ErrRange, poller.ErrAlignment, poller.ErrTooLong, poller.ErrArena, poller.ErrOp, poller.ErrReadOnly,
	poller.ErrNotDrained, poller.ErrNotRetried, poller.ErrPathLost,
}

// pathFault says that an error may be the fault of the path.
func pathFault(err error) bool {
	if errors.Is(err, poller.ErrGone) {
		return true
	}
	for _, list := range [][]error{ownErrnos, ownErrors} {
		for _, own := range list {
			if errors.Is(err, own) {
				return false
			}
		}
	}
	return true
}

// notRetried is the error of a request that was not sent again. It must not answer to
// ErrGone: the drive is there, a path is not.
func notRetried(err error) error {
	return fmt.Errorf("%w: %w", poller.ErrNotRetried, withoutGone(err))
}

// withoutGone is an error that does not answer to ErrGone.
func withoutGone(err error) error {
	if errors.Is(err, poller.ErrGone) {
		return errors.New(err.Error())
	}
	return err
}
