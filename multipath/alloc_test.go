// SPDX-License-Identifier: Apache-2.0

package multipath_test

import (
	"fmt"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
)

// memoryPaths are n ways to a memory, undisturbed.
func memoryPaths(tb testing.TB, n int, policy multipath.Policy) *multipath.Multipath {
	tb.Helper()
	memory := faultdev.NewMemory(testSize, testBlock, faultdev.MemoryOptions{Budget: 512})
	devices := []poller.Device{memory}
	for range n - 1 {
		devices = append(devices, memory.Share(faultdev.MemoryOptions{Budget: 512}))
	}
	m, err := multipath.New(devices, multipath.Options{Policy: policy})
	if err != nil {
		tb.Fatal(err)
	}
	devtest.Close(tb, m)
	return m
}

// batch returns what submits a batch of reads or writes and waits for all of it.
func batch(tb testing.TB, dev poller.Device, op poller.Op, depth int) func() {
	r := devtest.Open(tb, dev, poller.QueueConfig{Depth: depth, MaxTransfer: 4096})
	reqs, done := make([]*poller.Request, depth), make([]*poller.Request, depth)
	for i := range reqs {
		reqs[i] = &poller.Request{Op: op, Flags: poller.HiPri, Offset: int64(i) * testBlock}
		if op != poller.Flush {
			reqs[i].Buf = r.Buf(testBlock)
		}
	}
	return func() {
		if n, err := r.Queue.Submit(reqs); n != depth || err != nil {
			tb.Fatal(n, err)
		}
		for got := 0; got < depth; {
			n, err := r.Queue.Wait(1, done, -1)
			if err != nil {
				tb.Fatal(err)
			}
			got += n
		}
	}
}

// The steady path allocates nothing.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for policy := range multipath.Failover + 1 {
		for _, depth := range []int{1, 32} {
			for _, op := range []poller.Op{poller.Read, poller.Write, poller.Flush} {
				do := batch(t, memoryPaths(t, 2, policy), op, depth)
				do() // the first makes histograms
				if n := testing.AllocsPerRun(10, do); n != 0 {
					t.Errorf("%v, depth %d, %v: %v allocations", policy, depth, op, n)
				}
			}
		}
	}
}

// BenchmarkLayerCost is of a memory alone, and over one and two paths to it.
func BenchmarkLayerCost(b *testing.B) {
	for _, depth := range []int{1, 32} {
		for n := range 3 {
			b.Run(fmt.Sprintf("depth %d, paths %d", depth, n), func(b *testing.B) {
				var dev poller.Device
				if n > 0 {
					dev = memoryPaths(b, n, multipath.QueueDepth)
				} else {
					dev = faultdev.NewMemory(testSize, testBlock, faultdev.MemoryOptions{Budget: 512})
					devtest.Close(b, dev)
				}
				do := batch(b, dev, poller.Read, depth)
				for b.Loop() {
					do()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/io")
			})
		}
	}
}
