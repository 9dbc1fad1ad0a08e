// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pollux/internal/invariants"
	"pollux/internal/uring"
	"pollux/poller"
	"pollux/volume"
)

// What the volume layer costs is measured against a device that does as little
// as an honest one can: it keeps what it was given, and gives it back, finished,
// at the next Poll. It counts as a Disk does. Both sides of the comparison have
// the same device, so what it costs itself cancels out, apart from the layer
// polling two of them.
const (
	costDepth = 32
	costBlock = 4 << 10
	costSize  = 64 << 20
)

type costDevice struct{ size int64 }

func (d *costDevice) Limits() poller.Limits {
	return poller.Limits{Size: d.size, BlockSize: 512, BufAlign: 1, MaxTransfer: 1 << 30, QueueDepth: 1024, Unit: 1 << 20}
}

func (d *costDevice) NewQueue(cfg poller.QueueConfig) (poller.Queue, error) {
	return poller.MakeQueue(cfg, func(cfg poller.QueueConfig) (poller.Node, error) {
		return &costQueue{dev: d, tree: cfg.Tree, depth: cfg.Depth, flying: make([]*poller.Request, 0, cfg.Depth)}, nil
	})
}

func (d *costDevice) Stats() poller.Stats { return poller.Stats{} }
func (d *costDevice) Close() error        { return nil }

type costQueue struct {
	poller.Inner
	dev    *costDevice
	tree   *poller.Tree
	depth  int
	flying []*poller.Request
	rec    poller.Recorder
}

func (q *costQueue) Limits() poller.Limits {
	l := q.dev.Limits()
	l.QueueDepth, l.Arena = q.depth, q.tree.Arena()
	return l
}

func (q *costQueue) Submit(reqs []*poller.Request) (int, error) {
	n := 0
	for _, r := range reqs {
		if len(q.flying) == q.depth || uint64(r.Offset) > uint64(q.dev.size)-uint64(len(r.Buf)) {
			break
		}
		q.flying = append(q.flying, r)
		n++
	}
	q.tree.AddPolled(n)
	return n, nil
}

func (q *costQueue) Poll(done []*poller.Request) (int, error) {
	n := min(len(q.flying), len(done))
	if n != 0 {
		q.tree.Tick()
		now := q.tree.Now()
		for i, r := range q.flying[:n] {
			r.N, r.Polled = len(r.Buf), true
			done[i] = r
		}
		q.rec.FinishAll(done[:n], now)
		q.flying = q.flying[:copy(q.flying, q.flying[n:])]
		q.tree.AddPolled(-n)
	}
	q.rec.Polled(n, len(q.flying))
	return n, nil
}

func (q *costQueue) Stats() poller.Stats { return q.rec.Snapshot() }
func (q *costQueue) Outstanding() int    { return len(q.flying) }
func (q *costQueue) Close() error        { return nil }

// costSide is one of the things compared.
type costSide struct {
	name string
	run  func(batches int)
}

// costSides makes all three; what they hold is given back at the end of the
// test.
func costSides(tb testing.TB) [3]costSide {
	tb.Helper()
	vol, err := volume.New([]poller.Device{&costDevice{costSize / 2}, &costDevice{costSize / 2}}, volume.Geometry{})
	if err != nil {
		tb.Fatal(err)
	}
	ring, err := uring.New(uring.Config{Entries: costDepth})
	if errors.Is(err, uring.ErrForbidden) {
		tb.Skip(err)
	} else if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ring.Close() })
	return [3]costSide{
		{"device", costReads(tb, &costDevice{costSize})},
		{"volume", costReads(tb, vol)},
		{"nop", func(batches int) { costNops(ring, batches) }},
	}
}

