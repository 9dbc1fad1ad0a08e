// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// gated is a device of which the first half hangs until the gate is released.
func gated(t *testing.T) (dev *faultdev.Device, mem *faultdev.Memory, gate *faultdev.Gate) {
	t.Helper()
	gate = new(faultdev.Gate)
	mem = faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{})
	count(mem.Bytes(), 4)
	return faultdev.New(mem, faultdev.Rule{To: testSize / 2, Hold: gate}), mem, gate
}

const (
	hung = 4096              // an offset whose I/O hangs
	free = testSize/2 + 4096 // and one whose does not
	soon = 30 * time.Millisecond
)

// mustRead reads a range and compares it.
func mustRead(t *testing.T, h *volume.Handle, off, n int64, want []byte) {
	t.Helper()
	p := make([]byte, n)
	if got, err := h.ReadAt(p, off); int64(got) != n || err != nil || !bytes.Equal(p, want[off:off+n]) {
		t.Errorf("read of %d at %d: %d, %v, right bytes %v", n, off, got, err, bytes.Equal(p, want[off:off+n]))
	}
}

// A call whose I/O hangs returns at its deadline; nobody writes to its slice after
// that, not when the I/O comes back either; the buffers are used again then. In
// between other calls get through, as long as there are buffers, and time out as well
// when there are none.
func TestHandleTimeout(t *testing.T) {
	for _, depth := range []int{1, 2, 64} {
		for _, size := range []int64{512, 4096, 5000, 100_000} {
			dev, mem, gate := gated(t)
			h := newHandle(t, dev, volume.Options{Timeout: soon, Depth: depth})
			slices := make([][]byte, 12)
			start := time.Now()
			within(t, "timed out calls", func() {
				together(len(slices), func(i int) {
					slices[i] = make([]byte, size)
					n, err := h.ReadAt(slices[i], hung)
					took := time.Since(start)
					if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || took < soon {
						t.Errorf("depth %d, read of %d: %d, %v after %v", depth, size, n, err, took)
					}
				})
			})
			if depth == 64 && size <= 4096 {
				mustRead(t, h, free, 4096, mem.Bytes())
			}
			if _, err := h.WriteAt(make([]byte, 3), hung+1); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("depth %d: write within a block: %v", depth, err)
			}
			gate.Release()
			for deadline := time.Now().Add(devtest.Patience); ; {
				// The first calls may find all buffers out and only reap them.
				if _, err := h.ReadAt(make([]byte, 512), hung); err == nil {
					break
				} else if !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(deadline) {
					t.Fatalf("depth %d: after the release: %v", depth, err)
				}
			}
			for range 3 {
				mustRead(t, h, hung, size, mem.Bytes())
			}
			for _, p := range slices {
				if !bytes.Equal(p, make([]byte, size)) {
					t.Fatalf("depth %d: a slice was written to after its call had returned", depth)
				}
			}
			if err := h.Close(); err != nil {
				t.Errorf("depth %d: Close: %v", depth, err)
			}
		}
	}
}

// What a call got before its time was up is counted.
func TestHandleTimeoutCounts(t *testing.T) {
	gate := new(faultdev.Gate)
	mem := faultdev.NewMemory(1<<20, 512, faultdev.MemoryOptions{})
	count(mem.Bytes(), 4)
	h := newHandle(t, faultdev.New(mem, faultdev.Rule{From: 300_000, Hold: gate}), volume.Options{Timeout: soon, Depth: 8})
	t.Cleanup(gate.Release)
	p := make([]byte, 500_000)
	n, err := h.ReadAt(p, 1000) // a wave of one long buffer at a time
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n > 300_000 || !bytes.Equal(p[:n], mem.Bytes()[1000:1000+n]) {
		t.Errorf("%d, %v", n, err)
	}
}

// Deadlines are heeded in their own order, which is not that of the I/O where a call
// goes on to a second wave: it times out before one that came in between.
func TestHandleTimeoutOrder(t *testing.T) {
	const timeout = time.Second
	gate := new(faultdev.Gate)
	h := newHandle(t, faultdev.New(faultdev.NewMemory(512<<10, 512, faultdev.MemoryOptions{}),
		faultdev.Rule{To: 64 << 10, Delay: timeout * 7 / 10}, faultdev.Rule{Hold: gate}),
		volume.Options{Timeout: timeout, Depth: 8, Queues: 1}) // one long buffer
	t.Cleanup(gate.Release)
	var other sync.WaitGroup
	other.Go(func() {
		time.Sleep(timeout / 2)
		if _, err := h.ReadAt(make([]byte, 512), 256<<10); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the later call: %v", err)
		}
	})
	start := time.Now()
	n, err := h.ReadAt(make([]byte, 128<<10), 0)
	if took := time.Since(start); n != 64<<10 || !errors.Is(err, os.ErrDeadlineExceeded) || took < timeout || took > timeout*13/10 {
		t.Errorf("%d, %v after %v", n, err, took)
	}
	other.Wait()
}

