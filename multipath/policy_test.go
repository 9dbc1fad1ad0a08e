// SPDX-License-Identifier: Apache-2.0

package multipath_test

import (
	"strings"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
)

func TestPolicyNames(t *testing.T) {
	for p, name := range []string{"queue-depth", "round-robin", "failover"} {
		if got := multipath.Policy(p).String(); got != name {
			t.Errorf("policy %d is %q, want %q", p, got, name)
		}
		if got, err := multipath.ParsePolicy(name); got != multipath.Policy(p) || err != nil {
			t.Errorf("%q is %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "numa", "queue_depth", "policy(3)"} {
		if _, err := multipath.ParsePolicy(name); err == nil {
			t.Errorf("%q is a policy", name)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	memory := func(size, block int64, name string) poller.Device {
		return faultdev.NewMemory(size, block, faultdev.MemoryOptions{Name: name})
	}
	same := func(n int) (all []poller.Device) {
		for range n {
			all = append(all, memory(testSize, 512, "a"))
		}
		return all
	}
	for _, c := range []struct {
		name  string
		paths []poller.Device
		opts  multipath.Options
		says  string // "" if it is good
	}{
		{"none", nil, multipath.Options{}, "0 paths"},
		{"one", same(1), multipath.Options{}, ""},
		{"all there may be", same(multipath.MaxPaths), multipath.Options{}, ""},
		{"one too many", same(multipath.MaxPaths + 1), multipath.Options{}, "17 paths"},
		{"sizes", []poller.Device{memory(testSize, 512, "a"), memory(testSize/2, 512, "small")}, multipath.Options{}, "small: 524288 bytes in blocks of 512, not 1048576"},
		{"blocks", []poller.Device{memory(testSize, 512, "a"), memory(testSize, 4096, "coarse")}, multipath.Options{}, "coarse"},
		{"policy", same(2), multipath.Options{Policy: 3}, "policy(3)"},
	} {
		m, err := multipath.New(c.paths, c.opts)
		switch {
		case c.says == "" && err != nil, c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		case err == nil:
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Round robin takes one path after the other, however many requests come at once.
func TestRoundRobin(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		for _, batch := range []int{1, 2, 7} {
			p := newPaths(t, n, true, multipath.Options{Policy: multipath.RoundRobin})
			r := devtest.Open(t, p, poller.QueueConfig{Depth: batch})
			var reqs []*poller.Request
			for i := range batch {
				reqs = append(reqs, request(r, poller.Read, int64(i)))
			}
			for range 42 {
				r.MustDo(reqs...)
			}
			for i := range n {
				if got, want := p.did(i), uint64(42*batch/n); got != want {
					t.Errorf("%d paths, %d at once: path %d did %d, want %d", n, batch, i, got, want)
				}
			}
		}
	}
}

// By queue depth a path that does not answer gets no more than its share of what may be
// in flight, and the other one goes on.
func TestQueueDepth(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{})
	gate := new(faultdev.Gate)
	p.faults[1].SetRules(faultdev.Rule{Hold: gate})
	r := devtest.Open(t, p, poller.QueueConfig{Depth: 8})
	var reqs []*poller.Request
	for i := range 8 {
		reqs = append(reqs, request(r, poller.Read, int64(i)))
	}
	r.Submit(reqs...)
	done := make([]*poller.Request, 8)
	for range 100 {
		n, err := r.Queue.Wait(1, done, devtest.Patience)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		r.Take(done[:n])
		r.Submit(done[:n]...)
	}
	if in := p.Stats().Paths; in[1].InFlight > 5 || p.did(1) != 0 || p.did(0) < 100 {
		t.Errorf("a path that does not answer has %d in flight; the other did %d", in[1].InFlight, p.did(0))
	}
	gate.Release()
	r.Drain()
	if a, b := p.Stats().Paths[0].InFlight, p.Stats().Paths[1].InFlight; a != 0 || b != 0 {
		t.Errorf("in flight with nothing out: %d and %d", a, b)
	}
}

// With failover the first path does it all while it is there, and again when it is back.
func TestFailover(t *testing.T) {
	p := newPaths(t, 3, true, multipath.Options{Policy: multipath.Failover})
	r := devtest.Open(t, p, poller.QueueConfig{Depth: 4})
	reqs := []*poller.Request{request(r, poller.Read, 0), request(r, poller.Write, 1), request(r, poller.Read, 2)}
	only := func(path int) {
		t.Helper()
		before := [3]uint64{p.did(0), p.did(1), p.did(2)}
		for range 5 {
			r.MustDo(reqs...)
		}
		for i := range before {
			if did := p.did(i) - before[i]; (did == 15) != (i == path) || did != 0 && i != path {
				t.Errorf("path %d did %d, and path %d was to do all 15", i, did, path)
			}
		}
	}
	only(0)
	p.vanish(0)
	r.MustDo(reqs...)
	only(1)
	p.vanish(1)
	r.MustDo(reqs...)
	only(2)
	p.comeBack(1)
	waitFor(t, "path 1 is back", func() bool { return p.live(1) })
	only(1)
	p.comeBack(0)
	waitFor(t, "path 0 is back", func() bool { return p.live(0) })
	only(0)
}
