// SPDX-License-Identifier: Apache-2.0

package multipath_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
	"pollux/volume"
)

// Drives whose paths come and go must do what a byte slice does. As long as one path is
// there, and the others are PCI Express ones that are gone when they fail, no read or
// write fails. What a seed decides can be repeated: POLLUX_SEED=n go test -run TestModel.

// model is a device over drives with paths, and what it must hold.
type model struct {
	t      *testing.T
	rng    *rand.Rand
	drives []*paths
	dev    poller.Device
	want   []byte
}

// newModel makes a drive with 2 to 4 paths, or a volume of two of them.
func newModel(t *testing.T, rng *rand.Rand) *model {
	m := &model{t: t, rng: rng}
	for range 1 + rng.IntN(2) {
		opts := multipath.Options{Policy: multipath.Policy(rng.IntN(3)), NoPathTimeout: time.Minute}
		m.drives = append(m.drives, newPathsOf(t, 2+rng.IntN(3), opts, func(int) faultdev.MemoryOptions {
			return faultdev.MemoryOptions{GoneIsFinal: true, Seed: rng.Uint64() | 1, Lateness: 1 + rng.IntN(6)}
		}))
	}
	m.dev = m.drives[0].Multipath
	if len(m.drives) == 2 {
		v, err := volume.New([]poller.Device{m.drives[0].Multipath, m.drives[1].Multipath}, volume.Geometry{Chunk: 4 << 10})
		if err != nil {
			t.Fatal(err)
		}
		devtest.Close(t, v)
		m.dev = v
	}
	m.want = make([]byte, m.dev.Limits().Size)
	return m
}

// disturb makes a path come or go. The first of each drive stays, or all may go.
func (m *model) disturb(rng *rand.Rand, all bool) {
	d := m.drives[rng.IntN(len(m.drives))]
	least := 1
	if all {
		least = 0
	}
	i := least + rng.IntN(len(d.faults)-least)
	switch rng.IntN(3) {
	case 0:
		d.vanish(i)
	case 1:
		// First an error that does not say so, then it is gone: the usual way. Who asks
		// reads the first block.
		d.faults[i].SetRules(
			faultdev.Rule{Ops: faultdev.Reads | faultdev.Writes, From: testBlock, Times: 1, Err: syscall.EIO, Delay: time.Duration(rng.IntN(50)) * time.Microsecond},
			faultdev.Rule{Err: poller.ErrGone})
	default:
		d.comeBackIfGone(i)
	}
}

// comeBackIfGone brings a path back that is known to be gone. One that is back before
// that has only failed, and a write that it failed is not sent again.
func (p *paths) comeBackIfGone(i int) {
	if s := p.Stats().Paths[i]; !s.Live && errors.Is(s.Err, poller.ErrGone) {
		p.comeBack(i)
	}
}

// slot is a request with blocks of its own, and what a read must find there.
type slot struct {
	req    poller.Request
	mem    []byte
	lo, hi int64
	expect []byte
}

// run does so many rounds of requests in the part of the device from lo to hi.
func (m *model) run(rng *rand.Rand, lo, hi int64, depth, queues, rounds int, disturb func()) error {
	q, err := m.dev.NewQueue(poller.QueueConfig{Depth: depth, MaxTransfer: 8 * testBlock, Queues: queues})
	if err != nil {
		return err
	}
	defer q.Close()
	mem, part := q.Limits().Arena.Bytes(), (hi-lo)/int64(depth)/testBlock*testBlock
	var idle []*slot
	for i := range depth {
		s := &slot{lo: lo + int64(i)*part, hi: lo + int64(i+1)*part}
		s.req.Tag = uint64(i)
		s.mem = mem[i*8*testBlock:][: 8*testBlock : 8*testBlock]
		idle = append(idle, s)
	}
	slots, out := append([]*slot(nil), idle...), make(map[*poller.Request]bool)
	done := make([]*poller.Request, 1+rng.IntN(depth))
	for round := 0; round < rounds || len(out) > 0; round++ {
		if round < rounds {
			if disturb != nil && rng.IntN(8) == 0 {
				disturb()
			}
			var batch []*poller.Request
			for _, s := range idle {
				m.next(rng, s)
				batch = append(batch, &s.req)
				out[&s.req] = true
			}
			if n, err := q.Submit(batch); n != len(batch) || err != nil {
				return fmt.Errorf("Submit took %d of %d: %w", n, len(batch), err)
			}
			idle = idle[:0]
		}
		n, err := q.Wait(1, done, devtest.Patience)
		if err != nil || n == 0 {
			return fmt.Errorf("%d of %d came back: %w", n, len(out), err)
		}
		for _, r := range done[:n] {
			if !out[r] {
				return fmt.Errorf("%v at %d came back twice", r.Op, r.Offset)
			}
			delete(out, r)
			if err := m.check(slots[r.Tag]); err != nil {
				return err
			}
			idle = append(idle, slots[r.Tag])
		}
	}
	return q.Close()
}

