// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// queueCounter is a device that counts the queues made of it, the first of which can
// be broken.
type queueCounter struct {
	poller.Device
	made   atomic.Int32
	broken atomic.Bool
}

type countedQueue struct {
	poller.Queue
	dev   *queueCounter
	first bool
}

func (d *queueCounter) NewQueue(cfg poller.QueueConfig) (poller.Queue, error) {
	q, err := d.Device.NewQueue(cfg)
	return countedQueue{q, d, d.made.Add(1) == 1}, err
}

var errFirstBroken = errors.New("the first queue is broken")

func (q countedQueue) Wait(least int, done []*poller.Request, timeout time.Duration) (int, error) {
	if q.first && q.dev.broken.Load() {
		return 0, errFirstBroken
	}
	return q.Queue.Wait(least, done, timeout)
}

// A queue whose buffers are all out with I/O that hangs serves nobody: a lone caller
// gets another one, that is made for it. When the drive has answered it serves again.
func TestHandlePassesUsedUpQueue(t *testing.T) {
	for _, size := range []int{512, 64 << 10} {
		dev, mem, gate := gated(t)
		counted := &queueCounter{Device: dev}
		h := newHandle(t, counted, volume.Options{Timeout: soon, Queues: 2, Depth: 2})
		for range 3 { // two short buffers and a long one
			if _, err := h.ReadAt(make([]byte, size), 0); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			if size > 4096 {
				break
			}
		}
		for range 20 {
			mustRead(t, h, free, int64(size), mem.Bytes())
		}
		if size > 4096 {
			// Short ones it has still.
			mustRead(t, h, free, 512, mem.Bytes())
		}
		if n := counted.made.Load(); n != 2 {
			t.Errorf("size %d: %d queues were made", size, n)
		}
		gate.Release()
		// Both serve: each has one long buffer, so two such calls at once get
		// both, and the first queue is not lost for ever.
		end := time.Now().Add(devtest.Patience)
		for dev.Stats().IO[poller.Read][poller.Polled].Latency.Count() < uint64(1) && time.Now().Before(end) {
			mustRead(t, h, free, int64(size), mem.Bytes())
		}
		for volume.Rests(h) > 0 && time.Now().Before(end) {
			mustRead(t, h, free, int64(size), mem.Bytes())
		}
		if n := volume.Rests(h); n != 0 {
			t.Errorf("size %d: %d requests have finished and were not taken back", size, n)
		}
	}
}

// A queue that broke fails those who were in it; later calls use another, if there may
// be more than one.
func TestHandlePassesBrokenQueue(t *testing.T) {
	dev := &queueCounter{Device: faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{})}
	h := newHandle(t, dev, volume.Options{Queues: 2, CloseTimeout: time.Second})
	p := make([]byte, 512)
	if _, err := h.ReadAt(p, 0); err != nil {
		t.Fatal(err)
	}
	dev.broken.Store(true)
	if _, err := h.ReadAt(p, 0); !errors.Is(err, errFirstBroken) {
		t.Errorf("the call that finds it broken: %v", err)
	}
	within(t, "reads", func() {
		together(16, func(i int) {
			for range 50 {
				if n, err := h.ReadAt(make([]byte, 300*(i+1)), 7); n != 300*(i+1) || err != nil {
					t.Errorf("with the other queue: %d, %v", n, err)
				}
			}
		})
	})
	_ = h.Close()
}
