// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"pollux/internal/hist"
)

// Recorder keeps the statistics of one queue. One goroutine writes, plainly and
// privately; Publish, once per batch, makes what was touched visible to
// Snapshot, which any goroutine may call. (Atomic counting per I/O was measured
// at four times the cost of publishing per batch.)
//
// Only those who write a Device use it.
type Recorder struct {
	// Requests of one batch mostly took the same time, as they were submitted
	// together and are found together: run is of those that were counted last
	// and are in no series yet.
	run struct {
		kind     uint // index of a series
		ns       int64
		n, bytes uint64
	}
	series  [numSeries]*series
	touched uint64   // bit i: series[i] has something to publish
	count   Counters // without EmptyPolls
	found   uint64   // polls that found something
	out     int      // as it was published
	// stragglers are by member, nil where a request has one only; straggled says that
	// they have something to publish.
	stragglers []straggler
	straggled  bool
	// published is what Snapshot reads.
	published struct {
		series                             [numSeries]atomic.Pointer[series]
		polls, emptyPolls, retries, splits atomic.Uint64
		fallbacks                          [numFallbacks]atomic.Uint64
		out, depth                         atomic.Int64
		fixed                              atomic.Bool
		ringFlags                          atomic.Uint32
	}
}

// numSeries is one more than there are operations, times modes: a mask of the
// operation instead of a bounds check. What is no operation is counted there.
const numSeries = (numOps + 1) * numModes

// rare in touched says that counters beside those of polls have changed.
const rare = 1 << 63

type series struct {
	latency   hist.Recorder
	bytes     uint64
	published atomic.Uint64                  // bytes
	errors    [numErrorClasses]atomic.Uint64 // not worth a private copy
}

type straggler struct {
	requests, ns                   uint64
	publishedRequests, publishedNS atomic.Uint64
}

// Granted says how many requests the queue holds and of how many members one of them may
// have parts, 0 where it has none. It is called once, before the first request.
func (c *Recorder) Granted(depth, members int) {
	c.published.depth.Store(int64(depth))
	if members > 0 {
		c.stragglers = make([]straggler, members)
	}
}

// rings says what rings a leaf has.
func (c *Recorder) rings(fixed bool, flags uint32) {
	c.published.fixed.Store(fixed)
	c.published.ringFlags.Store(flags)
}

// Straggled counts a request of which the part of a member was the last to be done, ns
// nanoseconds after the first.
func (c *Recorder) Straggled(member int, ns int64) {
	if !recording {
		return
	}
	s := &c.stragglers[member]
	s.requests++
	s.ns += uint64(ns)
	c.straggled = true
	c.touched |= rare
}

// Finish counts a request whose results are set, at the time now of the tree's
// clock.
func (c *Recorder) Finish(r *Request, now int64) {
	if !recording {
		return
	}
	kind := uint(r.Op) & 3 * numModes
	if r.Polled {
		kind++
	}
	ns := now - r.start
	if c.run.n == 0 {
		c.run.kind, c.run.ns = kind, ns
	}
	if ns != c.run.ns || kind != c.run.kind || r.Err != nil {
		c.beginRun(kind, ns, r)
		return
	}
	c.run.n++
	c.run.bytes += uint64(r.N)
}

// FinishAll is Finish for one request after the other, up to the first that has an
// error, and returns how many it counted. A call for each costs more than the counting.
func (c *Recorder) FinishAll(done []*Request, now int64) int {
	if !recording {
		return untilError(done)
	}
	run := &c.run
	n, bytes := run.n, run.bytes
	for i, r := range done {
		if r.Err != nil {
			run.n, run.bytes = n, bytes
			return i
		}
		kind := uint(r.Op) & 3 * numModes
		if r.Polled {
			kind++
		}
		ns := now - r.start
		if n == 0 {
			run.kind, run.ns = kind, ns
		} else if ns != run.ns || kind != run.kind {
			run.n, run.bytes = n, bytes
			c.beginRun(kind, ns, r)
			n, bytes = run.n, run.bytes
			continue
		}
		n++
		bytes += uint64(r.N)
	}
	run.n, run.bytes = n, bytes
	return len(done)
}

func untilError(done []*Request) int {
	for i, r := range done {
		if r.Err != nil {
			return i
		}
	}
	return len(done)
}

// beginRun counts a request that does not go on with the run.
func (c *Recorder) beginRun(kind uint, ns int64, r *Request) {
	if r.Err != nil {
		c.seriesOf(kind).errors[ClassOf(r.Err)].Add(1)
		return
	}
	c.endRun()
	c.run.kind, c.run.ns, c.run.n, c.run.bytes = kind, ns, 1, uint64(r.N)
}

// endRun moves the run to its series.
func (c *Recorder) endRun() {
	run := &c.run
	if run.n == 0 {
		return
	}
	s := c.seriesOf(run.kind)
	s.latency.Record(run.ns, run.n)
	s.bytes += run.bytes
	c.touched |= 1 << run.kind
	run.n, run.bytes = 0, 0
}

