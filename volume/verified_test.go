// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pollux/poller"
)

// verified keeps requests out on a queue, reads and writes mixed, and knows what every
// block must hold. Each request has blocks of its own, so no two overlap.
type verified struct {
	t     *testing.T
	queue poller.Queue
	rng   *rand.Rand
	slots []*verifiedSlot
	idle  []*poller.Request
	done  []*poller.Request
	out   int

	good   int
	failed []*poller.Request
	// last is when a request last succeeded, gap the longest time without one.
	last time.Time
	gap  time.Duration
}

type verifiedSlot struct {
	base   int64 // of its blocks
	stamps [verifiedBlocks]uint64
	block  int // that the request is for
	stamp  uint64
}

const (
	verifiedBlock  = 4 * kib
	verifiedBlocks = 16
)

// newVerified prepares depth requests; their blocks are spread over the volume.
func newVerified(t *testing.T, q poller.Queue, depth int, flags poller.Flags, seed uint64) *verified {
	t.Helper()
	v := &verified{t: t, queue: q, rng: rand.New(rand.NewPCG(seed, 0)), done: make([]*poller.Request, depth)}
	mem := q.Limits().Arena.Bytes()
	area := q.Limits().Size / int64(depth) &^ (verifiedBlock - 1)
	for i := range depth {
		v.slots = append(v.slots, &verifiedSlot{base: int64(i) * area})
		v.idle = append(v.idle, &poller.Request{Flags: flags, Tag: uint64(i), Buf: mem[i*verifiedBlock:][:verifiedBlock:verifiedBlock]})
	}
	return v
}

// fill makes a block that says what and where it is.
func fillStamp(b []byte, offset int64, stamp uint64) {
	for i := 0; i < len(b); i += 16 {
		binary.LittleEndian.PutUint64(b[i:], stamp)
		binary.LittleEndian.PutUint64(b[i+8:], uint64(offset))
	}
}

// next makes r another request. A block that was never written is written first.
func (v *verified) next(r *poller.Request) {
	s := v.slots[r.Tag]
	s.block = v.rng.IntN(verifiedBlocks)
	r.Offset = s.base + int64(s.block)*verifiedBlock
	r.Op = poller.Read
	if s.stamps[s.block] == 0 || v.rng.IntN(2) == 0 {
		r.Op, s.stamp = poller.Write, v.rng.Uint64()|1
		fillStamp(r.Buf, r.Offset, s.stamp)
	}
}

// turn submits what is idle and takes what has come back. What fails stays idle no more.
func (v *verified) turn() {
	v.t.Helper()
	for _, r := range v.idle {
		v.next(r)
	}
	n, err := v.queue.Submit(v.idle)
	if err != nil || n != len(v.idle) {
		v.t.Fatalf("Submit took %d of %d: %v", n, len(v.idle), err)
	}
	v.out += n
	v.idle = v.idle[:0]
	if v.last.IsZero() {
		v.last = time.Now()
	}
	if n, err = v.queue.Wait(1, v.done, patience); err != nil || n == 0 {
		v.t.Fatalf("%d requests are out, %d came back within %v: %v", v.out, n, patience, err)
	}
	v.out -= n
	for _, r := range v.done[:n] {
		v.take(r)
	}
}

func (v *verified) take(r *poller.Request) {
	v.t.Helper()
	if r.Err != nil {
		v.failed = append(v.failed, r)
		return
	}
	v.good++
	now := time.Now()
	v.gap = max(v.gap, now.Sub(v.last))
	v.last = now
	s := v.slots[r.Tag]
	if r.Op == poller.Write {
		s.stamps[s.block] = s.stamp
	} else if want := make([]byte, verifiedBlock); true {
		fillStamp(want, r.Offset, s.stamps[s.block])
		if !bytes.Equal(r.Buf, want) {
			v.t.Fatalf("block at %d holds %x, want %x", r.Offset, r.Buf[:16], want[:16])
		}
	}
	v.idle = append(v.idle, r)
}

// run goes on until enough says so, or for d at most, and reports which. It fails the
// test when a request fails.
func (v *verified) run(d time.Duration, enough func() bool) (ended bool) {
	v.t.Helper()
	for start := time.Now(); time.Since(start) < d; {
		for range 16 {
			v.turn()
			if len(v.failed) > 0 {
				v.t.Fatalf("after %d requests: %v", v.good, v.failed[0].Err)
			}
		}
		if enough != nil && enough() {
			return true
		}
	}
	return false
}

// finish takes back all that is out.
func (v *verified) finish() {
	v.t.Helper()
	for v.out > 0 {
		n, err := v.queue.Wait(1, v.done, patience)
		if err != nil || n == 0 {
			v.t.Fatalf("%d requests are out, %d came back within %v: %v", v.out, n, patience, err)
		}
		v.out -= n
		for _, r := range v.done[:n] {
			v.take(r)
		}
	}
}

// String says what was done.
func (v *verified) String() string {
	return fmt.Sprintf("%d requests good, %d failed, %v without one at most", v.good, len(v.failed), v.gap.Round(time.Millisecond))
}
