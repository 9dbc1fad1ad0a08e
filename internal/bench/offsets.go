// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math/bits"

	"pollux/poller"
)

// offsets says what the next I/O of a session is. It is part of the measured cost of
// every I/O, hence its shape: a xorshift generator without an interface around
// it, and a multiplication where a modulo would divide. Blocks are drawn with
// replacement (fio's norandommap).
type offsets struct {
	state  uint64 // of the random generator, never 0
	blocks uint64
	block  uint64 // next one, where blocks are counted up
	bs     int64
	base   int64
	random bool
	varied bool
	// special is true unless random alone is.
	special bool
	vary    variation
}

// variation is what differs between the I/Os of a job beside their offsets.
type variation struct {
	ops   [poller.Write + 1]variedOp
	reads uint64 // of a hundred I/Os
	hipri uint64 // of a hundred I/Os
	split bool
	size  int64 // of the part of the device
	next  int64 // offset, where they are counted up and sizes vary
}

type variedOp struct {
	plain, polled poller.Flags
	shares        []SizeShare
}

// newOffsets is for the job's goroutine of the given number.
func newOffsets(j Job, number int) offsets {
	unit := j.minBS()
	o := offsets{
		state:  max(mix(j.Seed+uint64(number)*jobStride+goldenRatio), 1),
		blocks: uint64((j.Size-j.maxBS())/unit + 1),
		bs:     unit,
		base:   j.Offset,
		random: j.RW.Random(),
		vary: variation{
			reads: uint64(j.RWMixRead),
			hipri: uint64(j.HiPri),
			split: j.BSSplit[poller.Read] != nil || j.BSSplit[poller.Write] != nil,
			size:  j.Size,
		},
	}
	mixed := j.RW.Reads() && j.RW.Writes()
	if !mixed {
		o.vary.reads = 100
		if j.RW.op() == poller.Write {
			o.vary.reads = 0
		}
	}
	o.varied = mixed || o.vary.split || j.HiPri > 0 && j.HiPri < 100
	o.special = o.varied || !o.random
	for op := range o.vary.ops {
		v := &o.vary.ops[op]
		v.plain, v.polled = j.flags(poller.Op(op), false), j.flags(poller.Op(op), true)
		if v.shares = j.BSSplit[op]; v.shares == nil {
			v.shares = []SizeShare{{j.BS, 100}}
		}
	}
	return o
}

// jobStride keeps the seeds of a job's goroutines apart from those of other jobs and
// rounds, which are small numbers.
const jobStride = 1 << 40

// set fills in where r goes, and where it varies what r does.
func (o *offsets) set(r *poller.Request) {
	x := o.state
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	o.state = x
	block, _ := bits.Mul64(x, o.blocks)
	r.Offset = int64(block)*o.bs + o.base
	if o.special {
		o.setSpecial(r)
	}
}

// setSpecial is for all but I/Os at random offsets that are otherwise alike. Apart, it
// leaves set small enough to be inlined.
func (o *offsets) setSpecial(r *poller.Request) {
	if !o.random {
		r.Offset = int64(o.block)*o.bs + o.base
		if o.block++; o.block == o.blocks {
			o.block = 0
		}
	}
	if o.varied {
		o.setVaried(r, mix(o.state))
	}
}

// setVaried draws what r does, by lots that have nothing to do with its block.
func (o *offsets) setVaried(r *poller.Request, lots uint64) {
	v := &o.vary
	r.Op = poller.Write
	if drawn(lots) < v.reads {
		r.Op = poller.Read
	}
	op := &v.ops[r.Op]
	r.Flags = op.plain
	if drawn(lots>>16) < v.hipri {
		r.Flags = op.polled
	}
	if !v.split {
		return
	}
	size, lot := int64(0), int(drawn(lots>>32))
	for _, s := range op.shares {
		if size = s.BS; lot < s.Percent {
			break
		}
		lot -= s.Percent
	}
	r.Buf = r.Buf[:size]
	if o.random {
		return
	}
	if v.next+size > v.size {
		v.next = 0
	}
	r.Offset = o.base + v.next
	v.next += size
}

// drawn makes a number from 0 to 99 of the low 16 bits.
func drawn(lots uint64) uint64 { return lots & 0xffff * 100 >> 16 }