// seriesOf makes a series when it is first used: a queue seldom sees more than
// two of the six, and each is 13 KiB.
func (c *Recorder) seriesOf(kind uint) *series {
	s := c.series[kind&(numSeries-1)]
	if s == nil {
		s = new(series)
		c.series[kind&(numSeries-1)] = s
		c.published.series[kind&(numSeries-1)].Store(s)
	}
	return s
}

// Retried counts an EAGAIN that is submitted again.
func (c *Recorder) Retried() { c.count.Retries++; c.touched |= rare }

// Split counts a request that was cut for a drive's limits.
func (c *Recorder) Split() { c.count.Splits++; c.touched |= rare }

// FellBack counts a HiPri request that is sent plain.
func (c *Recorder) FellBack(why Fallback) { c.count.Fallbacks[why]++; c.touched |= rare }

// Polled counts a poll that found n requests and left out of them out, and publishes if
// anything was counted since the last.
func (c *Recorder) Polled(n, out int) {
	if !recording {
		return
	}
	c.count.Polls++
	c.found += uint64(min(n, 1))
	if out != c.out {
		// At depth 1 on a fast drive never: each poll finds what was out.
		c.out = out
		c.published.out.Store(int64(out))
	}
	if c.run.n|c.touched != 0 {
		c.Publish()
	}
}

// Publish makes all counts visible to Snapshot.
func (c *Recorder) Publish() {
	p := &c.published
	p.polls.Store(c.count.Polls)
	if empty := c.count.Polls - c.found; p.emptyPolls.Load() != empty {
		p.emptyPolls.Store(empty)
	}
	s := c.series[c.run.kind&(numSeries-1)]
	if s == nil || c.touched != 0 {
		c.publishMore()
		return
	}
	// Mostly the run is all there is.
	s.latency.RecordNow(c.run.ns, c.run.n)
	s.bytes += c.run.bytes
	s.published.Store(s.bytes)
	c.run.n, c.run.bytes = 0, 0
}

func (c *Recorder) publishMore() {
	c.endRun()
	for left := c.touched &^ rare; left != 0; left &= left - 1 {
		s := c.series[bits.TrailingZeros64(left)]
		s.latency.Publish()
		s.published.Store(s.bytes)
	}
	if c.touched&rare != 0 {
		c.publishRare()
	}
	c.touched = 0
}

func (c *Recorder) publishRare() {
	p := &c.published
	p.retries.Store(c.count.Retries)
	p.splits.Store(c.count.Splits)
	for i := range p.fallbacks {
		p.fallbacks[i].Store(c.count.Fallbacks[i])
	}
	if c.straggled {
		c.straggled = false
		for i := range c.stragglers {
			s := &c.stragglers[i]
			s.publishedRequests.Store(s.requests)
			s.publishedNS.Store(s.ns)
		}
	}
}

// Snapshot returns what was published.
func (c *Recorder) Snapshot() Stats {
	var out Stats
	p := &c.published
	for i := range numOps * numModes {
		if s := p.series[i].Load(); s != nil {
			io := &out.IO[i/numModes][i%numModes]
			io.Latency, io.Bytes = s.latency.Snapshot(), s.published.Load()
			for class := range io.ErrorsBy {
				io.ErrorsBy[class] = s.errors[class].Load()
				io.Errors += io.ErrorsBy[class]
			}
		}
	}
	out.Polls = p.polls.Load()
	out.EmptyPolls = p.emptyPolls.Load()
	out.Retries = p.retries.Load()
	out.Splits = p.splits.Load()
	for i := range p.fallbacks {
		out.Fallbacks[i] = p.fallbacks[i].Load()
	}
	for i := range c.stragglers {
		s := &c.stragglers[i]
		out.Stragglers = append(out.Stragglers, Straggler{s.publishedRequests.Load(), s.publishedNS.Load()})
	}
	out.Gauges = Gauges{InFlight: int(p.out.Load()), Queues: 1, Depth: int(p.depth.Load()), RingFlags: p.ringFlags.Load()}
	if p.fixed.Load() {
		out.FixedQueues = 1
	}
	return out
}

// Recorders keeps the statistics of all queues of a device, closed ones too.
// Its methods may be called by any goroutine.
type Recorders struct {
	mu     sync.Mutex
	open   map[*Recorder]struct{}
	closed Stats
}

// Add makes r one of the open ones.
func (s *Recorders) Add(r *Recorder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[*Recorder]struct{})
	}
	s.open[r] = struct{}{}
}

// Remove publishes r, whose queue is being closed, and keeps its counts.
func (s *Recorders) Remove(r *Recorder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Publish()
	delete(s.open, r)
	last := r.Snapshot()
	last.Gauges = Gauges{}
	s.closed = s.closed.Add(last)
}

// Open returns how many are open.
func (s *Recorders) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Sum returns the counts of all.
func (s *Recorders) Sum(name string) Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.closed
	for r := range s.open {
		sum = sum.Add(r.Snapshot())
	}
	sum.Name = name
	return sum
}