// Every buffer of a call that timed out is used again once its I/O is back.
func TestHandleTimeoutGivesAllBack(t *testing.T) {
	dev, _, gate := gated(t)
	h := newHandle(t, dev, volume.Options{Timeout: soon, Depth: 24}) // three long buffers
	p := make([]byte, 192<<10)
	for round := range 3 {
		before := dev.Struck()
		if _, err := h.ReadAt(p[:128<<10], 0); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		if n := dev.Struck() - before; n != 2 {
			t.Errorf("round %d: a call of two pieces had %d out at once", round, n)
		}
		gate.Release()
		for {
			if _, err := h.ReadAt(p[:512], 0); err == nil {
				break
			}
		}
		gate = new(faultdev.Gate)
		dev.SetRules(faultdev.Rule{To: testSize / 2, Hold: gate})
	}
	gate.Release()
}

// A call that hangs keeps no other from its I/O, whichever of them polls, and the lane
// changes hands.
func TestHandleHandsOver(t *testing.T) {
	dev, mem, gate := gated(t)
	h := newHandle(t, dev, volume.Options{Queues: 1})
	var stuck sync.WaitGroup
	within(t, "reading beside calls that hang", func() {
		for range 4 {
			// A leader that waits for its own I/O serves others...
			begun := make(chan struct{})
			stuck.Go(func() {
				close(begun)
				mustRead(t, h, hung, 4096, mem.Bytes())
			})
			<-begun
			together(8, func(int) {
				for range 20 {
					mustRead(t, h, free, 4096, mem.Bytes())
					mustRead(t, h, free, 70_000, mem.Bytes())
				}
			})
		}
		// ...and takes no CPU from anybody for ever.
		gate.Release()
		stuck.Wait()
		mustRead(t, h, hung, 4096, mem.Bytes())
	})
}

func TestHandleCloseIdle(t *testing.T) {
	for _, used := range []bool{false, true} {
		mem := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{})
		h, err := volume.NewHandle(mem, volume.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if used {
			mustRead(t, h, 0, 4096, mem.Bytes())
		}
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := h.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
		if err := mem.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("the device is still open: %v", err)
		}
		for name, f := range map[string]func() (int, error){
			"read":        func() (int, error) { return h.ReadAt(make([]byte, 4096), 0) },
			"odd read":    func() (int, error) { return h.ReadAt(make([]byte, 7), 3) },
			"empty read":  func() (int, error) { return h.ReadAt(nil, 3) },
			"write":       func() (int, error) { return h.WriteAt(make([]byte, 512), 0) },
			"odd write":   func() (int, error) { return h.WriteAt(make([]byte, 7), 3) },
			"empty write": func() (int, error) { return h.WriteAt(nil, 3) },
			"flush":       func() (int, error) { return 0, h.Flush() },
		} {
			if n, err := f(); n != 0 || !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s after Close: %d, %v", name, n, err)
			}
		}
	}
}

// Close lets calls finish that have begun, those of many waves too, and refuses
// others.
func TestHandleCloseWaits(t *testing.T) {
	mem := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{})
	count(mem.Bytes(), 4)
	dev := faultdev.New(mem, faultdev.Rule{Delay: 2 * time.Millisecond})
	h := newHandle(t, dev, volume.Options{Depth: 8, Queues: 2})
	var all sync.WaitGroup
	var whole atomic.Int32
	begun := make(chan struct{}, 16)
	for i := range 8 {
		all.Go(func() {
			begun <- struct{}{}
			p := make([]byte, 200_000)
			n, err := h.ReadAt(p, int64(i))
			switch {
			case err == nil && n == len(p) && bytes.Equal(p, mem.Bytes()[i:][:n]):
				whole.Add(1)
			case n != 0 || !errors.Is(err, os.ErrClosed):
				t.Errorf("beside Close: %d, %v", n, err)
			}
		})
	}
	for range 8 {
		<-begun
	}
	for devtest.LeafIO(dev.Stats()) == 0 { // something is on its way
		time.Sleep(time.Millisecond)
	}
	within(t, "Close", func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	all.Wait()
	if whole.Load() == 0 {
		t.Error("no call that was in progress finished")
	}
}

