// SPDX-License-Identifier: Apache-2.0

package stripe

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Limits of a geometry. Sizes are bytes.
const (
	MinChunk     = 4 << 10  // smallest chunk
	MaxChunk     = 4 << 20  // largest chunk
	DefaultChunk = 64 << 10 // chunk when nobody asked for another
	MaxBlockSize = 4 << 10  // largest logical block of a member
	MaxMembers   = 128      // most members of one volume
)

// ErrGeometry is what every error of New answers to with errors.Is.
var ErrGeometry = errors.New("invalid geometry")

// Geometry is the shape of a striped volume: a small comparable value. Make it
// with New; the zero value maps nothing. Its methods have pointer receivers so
// that an inlined At reads the fields it needs where they lie, instead of
// copying all of them first.
type Geometry struct {
	// A volume of one member is mapped as a single span as long as the volume,
	// so that this case costs the mapping no branch.
	span  int64 // bytes from one boundary to the next: the chunk, or the volume
	mask  int64 // leaves of an offset what lies within its span
	width int64 // members, in the type of the arithmetic

	// reciprocal is ceil(2^64 / width): the high word of chunk number times
	// reciprocal is exactly chunk number div width, without the division and
	// for any width. A quotient has a fraction of at most 1 - 1/width, so it
	// comes out right while the rounding adds less than 1/width. It adds
	// number*e / (width * 2^64) with e < width, and number*e is below 2^58:
	// numbers are below 2^51 (offsets 2^63, chunks at least 2^12), e below 2^7.
	reciprocal uint64

	shift uint8 // turns an offset into the number of its span
	size  int64 // of the volume
	chunk int64 // as asked for
}

// New validates a geometry and returns it. chunk is the contiguous unit on one
// member, blockSize the largest logical block size among the members and
// memberSize the usable bytes of the smallest member, of which what fills no
// whole chunk stays unused. Every error is one line that answers to ErrGeometry.
func New(chunk, blockSize int64, members int, memberSize int64) (Geometry, error) {
	if err := validate(chunk, blockSize, members, memberSize); err != nil {
		return Geometry{}, err
	}
	return build(chunk, int64(members), memberSize), nil
}

func build(chunk, width, memberSize int64) Geometry {
	g := Geometry{size: memberSize &^ (chunk - 1) * width, chunk: chunk, width: width}
	if width == 1 {
		g.span, g.mask, g.shift = g.size, math.MaxInt64, 63
		return g
	}
	g.span, g.mask, g.shift = chunk, chunk-1, uint8(bits.TrailingZeros64(uint64(chunk)))
	g.reciprocal = math.MaxUint64/uint64(width) + 1
	return g
}

func validate(chunk, blockSize int64, members int, memberSize int64) error {
	switch {
	case blockSize <= 0 || !isPowerOfTwo(blockSize):
		return invalid("logical block size %d is not a power of two; reformat the member to 512 or 4096 bytes per block", blockSize)
	case blockSize > MaxBlockSize:
		return invalid("logical block size %d is above %d, the largest supported; reformat the member to 512 or 4096 bytes per block", blockSize, MaxBlockSize)
	case chunk%blockSize != 0:
		return invalid("chunk size %d is no multiple of %d, the largest logical block of the members; use a power of two from 4 KiB to 4 MiB", chunk, blockSize)
	case chunk < MinChunk || chunk > MaxChunk || !isPowerOfTwo(chunk):
		return invalid("chunk size %d is not a power of two from %d to %d; use one from 4 KiB to 4 MiB, such as 64 KiB", chunk, MinChunk, MaxChunk)
	case members < 1:
		return invalid("%d members make no volume; name 1 to %d of them", members, MaxMembers)
	case members > MaxMembers:
		return invalid("%d members are more than %d, the most one volume can have; use fewer", members, MaxMembers)
	case memberSize < chunk:
		return invalid("the smallest member has %d usable bytes, less than one chunk of %d; use a larger member or a smaller chunk", memberSize, chunk)
	case memberSize&^(chunk-1) > math.MaxInt64/int64(members):
		return invalid("%d members of %d bytes are more than %d in all, the largest volume; use fewer or smaller members", members, memberSize, int64(math.MaxInt64))
	}
	return nil
}

func isPowerOfTwo(n int64) bool { return n&(n-1) == 0 }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrGeometry}, args...)...)
}

// Chunk returns the chunk size in bytes.
func (g *Geometry) Chunk() int64 { return g.chunk }

// Members returns the number of members.
func (g *Geometry) Members() int { return int(g.width) }

// Size returns the size of the volume in bytes, a multiple of Chunk times
// Members.
func (g *Geometry) Size() int64 { return g.size }

// Contains reports whether the n bytes at off lie within the volume. It takes
// any two numbers, negative and overflowing ones too. An empty range may lie
// anywhere up to and at the end.
func (g *Geometry) Contains(off, n int64) bool {
	return uint64(off) <= uint64(g.size) && uint64(n) <= uint64(g.size-off)
}

// Waste returns, for each member's usable size, how many of its bytes a volume
// with this chunk leaves unused: every member counts as much as the smallest,
// in whole chunks. chunk must be above zero.
func Waste(chunk int64, sizes []int64) []int64 {
	if len(sizes) == 0 {
		return nil
	}
	used := slices.Min(sizes)
	used -= used % chunk
	waste := make([]int64, len(sizes))
	for i, size := range sizes {
		waste[i] = size - used
	}
	return waste
}
