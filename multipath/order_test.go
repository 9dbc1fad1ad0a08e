// SPDX-License-Identifier: Apache-2.0

package multipath_test

import (
	"bytes"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
)

// A write fails on a path and is sent again, and another one to the same bytes follows:
// what the drive holds is the second. Paths, policy, kind and moment of the fault, and the
// order in which the memory does what it was given are all random.
func TestOrderOfWrites(t *testing.T) {
	const seeds = 1000
	first := testSeed(t)
	for seed := first; seed < first+seeds; seed++ {
		if !secondWins(t, seed, false) {
			t.Fatalf("POLLUX_SEED=%d: the first write is there, or neither", seed)
		}
	}
	// One that is sent again after those that came later must be noticed.
	wrong := 0
	for seed := first; seed < first+seeds; seed++ {
		if !secondWins(t, seed, true) {
			wrong++
		}
	}
	t.Logf("sent again later, the first write won %d times of %d", wrong, seeds)
	if wrong < seeds/10 {
		t.Error("this test notices nothing")
	}
}

// secondWins says whether of two writes the second is what the memory holds.
func secondWins(t *testing.T, seed uint64, mutant bool) bool {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	opts := multipath.Options{Policy: multipath.Policy(rng.IntN(3))}
	p := newPathsOf(t, 2+rng.IntN(2), opts, func(int) faultdev.MemoryOptions {
		return faultdev.MemoryOptions{GoneIsFinal: true, Seed: rng.Uint64() | 1, Lateness: 1 + rng.IntN(8)}
	})
	if mutant {
		multipath.SetUnordered(p.Multipath)
	}
	q, err := p.NewQueue(poller.QueueConfig{Depth: 8, MaxTransfer: 4 * testBlock})
	if err != nil {
		t.Fatal(err)
	}
	r := devtest.Around(t, q)
	defer func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	// Two blocks each, and at least one in common.
	w1, w2 := request(r, poller.Write, 10), request(r, poller.Write, 9+rng.Int64N(3))
	for i, w := range []*poller.Request{w1, w2} {
		w.Buf = r.Buf(2 * testBlock)
		copy(w.Buf, bytes.Repeat([]byte{byte('1' + i)}, len(w.Buf)))
	}
	// All paths fail it but one; with some luck it goes over that at first.
	good := rng.IntN(len(p.faults))
	for i, f := range p.faults {
		rule := faultdev.Rule{Ops: faultdev.Writes, Times: 1, Err: poller.ErrGone}
		if rng.IntN(2) == 0 {
			rule.Delay = time.Duration(rng.IntN(100)) * time.Microsecond
		}
		if rng.IntN(3) == 0 {
			rule.Err = syscall.EIO // and then gone
			rule.Ops |= faultdev.Reads
			rule.Times = 0
		}
		if i != good {
			f.SetRules(rule)
		}
	}
	struck := func() (n int) {
		for i, f := range p.faults {
			if i != good {
				n += f.Struck()
			}
		}
		return n
	}
	r.Submit(w1)
	done := make([]*poller.Request, 8)
	take := func() {
		n, err := q.Poll(done)
		if err != nil {
			t.Fatal(err)
		}
		r.Take(done[:n])
	}
	// The failure has been seen once its path is not live any more.
	seen := func() bool {
		for i := range p.faults {
			if !p.live(i) {
				return true
			}
		}
		return false
	}
	for r.Out() > 0 && (struck() == 0 || !seen()) {
		take()
	}
	for range rng.IntN(3) {
		take()
	}
	r.Submit(w2)
	for i := range p.faults {
		if i != good {
			p.vanish(i) // what is unsure becomes sure
		}
	}
	r.Drain()
	if w1.Err != nil || w2.Err != nil {
		t.Fatalf("POLLUX_SEED=%d: %v, %v", seed, w1.Err, w2.Err)
	}
	return bytes.Equal(p.memory.Bytes()[w2.Offset:][:2*testBlock], w2.Buf)
}
