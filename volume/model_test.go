// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// A volume must do what a byte slice does. The model test makes random volumes
// and random I/O, several requests at once, and compares every byte read. What
// a seed decides can be repeated: POLLUX_SEED=n go test -run TestModel.

// modelSeed returns the seed of this run and prints it.
func modelSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("POLLUX_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("POLLUX_SEED: %v", err)
		}
	}
	t.Logf("POLLUX_SEED=%d", seed)
	return seed
}

// modelFault says how one member of the volume misbehaves.
type modelFault int

const (
	faultNone modelFault = iota
	faultErrno
	faultAgain // a storm of EAGAIN
	faultSlow  // held back for a moment
)

func (f modelFault) rule(seed uint64) faultdev.Rule {
	// Flushes are spared: one that fails changes the volume for good.
	const ops = faultdev.Reads | faultdev.Writes
	switch f {
	case faultErrno:
		return faultdev.Rule{Ops: ops, Chance: 0.1, Seed: seed, Err: syscall.ENODATA}
	case faultAgain:
		return faultdev.Rule{Chance: 0.7, Seed: seed, Err: syscall.EAGAIN}
	default:
		return faultdev.Rule{Ops: ops, Chance: 0.1, Seed: seed, Delay: 100 * time.Microsecond}
	}
}

func TestModelMemory(t *testing.T) {
	seed := modelSeed(t)
	for i := range uint64(60) {
		fault := modelFault(i % 4)
		if !t.Run(fmt.Sprintf("%d, fault %d", i, fault), func(t *testing.T) {
			newModel(t, rand.New(rand.NewPCG(seed, i)), memoryLeaf, fault).run(300)
		}) {
			return
		}
	}
}

func TestModelFiles(t *testing.T) {
	seed := modelSeed(t)
	for i := range uint64(8) {
		fault := modelFault(i % 4)
		if !t.Run(fmt.Sprintf("%d, fault %d", i, fault), func(t *testing.T) {
			newModel(t, rand.New(rand.NewPCG(seed, i)), fileLeaf, fault).run(60)
		}) {
			return
		}
	}
}

func memoryLeaf(t *testing.T, rng *rand.Rand, size int64) poller.Device {
	return faultdev.NewMemory(size, 512, faultdev.MemoryOptions{Seed: rng.Uint64() | 1, Lateness: 1 + rng.IntN(6), BufAlign: 4})
}

func fileLeaf(t *testing.T, _ *rand.Rand, size int64) poller.Device {
	return devtest.OpenDisk(t, devtest.TempFile(t, int(size)))
}

type model struct {
	t   *testing.T
	rng *rand.Rand
	vol *volume.Volume
	rig *devtest.Rig

	fault modelFault
	bad   int // the slot of the member that misbehaves

	want   []byte // what the volume holds; where a write is out, what it held before
	slots  []*modelSlot
	counts struct{ done, failed uint64 }
}

// modelSlot is a request and the memory that it alone uses.
type modelSlot struct {
	off  int64 // of req when it was submitted
	req  poller.Request
	mem  []byte
	out  bool   // its range is taken
	sent []byte // what a write carries
	// reread says that a write failed and its range is to be read back, as it
	// holds old blocks and new ones.
	reread bool
	idle   bool // and that this read is not submitted yet
}

func newModel(t *testing.T, rng *rand.Rand, leaf func(*testing.T, *rand.Rand, int64) poller.Device, fault modelFault) *model {
	t.Helper()
	m := &model{t: t, rng: rng, fault: fault}
	count := 1 + rng.IntN(5)
	m.bad = rng.IntN(count)
	chunk := int64(4<<10) << rng.IntN(4)
	size := chunk * int64(2+rng.IntN(12))
	var members []poller.Device
	for i := range count {
		// Ragged: what fills no chunk is not used.
		dev := leaf(t, rng, size+4096*int64(rng.IntN(3)))
		if rng.IntN(4) == 0 {
			dev = modelVolume(t, []poller.Device{dev, leaf(t, rng, size)}, chunk)
		}
		if i == m.bad && fault != faultNone {
			dev = faultdev.New(dev, fault.rule(rng.Uint64()))
		} else if rng.IntN(2) == 0 {
			dev = faultdev.New(dev)
		}
		members = append(members, dev)
	}
	m.vol = modelVolume(t, members, chunk)
	devtest.Close(t, m.vol)

	limits := m.vol.Limits()
	depth := 1 + rng.IntN(16)
	longest := limits.BlockSize * (1 + rng.Int64N(6*chunk/limits.BlockSize))
	longest = min(longest, limits.Size)
	arena, err := poller.NewArena((longest + limits.BufAlign) * int64(depth))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := arena.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d members, chunk %d, size %d, depth %d, longest request %d, member %d misbehaves", count, chunk, limits.Size, depth, longest, m.bad)
	m.rig = devtest.Open(t, m.vol, poller.QueueConfig{Depth: depth, MaxTransfer: longest, Arena: arena})
	for range depth {
		m.slots = append(m.slots, &modelSlot{mem: m.rig.Buf(longest + limits.BufAlign)})
	}
	m.want = make([]byte, limits.Size)
	return m
}