// When the time of Close is up, calls return, those that wait for their I/O and those
// that wait for a buffer, and Close says what did not come back.
func TestHandleCloseTimesOut(t *testing.T) {
	for _, depth := range []int{1, 64} {
		dev, _, gate := gated(t)
		h := newHandle(t, dev, volume.Options{CloseTimeout: soon, Depth: depth})
		t.Cleanup(gate.Release)
		var all sync.WaitGroup
		slices := make([][]byte, 10)
		for i := range slices {
			slices[i] = make([]byte, 4096)
			all.Go(func() {
				n, err := h.ReadAt(slices[i], hung)
				if n != 0 || !errors.Is(err, poller.ErrNotDrained) && !errors.Is(err, os.ErrClosed) {
					t.Errorf("depth %d: %d, %v", depth, n, err)
				}
			})
		}
		for dev.Struck() < min(len(slices), depth) {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		within(t, "Close", func() {
			if err := h.Close(); !errors.Is(err, poller.ErrNotDrained) {
				t.Errorf("depth %d: Close: %v", depth, err)
			}
		})
		if took := time.Since(start); took < soon {
			t.Errorf("depth %d: Close gave up after %v", depth, took)
		}
		within(t, "the calls", all.Wait)
		for _, p := range slices {
			if !bytes.Equal(p, make([]byte, 4096)) {
				t.Error("a slice was written to")
			}
		}
	}
}

// I/O that timed out is out when Close comes, and nobody polls for it: Close does.
func TestHandleCloseAfterTimeout(t *testing.T) {
	for _, size := range []int64{4096, 100_000} {
		dev, _, gate := gated(t)
		h := newHandle(t, dev, volume.Options{Timeout: soon / 3})
		if _, err := h.ReadAt(make([]byte, size), hung); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		time.AfterFunc(soon, gate.Release)
		start := time.Now()
		within(t, "Close", func() {
			if err := h.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
		if took := time.Since(start); took < soon/3 {
			t.Errorf("Close returned after %v, before the I/O", took)
		}
	}
}

// Close in the middle of everything: each call is done, or refused.
func TestHandleCloseStorm(t *testing.T) {
	for round := range 30 {
		kind := handleKinds[round%len(handleKinds)]
		h := newHandle(t, kind.make(t), volume.Options{Queues: 1 + round%3, Depth: 1 + round})
		var all sync.WaitGroup
		for g := range 24 {
			all.Go(func() {
				p := make([]byte, []int{4096, 100, 70_000}[g%3])
				for {
					n, err := h.ReadAt(p, int64(g*512))
					if g%4 == 0 && err == nil {
						n, err = h.WriteAt(p, int64(g*512))
					}
					if err != nil {
						if n != 0 || !errors.Is(err, os.ErrClosed) {
							t.Errorf("%s: %d, %v", kind.name, n, err)
						}
						return
					}
				}
			})
		}
		time.Sleep(time.Duration(round%5) * time.Millisecond)
		var closed atomic.Int32
		within(t, "Close", func() {
			together(3, func(int) {
				if err := h.Close(); err == nil {
					closed.Add(1)
				} else if !errors.Is(err, os.ErrClosed) {
					t.Errorf("%s: Close: %v", kind.name, err)
				}
			})
		})
		within(t, "the calls", all.Wait)
		if closed.Load() != 1 {
			t.Errorf("%d of three Close succeeded", closed.Load())
		}
	}
}

// Queues of Device keep it open, and Close says so.
func TestHandleCloseBesideQueues(t *testing.T) {
	mem := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{})
	h := newHandle(t, mem, volume.Options{})
	q, err := h.Device().NewQueue(poller.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); !errors.Is(err, poller.ErrQueuesOpen) {
		t.Errorf("Close: %v", err)
	}
	if err := errors.Join(q.Close(), mem.Close()); err != nil {
		t.Error(err)
	}
}

// failing is a device whose queues break at a Wait.
type failing struct {
	poller.Device
	err   error
	waits atomic.Int32 // that still succeed
}

type failingQueue struct {
	poller.Queue
	dev *failing
}

func (d *failing) NewQueue(cfg poller.QueueConfig) (poller.Queue, error) {
	q, err := d.Device.NewQueue(cfg)
	return failingQueue{q, d}, err
}

func (q failingQueue) Wait(least int, done []*poller.Request, timeout time.Duration) (int, error) {
	if q.dev.waits.Add(-1) < 0 {
		return 0, q.dev.err
	}
	return q.Queue.Wait(least, done, timeout)
}

// A queue that breaks fails every call, and none waits for ever.
func TestHandleBrokenQueue(t *testing.T) {
	boom := errors.New("the ring is broken")
	for _, waits := range []int32{0, 1, 40} {
		dev := &failing{Device: faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Seed: 2, Lateness: 9}), err: boom}
		dev.waits.Store(waits)
		h := newHandle(t, dev, volume.Options{Queues: 1, Depth: 4})
		within(t, "calls", func() {
			together(16, func(i int) {
				p := make([]byte, []int{4096, 100, 100_000}[i%3])
				for range 100 {
					if _, err := h.ReadAt(p, 512); err != nil {
						if !errors.Is(err, boom) {
							t.Error(err)
						}
						return
					}
				}
				t.Error("no call failed")
			})
		})
		if err := h.Flush(); !errors.Is(err, boom) {
			t.Errorf("after that: %v", err)
		}
		within(t, "Close", func() { _ = h.Close() })
	}
}

// With nothing in flight nothing runs: after I/O, after a timeout with I/O left out.
func TestHandleIdle(t *testing.T) {
	dev, mem, gate := gated(t)
	h := newHandle(t, dev, volume.Options{Timeout: time.Second})
	together(64, func(int) { mustRead(t, h, free, 4096, mem.Bytes()) })
	if _, err := h.ReadAt(make([]byte, 512), hung); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	const idle = time.Second
	if used := cpuTime(t, idle); used > idle/20 {
		t.Errorf("it used %v of CPU in %v", used, idle)
	}
	gate.Release()
}
