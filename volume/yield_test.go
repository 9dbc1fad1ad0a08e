// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// yieldWithin is how many empty polls in a row a poller may make before it lets
// other goroutines run.
const yieldWithin = 64

// On one CPU, the goroutine beside a loop of empty polls gets a turn every so
// many polls. Preemption by the runtime would bring it one every 10 ms, after
// tens of thousands of polls, so the ratio tells the two apart.
func TestEmptyPollsYield(t *testing.T) {
	v := newMemoryVolume(t, 2)
	gate := new(faultdev.Gate)
	v.faults[0].SetRules(faultdev.Rule{Hold: gate})
	r := devtest.Open(t, v, poller.QueueConfig{})
	t.Cleanup(gate.Release)
	r.Submit(&poller.Request{Op: poller.Read, Flags: poller.HiPri, Buf: r.Buf(512)})

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns atomic.Int64
	var stop atomic.Bool
	var beside sync.WaitGroup
	beside.Go(func() {
		for !stop.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	})
	done := make([]*poller.Request, 1)
	const rounds = 100
	for range rounds * yieldWithin {
		if n, err := r.Queue.Poll(done); n != 0 || err != nil {
			t.Fatalf("Poll: %d, %v", n, err)
		}
	}
	got := turns.Load()
	stop.Store(true)
	beside.Wait()
	if got < rounds/2 {
		t.Errorf("%d turns beside %d empty polls, want about %d", got, rounds*yieldWithin, rounds)
	}
	gate.Release()
	r.Drain()
}
