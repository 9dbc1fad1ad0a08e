// SPDX-License-Identifier: Apache-2.0

package multipath_test

import (
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
)

// The figures of a multipath are those of its paths, and differences of them make sense.
func TestStatsOfPaths(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.RoundRobin})
	r := devtest.Open(t, p, poller.QueueConfig{Depth: 8})
	reqs := []*poller.Request{request(r, poller.Read, 0), request(r, poller.Read, 1), request(r, poller.Write, 2), request(r, poller.Write, 3)}
	r.MustDo(reqs...)
	before := p.Stats()
	if before.Name != "path0+path1" || completed(before) != 4 || completed(before.Members[0]) != 2 || completed(before.Members[1]) != 2 {
		t.Errorf("%s: %d I/Os, over the paths %d and %d", before.Name, completed(before), completed(before.Members[0]), completed(before.Members[1]))
	}
	read := before.IO[poller.Read][poller.Polled]
	if read.Latency.Count() != 2 || read.Bytes != 2*testBlock || before.Polls == 0 {
		t.Errorf("%d reads of %d bytes, %d polls", read.Latency.Count(), read.Bytes, before.Polls)
	}
	if q := r.Queue.Stats(); completed(q) != 4 || q.Members != nil || q.IO[poller.Write][poller.Polled].Bytes != 2*testBlock {
		t.Errorf("the queue: %d I/Os", completed(q))
	}
	p.vanish(1)
	r.MustDo(reqs...)
	s := p.Stats().Sub(before)
	if completed(s) != 4 || completed(s.Members[0]) != 4 || completed(s.Members[1]) != 0 {
		t.Errorf("after a loss %d I/Os, over the paths %d and %d", completed(s), completed(s.Members[0]), completed(s.Members[1]))
	}
	lost := s.Paths[1]
	if lost.Live || lost.Err == nil || lost.Errors != 2 || lost.Retries != 2 || lost.Changes != 1 {
		t.Errorf("the lost path: %+v", lost)
	}
	if sum := before.Add(s); sum.Paths[1].Errors != 2 || sum.Paths[1].Changes != 1 || completed(sum) != 8 {
		t.Errorf("the sum: %+v, %d I/Os", sum.Paths[1], completed(sum))
	}
	// What was before is not changed by having been subtracted.
	if !before.Paths[1].Live || before.Paths[1].Errors != 0 {
		t.Errorf("the snapshot: %+v", before.Paths[1])
	}
	if err := r.Queue.Close(); err != nil {
		t.Fatal(err)
	}
	if n := completed(p.Stats()); n != 8 {
		t.Errorf("with the queue closed: %d I/Os", n)
	}
}

// What is in flight on a path shows while it is polled for, and when nothing is any more.
func TestInFlight(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
	gate := new(faultdev.Gate)
	p.faults[0].SetRules(faultdev.Rule{Hold: gate})
	r := devtest.Open(t, p, poller.QueueConfig{Depth: 8})
	r.Submit(request(r, poller.Read, 0), request(r, poller.Read, 1), request(r, poller.Write, 2))
	if n, err := r.Queue.Poll(make([]*poller.Request, 1)); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if s := p.Stats().Paths; s[0].InFlight != 3 || s[1].InFlight != 0 {
		t.Errorf("in flight: %d and %d, want 3 and 0", s[0].InFlight, s[1].InFlight)
	}
	gate.Release()
	r.Drain()
	if s := p.Stats().Paths; s[0].InFlight != 0 {
		t.Errorf("in flight at the end: %d", s[0].InFlight)
	}
}
