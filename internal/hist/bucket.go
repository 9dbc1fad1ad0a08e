// SPDX-License-Identifier: Apache-2.0

package hist

import "math/bits"

const (
	// subBuckets is how many buckets of equal width each power of two is cut
	// into. A bucket is at most 1/16 as wide as the values in it are large, so
	// an upper bound is at most 6.25 % above any value of its bucket.
	subBuckets     = 1 << subBucketBits
	subBucketBits  = 4
	maxBits        = 40 // values above 2^40 ns, 18 minutes, go to the last bucket
	maxUpperBound  = 1 << maxBits
	linearBuckets  = 2 * subBuckets // the first ones are 1 ns wide
	highestShift   = maxBits - subBucketBits - 1
	unclampedShift = 63 - subBucketBits
)

// NumBuckets is how many buckets a histogram has.
const NumBuckets = highestShift*subBuckets + linearBuckets // 592

// Index returns the bucket of a value in nanoseconds, from 0 to NumBuckets-1.
// Values below 1 are in the first bucket, values above 2^40 in the last.
func Index(ns int64) int {
	return unclampedIndex(min(max(ns, 1), maxUpperBound))
}

// unclampedIndex continues the buckets past NumBuckets up to the largest int64.
// What is below 1 wraps around to the highest indexes, from firstNegative on.
//
// One is subtracted first because upper bounds are inclusive: this puts every
// power of two at the end of a bucket rather than at the start of the next.
func unclampedIndex(ns int64) int {
	u := uint64(ns - 1)
	shift := bits.Len64(u >> (subBucketBits + 1))
	return shift<<subBucketBits + int(u>>(shift&63))
}

// UpperBound returns the largest value in nanoseconds of bucket i, which must be
// from 0 to NumBuckets-1. Every power of two from 1 to 2^40 is the upper bound
// of a bucket. (The last bucket has values above its bound as well.)
func UpperBound(i int) int64 {
	shift := max(i>>subBucketBits-1, 0)
	return int64(i-shift<<subBucketBits+1) << shift
}

// LowerBound returns the smallest value in nanoseconds of bucket i, which must
// be from 0 to NumBuckets-1. It is 0 for the first bucket, and one more than the
// upper bound of the bucket before for the others.
func LowerBound(i int) int64 {
	if i == 0 {
		return 0
	}
	return UpperBound(i-1) + 1
}

// midpoint is what stands for the values of bucket i where one number has to.
func midpoint(i int) float64 {
	return (float64(LowerBound(i)) + float64(UpperBound(i))) / 2
}
