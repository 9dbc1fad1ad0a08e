// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math/bits"

	"pollux/poller"
)

// offsets says what the next I/O of a job is. It is part of the measured cost of
// every I/O, hence its shape: a xorshift generator without an interface around
// it, and a multiplication where a modulo would divide. Blocks are drawn with
// replacement (fio's norandommap).
type offsets struct {
	state  uint64 // of the random generator, never 0
	blocks uint64
	block  uint64 // next one, where blocks are counted up
	bs     int64
	random bool
	mixed  bool
}

func newOffsets(j Job) offsets {
	return offsets{
		state:  max(mix(j.Seed+goldenRatio), 1),
		blocks: uint64(j.Size / j.BS),
		bs:     j.BS,
		random: j.RW.Random(),
		mixed:  j.RW.Reads() && j.RW.Writes(),
	}
}

// set fills in where r goes, and in a mixed workload what it does.
func (o *offsets) set(r *poller.Request) {
	x := o.state
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	o.state = x
	block, _ := bits.Mul64(x, o.blocks)
	if !o.random {
		block = o.block
		if o.block++; o.block == o.blocks {
			o.block = 0
		}
	}
	r.Offset = int64(block) * o.bs
	if o.mixed {
		// The low bits hardly decide which block it is.
		r.Op = poller.Op(x & 1)
	}
}
