// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// held makes a handle of a device that holds the first write.
func held(t *testing.T, opts volume.Options) (h *volume.Handle, dev *faultdev.Device, gate *faultdev.Gate) {
	t.Helper()
	gate = new(faultdev.Gate)
	dev = faultdev.New(faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}),
		faultdev.Rule{Ops: faultdev.Writes, Times: 1, Hold: gate})
	h = newHandle(t, dev, opts)
	t.Cleanup(gate.Release)
	return h, dev, gate
}

// While a write within a block is out that timed out, no other write gets at that
// block: it would be undone when the first comes to pass. Other blocks are free. The
// drive answers, and the block is.
func TestHandleTimedOutWriteKeepsItsBlock(t *testing.T) {
	for _, queues := range []int{1, 3} {
		h, _, gate := held(t, volume.Options{Timeout: soon, Queues: queues})
		if _, err := h.WriteAt([]byte("AAA"), 510); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		} else if !strings.Contains(err.Error(), soon.String()) {
			t.Errorf("the error does not say how long it waited: %v", err)
		}
		for _, c := range []struct {
			off  int64
			n    int
			late bool
		}{
			{100, 3, true}, {600, 3, true}, {0, 512, true}, {512, 512, true}, {0, 4096, true}, {1023, 2, true},
			{1024, 512, false}, {1024, 3, false}, {100_001, 5, false}, {testSize - 512, 512, false},
		} {
			start := time.Now()
			n, err := h.WriteAt(make([]byte, c.n), c.off)
			took := time.Since(start)
			if c.late && (n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || took < soon) || !c.late && err != nil {
				t.Errorf("%d queues: write of %d at %d: %d, %v after %v", queues, c.n, c.off, n, err, took)
			}
			if c.late && err != nil && !strings.Contains(err.Error(), "earlier write") {
				t.Errorf("the error does not say what it waited for: %v", err)
			}
		}
		time.AfterFunc(soon/2, gate.Release)
		if n, err := h.WriteAt([]byte("BBB"), 100); n != 3 || err != nil {
			t.Errorf("%d queues: beside the release: %d, %v", queues, n, err)
		}
		p := make([]byte, 1024)
		if _, err := h.ReadAt(p, 0); err != nil || string(p[510:513]) != "AAA" || string(p[100:103]) != "BBB" {
			t.Errorf("%d queues: %q and %q, %v", queues, p[510:513], p[100:103], err)
		}
	}
}

// A write within a block waits for one of the whole block that timed out.
func TestHandleWaitsForTimedOutWholeBlock(t *testing.T) {
	h, _, gate := held(t, volume.Options{Timeout: soon})
	if _, err := h.WriteAt(bytes.Repeat([]byte("A"), 512), 512); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := h.WriteAt([]byte("x"), 1000); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the block is out: %v", err)
	}
	time.AfterFunc(soon/2, gate.Release)
	if _, err := h.WriteAt([]byte("B"), 600); err != nil {
		t.Error(err)
	}
	p := make([]byte, 512)
	if _, err := h.ReadAt(p, 512); err != nil || p[88] != 'B' || p[87] != 'A' || p[511] != 'A' {
		t.Errorf("%q, %v", p, err)
	}
}

// A write that hangs, whole blocks or not, keeps back none that it does not overlap,
// with a write within a block waiting for it or not.
func TestHandleHungWriteBlocksNoOther(t *testing.T) {
	for _, first := range []int{512, 3} {
		h, dev, gate := held(t, volume.Options{Queues: 2})
		var stuck sync.WaitGroup
		write := func(n int, off int64) {
			stuck.Go(func() {
				if _, err := h.WriteAt(make([]byte, n), off); err != nil {
					t.Errorf("write of %d at %d: %v", n, off, err)
				}
			})
		}
		write(first, 0)
		for dev.Struck() == 0 {
			time.Sleep(time.Millisecond)
		}
		write(1, 7)       // waits for it
		write(1000, 100)  // for both
		write(70_000, 13) // for all
		time.Sleep(soon / 3)
		within(t, "writing elsewhere", func() {
			together(8, func(i int) {
				at := int64(72<<10 + i*8192)
				for range 5 {
					for _, p := range [][]byte{make([]byte, 512), []byte("x"), make([]byte, 5000)} {
						if _, err := h.WriteAt(p, at); err != nil {
							t.Errorf("write of %d at %d: %v", len(p), at, err)
						}
					}
				}
			})
		})
		gate.Release()
		within(t, "those that waited", stuck.Wait)
	}
}

// Writes to one block follow each other in the order of coming: one of the whole block
// is not overtaken for ever by those within it, nor the other way round.
func TestHandleWritersTakeTurns(t *testing.T) {
	h := newHandle(t, faultdev.New(faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}), faultdev.Rule{Delay: 100 * time.Microsecond}), volume.Options{Queues: 2})
	var counts [12]int
	end := time.Now().Add(200 * time.Millisecond)
	together(len(counts), func(g int) {
		p := make([]byte, []int{512, 1}[g%2])
		for time.Now().Before(end) {
			if _, err := h.WriteAt(p, 0); err != nil {
				t.Error(err)
				return
			}
			counts[g]++
		}
	})
	for g, n := range counts {
		if n < 3 {
			t.Errorf("goroutine %d got through %d times: %v", g, n, counts)
		}
	}
}

