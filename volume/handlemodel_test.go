// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/poller"
	"pollux/volume"
)

// Many goroutines, each with a part of the device that is its own and that ends
// within blocks it shares with its neighbours, do at random what a handle can do. All
// of it must be as in a byte slice, theirs and the whole in the end.
func TestHandleModel(t *testing.T) {
	seed := modelSeed(t)
	for i, kind := range handleKinds {
		t.Run(kind.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			h := newHandle(t, kind.make(t), volume.Options{Queues: 1 + rng.IntN(3), Depth: 1 + rng.IntN(20)})
			want := make([]byte, h.Size())
			const goroutines = 12
			cuts := []int64{0}
			for g := int64(1); g < goroutines; g++ {
				cuts = append(cuts, g*h.Size()/goroutines+rng.Int64N(600))
			}
			cuts = append(cuts, h.Size())
			together(goroutines, func(g int) {
				m := handleModel{h, rand.New(rand.NewPCG(seed, uint64(i)<<32|uint64(g+1))), cuts[g], want[cuts[g]:cuts[g+1]:cuts[g+1]]}
				for range 60 {
					if err := m.step(); err != nil {
						t.Errorf("goroutine %d: %v", g, err)
						return
					}
				}
			})
			got := make([]byte, h.Size())
			if n, err := h.ReadAt(got, 0); n != len(got) || err != nil {
				t.Fatalf("reading all: %d, %v", n, err)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("byte %d is not what was written there", firstDifference(got, want))
			}
		})
	}
}

// handleModel is a goroutine of the model test and what its part is to hold.
type handleModel struct {
	h    *volume.Handle
	rng  *rand.Rand
	base int64
	want []byte
}

func (m *handleModel) step() error {
	at := m.rng.IntN(len(m.want))
	n := m.rng.IntN(min(len(m.want)-at, 1<<m.rng.IntN(15))) + 1
	off := m.base + int64(at)
	switch m.rng.IntN(8) {
	case 0:
		return m.h.Flush()
	case 1, 2, 3:
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(m.rng.Uint32())
		}
		if got, err := m.h.WriteAt(p, off); got != n || err != nil {
			return fmt.Errorf("write of %d at %d: %d, %v", n, off, got, err)
		}
		copy(m.want[at:], p)
	default:
		p := make([]byte, n)
		if got, err := m.h.ReadAt(p, off); got != n || err != nil && err != io.EOF {
			return fmt.Errorf("read of %d at %d: %d, %v", n, off, got, err)
		}
		if !bytes.Equal(p, m.want[at:at+n]) {
			return fmt.Errorf("read of %d at %d: byte %d differs", n, off, firstDifference(p, m.want[at:]))
		}
	}
	return nil
}

// Goroutines that write different bytes of one block, beside others that write whole
// blocks next to it, lose nothing: what each reads back is what it wrote last.
func TestHandleLosesNoUpdate(t *testing.T) {
	for _, kind := range handleKinds {
		t.Run(kind.name, func(t *testing.T) {
			h := newHandle(t, kind.make(t), volume.Options{Queues: 4})
			block := h.Device().Limits().BlockSize
			const goroutines, turns = 16, 40
			together(goroutines, func(g int) {
				// A byte at the border of the first two blocks, and a block behind
				// them.
				at, whole := block-goroutines/2+int64(g), (2+int64(g)%4)*block
				full, p := make([]byte, block), make([]byte, 1)
				for i := range turns {
					p[0] = byte(i*goroutines + g)
					if n, err := h.WriteAt(p, at); n != 1 || err != nil {
						t.Errorf("write of byte %d: %d, %v", at, n, err)
						return
					}
					if _, err := h.WriteAt(full, whole); err != nil {
						t.Error(err)
						return
					}
					var got [1]byte
					if _, err := h.ReadAt(got[:], at); err != nil || got[0] != p[0] {
						t.Errorf("byte %d: %#x after %#x was written, %v", at, got[0], p[0], err)
						return
					}
				}
			})
		})
	}
}