func (m *model) next(rng *rand.Rand, s *slot) {
	r := &s.req
	n := (1 + rng.Int64N(8)) * testBlock
	r.Op, r.Flags = poller.Op(rng.IntN(2)), poller.Flags(rng.IntN(2)) // HiPri or not
	if rng.IntN(20) == 0 {
		r.Op, r.Buf = poller.Flush, nil
		return
	}
	r.Offset = s.lo + rng.Int64N((s.hi-s.lo-n)/testBlock+1)*testBlock
	r.Buf = s.mem[:n:n]
	if r.Op == poller.Write {
		for i := range r.Buf {
			r.Buf[i] = byte(rng.Uint32())
		}
	} else {
		s.expect = append(s.expect[:0], m.want[r.Offset:][:n]...)
	}
}

func (m *model) check(s *slot) error {
	r := &s.req
	if err := devtest.Result(r); err != nil {
		return err
	}
	switch {
	case r.Op == poller.Flush:
		if r.Err != nil && !errors.Is(r.Err, poller.ErrPathLost) {
			return r.Err
		}
	case r.Err != nil:
		return r.Err
	case r.Op == poller.Write:
		copy(m.want[r.Offset:], r.Buf)
	case !bytes.Equal(r.Buf, s.expect):
		return fmt.Errorf("read at %d is not what was written", r.Offset)
	}
	return nil
}

// content compares all that the device holds.
func (m *model) content(t *testing.T) {
	t.Helper()
	q := devtest.Open(t, m.dev, poller.QueueConfig{Depth: 1, MaxTransfer: 64 << 10})
	buf := q.Buf(64 << 10)
	for at := int64(0); at < int64(len(m.want)); at += int64(len(buf)) {
		q.MustDo(&poller.Request{Op: poller.Read, Offset: at, Buf: buf})
		if !bytes.Equal(buf, m.want[at:][:len(buf)]) {
			t.Fatalf("at %d the device does not hold what was written", at)
		}
	}
}

func TestModel(t *testing.T) {
	seed := testSeed(t)
	for i := range uint64(40) {
		if !t.Run(fmt.Sprint(i), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, i))
			m := newModel(t, rng)
			depth := []int{1, 4, 32}[rng.IntN(3)]
			if err := m.run(rng, 0, int64(len(m.want)), depth, 1, 200, func() { m.disturb(rng, false) }); err != nil {
				t.Fatal(err)
			}
			for _, d := range m.drives {
				for path := range d.faults {
					d.comeBack(path)
				}
			}
			m.content(t)
		}) {
			return
		}
	}
}

// Two queues in two goroutines, and a third that takes paths away, all of them at times,
// and brings them back.
func TestModelOfTwoQueues(t *testing.T) {
	seed := testSeed(t)
	for i := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1000+i))
		m := newModel(t, rng)
		stop := make(chan struct{})
		var disturber, queues sync.WaitGroup
		other := rand.New(rand.NewPCG(seed, 2000+i))
		disturber.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(other.IntN(3000)) * time.Microsecond):
					m.disturb(other, true)
					_ = m.dev.Stats()
				}
			}
		})
		half := int64(len(m.want)) / 2
		for n := range int64(2) {
			mine := rand.New(rand.NewPCG(seed, 3000+2*i+uint64(n)))
			queues.Go(func() {
				if err := m.run(mine, n*half, (n+1)*half, 8, 2, 300, nil); err != nil {
					t.Error(err)
				}
			})
		}
		// Nobody else brings back what went last.
		finished := make(chan struct{})
		go func() { queues.Wait(); close(finished) }()
		for done := false; !done; {
			select {
			case <-finished:
				done = true
			case <-time.After(50 * time.Millisecond):
				for _, d := range m.drives {
					d.comeBackIfGone(0)
				}
			}
		}
		close(stop)
		disturber.Wait()
		for _, d := range m.drives {
			for path := range d.faults {
				d.comeBack(path)
			}
		}
		if t.Failed() {
			return
		}
		m.content(t)
	}
}