// costReads returns a function that does batches of reads at random offsets,
// the same ones for every device.
func costReads(tb testing.TB, dev poller.Device) func(batches int) {
	tb.Helper()
	queue, err := dev.NewQueue(poller.QueueConfig{Depth: costDepth, MaxTransfer: costBlock})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := queue.Close(); err != nil {
			tb.Error(err)
		}
		if err := dev.Close(); err != nil {
			tb.Error(err)
		}
	})
	mem := queue.Limits().Arena.Bytes()
	reqs, done := make([]*poller.Request, costDepth), make([]*poller.Request, costDepth)
	for i := range reqs {
		reqs[i] = &poller.Request{Op: poller.Read, Flags: poller.HiPri, Buf: mem[i*costBlock:][:costBlock]}
	}
	var seed uint32
	return func(batches int) {
		for range batches {
			for _, r := range reqs {
				seed = seed*1664525 + 1013904223
				r.Offset = int64(seed>>18) * costBlock // 14 bits: 16384 blocks of 4 KiB
			}
			n, err := queue.Submit(reqs)
			if n != len(reqs) || err != nil {
				tb.Fatalf("Submit took %d of %d: %v", n, len(reqs), err)
			}
			for got := 0; got < len(reqs); {
				n, err := queue.Poll(done)
				if err != nil {
					tb.Fatal(err)
				}
				for _, r := range done[:n] {
					if r.Err != nil || r.N != costBlock {
						tb.Fatalf("read at %d: N %d, %v", r.Offset, r.N, r.Err)
					}
				}
				got += n
			}
		}
	}
}

func costNops(ring *uring.Ring, batches int) {
	for range batches {
		for i := range uint64(costDepth) {
			*ring.SQE() = uring.SQE{Opcode: uring.OpNop, UserData: i}
		}
		for got := uint32(0); got < costDepth; {
			if err := ring.Enter(); err != nil {
				panic(err)
			}
			n := ring.Ready()
			for i := range n {
				if ring.CQE(i).Res != 0 {
					panic("a NOP failed")
				}
			}
			ring.Advance(n)
			got += n
		}
	}
}

// costMedians returns the median nanoseconds per I/O of each side over
// interleaved rounds, so that a change of the machine's speed meets all.
func costMedians(sides [3]costSide) (medians [3]float64) {
	const rounds, batches = 9, 16384
	var ns [3][]float64
	for _, side := range sides {
		side.run(batches / 8) // caches and branch predictors
	}
	for range rounds {
		for i, side := range sides {
			start := time.Now()
			side.run(batches)
			ns[i] = append(ns[i], float64(time.Since(start).Nanoseconds())/(batches*costDepth))
		}
	}
	for i := range ns {
		slices.Sort(ns[i])
		medians[i] = ns[i][rounds/2]
	}
	return medians
}

// TestLayerCost holds what the volume layer adds to one I/O, with statistics,
// to at most half of what one NOP through the ring costs in batches.
func TestLayerCost(t *testing.T) {
	switch {
	case raceEnabled:
		t.Skip("the race detector's own cost per memory access would be measured")
	case invariants.Enabled:
		t.Skip("the invariants build has checks that other builds do not pay for")
	case testing.CoverMode() != "":
		t.Skip("coverage counters would be measured")
	case testing.Short():
		t.Skip("takes a second")
	case uring.Backend != "pollux":
		t.Skip("the measure is a NOP through the default ring")
	}
	// Another program's burst may hit one side alone: one more try is allowed.
	sides := costSides(t)
	for range 2 {
		ns := costMedians(sides)
		added, limit := ns[1]-ns[0], ns[2]/2
		t.Logf("4 KiB reads, depth %d: device %.1f ns, volume %.1f ns: the layer adds %.1f ns; a NOP is %.1f ns, half of it %.1f ns",
			costDepth, ns[0], ns[1], added, ns[2], limit)
		if added <= limit {
			return
		}
	}
	// Of 25 processes one is slower throughout, on one side, with nothing else running:
	// where the parts of it lie in memory is luck. Two more processes may try.
	const again = "POLLUX_LAYER_COST_AGAIN"
	if tries := len(os.Getenv(again)); tries < 2 {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run", "^TestLayerCost$", "-test.v")
		cmd.Env = append(os.Environ(), again+"="+strings.Repeat("x", tries+1))
		out, err := cmd.CombinedOutput()
		t.Logf("in another process: %s", out)
		if err == nil {
			return
		}
	}
	t.Error("the volume layer adds more than half a NOP to an I/O")
}

// BenchmarkLayerCost reports the same three per I/O.
func BenchmarkLayerCost(b *testing.B) {
	for i := range 3 {
		name := [3]string{"device", "volume", "nop"}[i]
		b.Run(name, func(b *testing.B) {
			side := costSides(b)[i]
			if side.name != name {
				b.Fatalf("side %d is %s", i, side.name)
			}
			b.ReportAllocs()
			b.ResetTimer()
			side.run(max(b.N/costDepth, 1))
		})
	}
}