func modelVolume(t *testing.T, members []poller.Device, chunk int64) *volume.Volume {
	t.Helper()
	v, err := volume.New(members, volume.Geometry{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (m *model) run(ops int) {
	for range ops {
		m.submit()
		if m.rng.IntN(2) == 0 {
			m.reap()
		}
	}
	m.drain()
	// And now everything.
	l, s := m.rig.Queue.Limits(), m.slots[0]
	for off := int64(0); off < l.Size; off += l.MaxTransfer {
		for s.req.Err = errors.New("not read"); s.req.Err != nil; {
			s.req = poller.Request{Op: poller.Read, Offset: off, Buf: s.mem[:min(l.MaxTransfer, l.Size-off)]}
			s.out = true
			m.rig.Submit(&s.req)
			m.drain()
		}
	}
	m.checkStats()
}

func (m *model) drain() {
	for m.submitRereads() || m.rig.Out() > 0 {
		m.reap()
	}
}

// submitRereads submits the reads that follow failed writes, and reports
// whether any is left to be.
func (m *model) submitRereads() (left bool) {
	for _, s := range m.slots {
		if s.idle && m.rig.Try(&s.req) == 1 {
			s.idle = false
		}
		left = left || s.idle
	}
	return left
}

// submit sends one more request, if there is a slot and what it would touch is
// free.
func (m *model) submit() {
	m.submitRereads()
	var s *modelSlot
	for _, other := range m.slots {
		if !other.out {
			s = other
		}
	}
	if s == nil {
		return
	}
	m.fill(s)
	for _, other := range m.slots {
		if other.out && overlap(other.off, &other.req, &s.req) && (other.reread || other.req.Op == poller.Write || s.req.Op == poller.Write) {
			return
		}
	}
	s.off = s.req.Offset
	if m.rig.Try(&s.req) == 1 {
		s.out = true
	} else if m.rig.Out() == 0 {
		m.t.Fatalf("an empty queue did not take %v of %d bytes", s.req.Op, len(s.req.Buf))
	}
}

// fill makes a random request of s.
func (m *model) fill(s *modelSlot) {
	l := m.rig.Queue.Limits()
	block := l.BlockSize
	n := block * (1 + m.rng.Int64N(l.MaxTransfer/block))
	if m.rng.IntN(2) == 0 {
		n = min(n, block*(1+m.rng.Int64N(8)))
	}
	off := block * m.rng.Int64N((l.Size-n)/block+1)
	at := l.BufAlign * m.rng.Int64N(2)
	s.req = poller.Request{Op: poller.Read, Offset: off, Buf: s.mem[at:][:n], Tag: m.rng.Uint64(), N: -1}
	if m.rng.IntN(2) == 0 {
		s.req.Flags |= poller.HiPri
	}
	if m.rng.IntN(8) == 0 {
		s.req.Flags |= poller.NoWait
	}
	switch k := m.rng.IntN(20); {
	case k == 0:
		s.req.Op, s.req.Buf = poller.Flush, nil
		s.req.Flags &^= poller.NoWait // or an EAGAIN would count as a failed flush
	case k < 10:
		s.req.Op = poller.Write
		if m.rng.IntN(4) == 0 {
			s.req.Flags |= poller.FUA
		}
		b := byte(m.rng.Uint32())
		for i := range s.req.Buf {
			s.req.Buf[i] = b + byte(i/int(block))
		}
		s.sent = append(s.sent[:0], s.req.Buf...)
	default:
		clear(s.req.Buf) // or an unread buffer might hold the right bytes
	}
}

// overlap reports whether b touches what a, which is out at offset off, does. The
// Offset of a request that is out belongs to the queue.
func overlap(off int64, a, b *poller.Request) bool {
	return off < b.Offset+int64(len(b.Buf)) && b.Offset < off+int64(len(a.Buf))
}

// reap takes some of what has finished, in one of the ways there are.
func (m *model) reap() {
	done := make([]*poller.Request, 1+m.rng.IntN(8))
	var n int
	var err error
	switch m.rng.IntN(4) {
	case 0:
		n, err = m.rig.Queue.Wait(1+m.rng.IntN(4), done, -1)
	case 1:
		n, err = m.rig.Queue.Wait(1+m.rng.IntN(4), done, 50*time.Microsecond)
	case 2:
		n, err = m.rig.Queue.Wait(1, done, 0)
	default:
		n, err = m.rig.Queue.Poll(done)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.rig.Take(done[:n])
	for _, req := range done[:n] {
		for _, s := range m.slots {
			if &s.req == req {
				s.out = false
				m.check(s)
			}
		}
	}
}

func (m *model) check(s *modelSlot) {
	r := &s.req
	want := m.want[r.Offset:][:len(r.Buf)]
	if r.Err != nil {
		m.counts.failed++
		m.checkError(s)
		return
	}
	m.counts.done++
	if s.reread {
		m.takeOver(s, want)
		return
	}
	switch r.Op {
	case poller.Read:
		if !bytes.Equal(r.Buf, want) {
			i := firstDifference(r.Buf, want)
			m.t.Fatalf("read of %d bytes at %d, flags %b: byte %d is %#x, was written as %#x", len(r.Buf), r.Offset, r.Flags, i, r.Buf[i], want[i])
		}
	case poller.Write:
		if !bytes.Equal(r.Buf, s.sent) {
			m.t.Fatalf("write of %d bytes at %d: the buffer was changed", len(r.Buf), r.Offset)
		}
		copy(want, s.sent)
	}
}

func firstDifference(a, b []byte) int {
	i := 0
	for a[i] == b[i] {
		i++
	}
	return i
}

// checkError holds an error to what was injected. A write that failed is
// followed by a read of the same range.
func (m *model) checkError(s *modelSlot) {
	r := &s.req
	var typed *poller.Error
	errors.As(r.Err, &typed)
	touched := false
	geometry := m.vol.Geometry()
	for _, e := range geometry.Extents(r.Offset, int64(len(r.Buf)), nil) {
		touched = touched || e.Member == m.bad
	}
	injected := m.fault == faultErrno && touched && errors.Is(r.Err, syscall.ENODATA) &&
		typed.Member == m.bad && typed.Offset == r.Offset && typed.Op == r.Op
	// A file may say "not now" to whoever does not wait, too.
	notNow := r.Flags&poller.NoWait != 0 && errors.Is(r.Err, syscall.EAGAIN)
	if !injected && !notNow {
		m.t.Fatalf("%v of %d bytes at %d (touches member %d: %v): %v", r.Op, len(r.Buf), r.Offset, m.bad, touched, r.Err)
	}
	if r.Op == poller.Write || s.reread {
		s.out, s.reread, s.idle = true, true, true
		*r = poller.Request{Op: poller.Read, Offset: r.Offset, Buf: r.Buf}
	}
}

// takeOver compares what the range of a failed write holds: every block is the
// old or the new one.
func (m *model) takeOver(s *modelSlot, want []byte) {
	s.reread = false
	block := int(m.rig.Queue.Limits().BlockSize)
	for i := 0; i < len(want); i += block {
		got := s.req.Buf[i:][:block]
		if !bytes.Equal(got, want[i:][:block]) && !bytes.Equal(got, s.sent[i:][:block]) {
			m.t.Fatalf("after a failed write at %d, the block at %d is neither the old nor the new", s.req.Offset, s.req.Offset+int64(i))
		}
		copy(want[i:], got)
	}
}

// checkStats compares the volume's counters with what came back.
func (m *model) checkStats() {
	s := m.vol.Stats()
	var done, failed uint64
	for op := range s.IO {
		for mode := range s.IO[op] {
			done += s.IO[op][mode].Latency.Count()
			failed += s.IO[op][mode].Errors
		}
	}
	if done != m.counts.done || failed != m.counts.failed {
		m.t.Errorf("statistics count %d done and %d failed; %d and %d came back", done, failed, m.counts.done, m.counts.failed)
	}
	if m.fault == faultAgain && s.Retries == 0 {
		m.t.Error("a storm of EAGAIN and no retry was counted")
	}
}
