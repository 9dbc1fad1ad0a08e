// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"

	"pollux/poller"
)

// verifier is one pass over the device.
type verifier struct {
	job    Job
	start  uint64 // of the pattern
	found  *Verified
	blocks uint64
	block  uint64 // what comes next
	stride uint64
	left   uint64 // blocks to be prepared yet
}

func newVerifier(job Job, scattered bool, found *Verified) *verifier {
	v := &verifier{job: job, start: patternStart(job.Seed), found: found, stride: 1}
	v.blocks = uint64((job.Size-1)/job.BS + 1)
	v.left = v.blocks
	if !scattered || v.blocks < 3 {
		return v
	}
	// A stride without a common divisor with the number of blocks meets each
	// of them once.
	v.stride = max(mix(job.Seed)%v.blocks, 1)
	for gcd(v.stride, v.blocks) != 1 {
		v.stride--
	}
	v.block = mix(job.Seed+1) % v.blocks
	return v
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// pass takes every block once. ready is what may be submitted; requests of the
// front of it, up to prepared, have their block already, since a full queue
// refused them.
func (v *verifier) pass(s *session) error {
	ready := append(make([]*poller.Request, 0, len(s.reqs)), s.reqs...)
	prepared, out := 0, 0
	for {
		for prepared < len(ready) && v.left > 0 && !s.stop.Load() {
			v.prepare(ready[prepared])
			prepared++
			v.left--
		}
		n, err := s.queue.Submit(ready[:prepared])
		if err != nil {
			return err
		}
		ready = append(ready[:0], ready[n:]...)
		prepared -= n
		out += n
		if out == 0 {
			if prepared > 0 {
				return errNothingAccepted
			}
			return nil
		}
		n, err = s.queue.Wait(1, s.batch, -1)
		out -= n
		s.out.ios += uint64(n)
		if err != nil {
			return err
		}
		for _, r := range s.batch[:n] {
			v.check(s, r)
		}
		ready = append(ready, s.batch[:n]...)
	}
}

// prepare fills in the next block. The last one of the device may be shorter.
func (v *verifier) prepare(r *poller.Request) {
	at := int64(v.block) * v.job.BS
	r.Offset = v.job.Offset + at
	r.Buf = r.Buf[:min(v.job.BS, v.job.Size-at)]
	if v.block += v.stride; v.block >= v.blocks {
		v.block -= v.blocks
	}
	if r.Op == poller.Write {
		fillPattern(r.Buf, v.start, r.Offset)
	} else {
		// Lest a read that brings nothing finds what an earlier one brought.
		clear(r.Buf)
	}
}

// check takes a request that has come back.
func (v *verifier) check(s *session, r *poller.Request) {
	defer func() { r.Buf = r.Buf[:cap(r.Buf)] }()
	if r.Err != nil {
		s.fail(r.Err)
		return
	}
	if r.Op == poller.Write {
		return
	}
	v.found.Bytes += int64(len(r.Buf))
	at := checkPattern(r.Buf, v.start, r.Offset)
	if at < 0 {
		return
	}
	v.found.WrongBlocks++
	if m := v.mismatch(r, at); v.found.First == nil || m.Offset < v.found.First.Offset {
		v.found.First = m
	}
}

// mismatch describes the wrong byte at index at of a block.
func (v *verifier) mismatch(r *poller.Request, at int) *Mismatch {
	m := &Mismatch{Offset: r.Offset + int64(at), Member: -1, MemberOffset: -1, Found: r.Buf[at], BelongsAt: -1}
	word := at &^ 7
	var want [8]byte
	fillPattern(want[:], v.start, r.Offset+int64(word))
	m.Expected = want[at-word]
	from := belongsAt(binary.LittleEndian.Uint64(r.Buf[word:]), v.start)
	if from >= v.job.Offset && from-v.job.Offset < v.job.Size && from%8 == 0 {
		m.BelongsAt = from
	}
	return m
}
