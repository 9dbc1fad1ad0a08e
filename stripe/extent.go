// SPDX-License-Identifier: Apache-2.0

package stripe

import "math/bits"

// Extent is what one request wants from one member: Len bytes at Offset of the
// member, which are the bytes at Pos of the request's buffer.
type Extent struct {
	Member int   // slot of the member, from 0
	Offset int64 // on the member, from the start of its data
	Pos    int64 // in the request's buffer
	Len    int64
}

// At maps one offset of the volume to a member and an offset there. left is how
// many bytes from there on are contiguous: to the end of the chunk, or of the
// volume if it has only one member. off must be at least 0 and below Size.
//
// This is the step of a submit loop: it inlines and has no branch or division.
func (g *Geometry) At(off int64) (member int, memberOff, left int64) {
	number := uint64(off) >> (g.shift & 63) // &63 spares the check for shifts past the word
	row, _ := bits.Mul64(number, g.reciprocal)
	within := off & g.mask
	return int(int64(number) - int64(row)*g.width), int64(row<<(g.shift&63)) + within, g.span - within
}

// Offset is the inverse of At: it returns where in the volume an offset of a
// member is. The offset must be within the part of the member that is used.
func (g *Geometry) Offset(member int, memberOff int64) int64 {
	row := memberOff >> (g.shift & 63)
	return (row*g.width+int64(member))<<(g.shift&63) + memberOff&g.mask
}

// Extents appends to dst the extents of the n bytes at off, in the order of the
// range: one for each chunk touched, or a single one if there is only one
// member. The range must lie within the volume; an empty one has no extents.
// Nothing is allocated when dst has room for Count more.
func (g *Geometry) Extents(off, n int64, dst []Extent) []Extent {
	for pos := int64(0); pos < n; {
		member, memberOff, left := g.At(off + pos)
		length := min(left, n-pos)
		dst = append(dst, Extent{Member: member, Offset: memberOff, Pos: pos, Len: length})
		pos += length
	}
	return dst
}

// Count returns how many extents the n bytes at off have. The range must lie
// within the volume.
func (g *Geometry) Count(off, n int64) int {
	if n == 0 {
		return 0
	}
	shift := g.shift & 63
	return int((off+n-1)>>shift-off>>shift) + 1
}

// MaxPerMember returns the most extents that any request of at most n bytes, at
// any offset, can have on one member: what a queue reserves there for one
// request. The bound is reached.
func (g *Geometry) MaxPerMember(n int64) int {
	n = min(n, g.size)
	if n <= 0 {
		return 0
	}
	if g.width == 1 {
		return 1
	}
	// The worst request begins with the last byte of a chunk. One nearly as long
	// as the volume has no room to begin there, and cannot have more than all.
	touched := min(1+ceilDiv(n-1, g.chunk), g.size/g.chunk)
	return int(ceilDiv(touched, g.width))
}

// MaxExtent returns the length in bytes of the largest extent that any request
// of at most n bytes can have.
func (g *Geometry) MaxExtent(n int64) int64 { return max(min(n, g.span), 0) }

func ceilDiv(a, b int64) int64 {
	quotient := a / b
	if a%b != 0 {
		quotient++
	}
	return quotient
}