// Close comes while a write waits for the block of one that timed out: it is refused,
// or done if the drive answers, and waits no longer than Close does.
func TestHandleCloseBesideBlockedWrites(t *testing.T) {
	for _, released := range []bool{false, true} {
		h, _, gate := held(t, volume.Options{Timeout: time.Hour, CloseTimeout: soon, Queues: 2})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				_, err := h.WriteAt(make([]byte, 1+i%2*511), 0)
				if err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, poller.ErrNotDrained) {
					t.Error(err)
				}
			})
		}
		time.Sleep(soon / 3)
		if released {
			time.AfterFunc(soon/3, gate.Release)
		}
		within(t, "Close", func() {
			if err := h.Close(); released && err != nil || !released && !errors.Is(err, poller.ErrNotDrained) {
				t.Errorf("released %v: Close: %v", released, err)
			}
		})
		within(t, "the writes", all.Wait)
	}
}

// A queue that breaks with a write within a block on its way: others to this block
// fail, and wait for nothing that cannot come.
func TestHandleBrokenQueueBesideBlockedWrites(t *testing.T) {
	boom := errors.New("the ring is broken")
	dev := &failing{Device: faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}), err: boom}
	dev.waits.Store(1) // the read
	h := newHandle(t, dev, volume.Options{Queues: 2})
	if _, err := h.WriteAt([]byte("x"), 5); !errors.Is(err, boom) {
		t.Errorf("the write: %v", err)
	}
	dev.waits.Store(1 << 20) // the next queue works
	within(t, "writes", func() {
		for _, n := range []int{1, 512, 1024} {
			if _, err := h.WriteAt(make([]byte, n), 0); !errors.Is(err, boom) {
				t.Errorf("write of %d to the same block: %v", n, err)
			}
			if _, err := h.WriteAt(make([]byte, n), 512); err != nil {
				t.Errorf("write of %d beside it: %v", n, err)
			}
		}
		_ = h.Close()
	})
}

// Goroutines write their own bytes of shared blocks on a device where some writes hang
// for longer than the Timeout. What a write stored that returned without error stays,
// whatever comes late.
func TestHandleLosesNoUpdateAfterTimeouts(t *testing.T) {
	seed := modelSeed(t)
	const size, goroutines = 4096, 12
	for round := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, round))
		dev := faultdev.New(faultdev.NewMemory(size, 512, faultdev.MemoryOptions{Seed: seed, Lateness: 3}),
			faultdev.Rule{Ops: faultdev.Writes, Chance: 0.05, Seed: rng.Uint64(), Delay: 15 * time.Millisecond},
			faultdev.Rule{Ops: faultdev.Reads, Chance: 0.02, Seed: rng.Uint64(), Delay: 15 * time.Millisecond})
		h := newHandle(t, dev, volume.Options{Timeout: 10 * time.Millisecond, Queues: 1 + rng.IntN(3), Depth: 4 + rng.IntN(40)})
		var acknowledged [size]byte
		var late [goroutines]int
		within(t, "the load", func() {
			together(goroutines, func(g int) {
				rng := rand.New(rand.NewPCG(seed^round, uint64(g)))
				for i := range 60 {
					// Of each block a byte; or of two blocks, the last of the one
					// and the first of the next, which are those of goroutine 0.
					at, p := int64(rng.IntN(size/512)*512+7+g), []byte{byte(i + 1)}
					if g == 0 && at < size-512 {
						at, p = at|511, []byte{byte(i + 1), byte(i + 1)}
					}
					switch _, err := h.WriteAt(p, at); {
					case err == nil:
						copy(acknowledged[at:], p)
					case errors.Is(err, os.ErrDeadlineExceeded):
						late[g]++
						// One of them may come to pass: what the bytes are now is
						// settled by the next that does.
						for {
							if _, err := h.WriteAt(p, at); err == nil {
								copy(acknowledged[at:], p)
								break
							} else if !errors.Is(err, os.ErrDeadlineExceeded) {
								t.Error(err)
								return
							}
						}
					default:
						t.Error(err)
						return
					}
				}
			})
		})
		var got [size]byte
		for end := time.Now().Add(devtest.Patience); ; {
			if _, err := h.ReadAt(got[:], 0); err == nil {
				break
			} else if time.Now().After(end) {
				t.Fatal(err)
			}
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if got != acknowledged {
			t.Errorf("round %d: byte %d is not what was written there last", round, firstDifference(got[:], acknowledged[:]))
		}
		sum := 0
		for _, n := range late {
			sum += n
		}
		if sum == 0 {
			t.Errorf("round %d: no write timed out", round)
		}
	}
}

// BenchmarkHandleWriteAt has goroutines write blocks of their own, whole or a byte of
// them.
func BenchmarkHandleWriteAt(b *testing.B) {
	for name, n := range map[string]int{"whole": 4096, "byte": 1} {
		b.Run(name, func(b *testing.B) {
			h := newHandle(b, faultdev.NewMemory(4<<20, 4096, faultdev.MemoryOptions{Budget: 512}), volume.Options{})
			b.SetParallelism(8)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				p := make([]byte, n)
				for off := rand.Int64N(1024) * 4096; pb.Next(); off = (off + 4096) & (4<<20 - 1) {
					if _, err := h.WriteAt(p, off); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
