// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// A call that waits for a buffer leads, and is given one while it lets others run:
// nobody wakes it then.
func TestHandleBufferComesInYield(t *testing.T) {
	dev, mem, gate := gated(t)
	h := newHandle(t, dev, volume.Options{Timeout: soon, Depth: 1, Queues: 1})
	t.Cleanup(gate.Release)
	// This is out, so that whoever waits has something to poll for.
	if _, err := h.ReadAt(make([]byte, 70_000), 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	within(t, "reads of three goroutines with one buffer", func() {
		together(3, func(int) {
			for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end) && !t.Failed(); {
				start := time.Now()
				mustRead(t, h, free, 512, mem.Bytes())
				if took := time.Since(start); took > devtest.Patience/2 {
					t.Errorf("a read took %v", took)
				}
			}
		})
	})
}

// The time of Close is up while the leader lets others run: it gives up all the same.
func TestHandleCloseTimesOutInYield(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for round := range 20 {
		hung, short := new(faultdev.Gate), new(faultdev.Gate)
		dev := faultdev.New(faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}),
			faultdev.Rule{To: testSize / 2, Hold: hung}, faultdev.Rule{Hold: short})
		h := newHandle(t, dev, volume.Options{Queues: 1, CloseTimeout: 20 * time.Millisecond})
		var all sync.WaitGroup
		all.Go(func() { _, _ = h.ReadAt(make([]byte, 512), 0) })
		for dev.Struck() < 1 {
			runtime.Gosched()
		}
		for range 4 {
			all.Go(func() {
				_, _ = h.ReadAt(make([]byte, 512), free)
				// While these work the leader, which let them, has no turn.
				for start := time.Now(); time.Since(start) < 15*time.Millisecond; {
				}
			})
		}
		for dev.Struck() < 5 {
			runtime.Gosched()
		}
		time.AfterFunc(time.Duration(round)*time.Millisecond, short.Release)
		within(t, "Close", func() {
			if err := h.Close(); !errors.Is(err, poller.ErrNotDrained) {
				t.Errorf("Close: %v", err)
			}
		})
		hung.Release()
		short.Release()
		within(t, "the reads", all.Wait)
	}
}

// A call that needs a buffer for its second wave has to end before the one that has
// the buffer and leads: it tells it.
func TestHandleEarlierDeadlineWaits(t *testing.T) {
	const timeout = 400 * time.Millisecond
	gate := new(faultdev.Gate)
	h := newHandle(t, faultdev.New(faultdev.NewMemory(512<<10, 512, faultdev.MemoryOptions{}),
		faultdev.Rule{To: 64 << 10, Delay: timeout / 2}, faultdev.Rule{Hold: gate}),
		volume.Options{Timeout: timeout, Depth: 8, Queues: 1}) // one long buffer
	t.Cleanup(gate.Release)
	var other sync.WaitGroup
	other.Go(func() {
		time.Sleep(timeout / 4)
		if _, err := h.ReadAt(make([]byte, 64<<10), 256<<10); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the later call: %v", err)
		}
	})
	start := time.Now()
	n, err := h.ReadAt(make([]byte, 128<<10), 0)
	if took := time.Since(start); n != 64<<10 || !errors.Is(err, os.ErrDeadlineExceeded) || took < timeout || took > timeout*9/8 {
		t.Errorf("%d, %v after %v", n, err, took)
	}
	other.Wait()
}