// 256 goroutines in one lane and in several, over slow I/O and fast, on reads and
// writes; every call ends and brings what is there.
func TestHandleManyGoroutines(t *testing.T) {
	for _, c := range []struct {
		name  string
		dev   func(t *testing.T) poller.Device
		opts  volume.Options
		turns int
	}{
		{"memory", func(t *testing.T) poller.Device { return handleKinds[1].make(t) }, volume.Options{Queues: 1}, 50},
		{"volume", func(t *testing.T) poller.Device { return newMemoryVolume(t, 3).Volume }, volume.Options{Queues: 4}, 50},
		{"files", func(t *testing.T) poller.Device { return handleKinds[len(handleKinds)-1].make(t) }, volume.Options{Queues: 2}, 20},
		{"plain files", func(t *testing.T) poller.Device { return handleKinds[len(handleKinds)-1].make(t) }, volume.Options{Polling: poller.PollNever}, 20},
		{"little room", func(t *testing.T) poller.Device { return handleKinds[3].make(t) }, volume.Options{Queues: 2, Depth: 2}, 5},
		{"with a timeout", func(t *testing.T) poller.Device { return handleKinds[1].make(t) }, volume.Options{Timeout: time.Hour, Depth: 5}, 20},
		{"late", func(t *testing.T) poller.Device {
			return faultdev.New(faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}), faultdev.Rule{Chance: 0.3, Seed: 5, Delay: 50 * time.Microsecond})
		}, volume.Options{}, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHandle(t, c.dev(t), c.opts)
			want := make([]byte, h.Size())
			count(want, 9)
			if _, err := h.WriteAt(want, 0); err != nil {
				t.Fatal(err)
			}
			blocks := int(h.Size() / 4096)
			within(t, "the load", func() {
				together(256, func(g int) {
					rng, p := rand.New(rand.NewPCG(1, uint64(g))), make([]byte, 4096)
					for i := range c.turns {
						off := int64(rng.IntN(blocks)) * 4096
						if i%5 == 4 { // what is there already
							if _, err := h.WriteAt(want[off:off+4096], off); err != nil {
								t.Errorf("write at %d: %v", off, err)
								return
							}
						} else if _, err := h.ReadAt(p, off); err != nil || !bytes.Equal(p, want[off:off+4096]) {
							t.Errorf("read at %d: %v, right bytes %v", off, err, bytes.Equal(p, want[off:off+4096]))
							return
						}
					}
				})
			})
		})
	}
}

// What a Flush is to cover is durable on every member, and one that failed sticks.
func TestHandleFlush(t *testing.T) {
	v := newMemoryVolume(t, 2)
	h := newHandle(t, v.Volume, volume.Options{})
	if err := h.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, m := range v.memories {
		if flushes(m) != 1 {
			t.Errorf("member %d was flushed %d times", i, flushes(m))
		}
	}
	boom := fmt.Errorf("boom")
	v.faults[1].SetRules(faultdev.Rule{Ops: faultdev.Flushes, Times: 1, Err: boom})
	for range 3 {
		err := h.Flush()
		names(t, &poller.Request{Op: poller.Flush, Err: err}, 1, boom)
	}
	if _, err := h.WriteAt([]byte("more"), 5); err != nil {
		t.Errorf("writes go on after a flush has failed: %v", err)
	}
}

// Each Flush reaches the device, and none is taken for another's: one that was out
// before a write returned does not cover it.
func TestHandleFlushesAreNotJoined(t *testing.T) {
	h := newHandle(t, faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Seed: 3, Lateness: 9}), volume.Options{Queues: 3})
	together(20, func(g int) {
		if _, err := h.WriteAt(make([]byte, 512), int64(g)*512); err != nil {
			t.Error(err)
		}
		if err := h.Flush(); err != nil {
			t.Error(err)
		}
	})
	if n := h.Device().Stats().IO[poller.Flush][poller.Plain].Latency.Count(); n != 20 {
		t.Errorf("%d flushes reached the device, want each of 20", n)
	}
}
