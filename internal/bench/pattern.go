// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/binary"
	"math/bits"
)

// The pattern of Verify: the 8 bytes at volume offset o, a multiple of 8, are
// mix(seed + o), little-endian. So every byte of the volume is checked, the
// block size of the writer does not matter, and since mix can be undone a word
// found in the wrong place tells where it belongs.

const goldenRatio = 0x9e3779b97f4a7c15

const (
	mixFactor1 = 0xbf58476d1ce4e5b9
	mixFactor2 = 0x94d049bb133111eb
	// Their inverses modulo 2^64.
	unmixFactor1 = 0x96de1b173f119089
	unmixFactor2 = 0x319642b2d24d8ec3
)

// mix is the finalizer of SplitMix64: a permutation of all 64-bit numbers.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * mixFactor1
	x = (x ^ x>>27) * mixFactor2
	return x ^ x>>31
}

// unmix is the inverse of mix.
func unmix(x uint64) uint64 {
	x = (x ^ x>>31 ^ x>>62) * unmixFactor2
	x = (x ^ x>>27 ^ x>>54) * unmixFactor1
	return x ^ x>>30 ^ x>>60
}

// patternStart makes neighbouring seeds give patterns that share nothing.
func patternStart(seed uint64) uint64 { return mix(seed ^ goldenRatio) }

// fillPattern sets b to the pattern at offset; both are multiples of 8.
func fillPattern(b []byte, start uint64, offset int64) {
	x := start + uint64(offset)
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, mix(x))
		x += 8
	}
}

// checkPattern returns the index of the first byte of b that is not the
// pattern's at offset, or -1.
func checkPattern(b []byte, start uint64, offset int64) int {
	x := start + uint64(offset)
	for i := 0; i+8 <= len(b); i += 8 {
		if wrong := binary.LittleEndian.Uint64(b[i:]) ^ mix(x); wrong != 0 {
			return i + bits.TrailingZeros64(wrong)/8
		}
		x += 8
	}
	return -1
}

// belongsAt returns the offset at which the pattern has this word.
func belongsAt(word, start uint64) int64 { return int64(unmix(word) - start) }
