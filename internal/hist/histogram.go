// SPDX-License-Identifier: Apache-2.0

package hist

import (
	"math"
	"slices"
	"time"
)

// Histogram is counts of values at one moment, or between two. The zero value
// is empty and ready for use. Methods do not change it, nor share its memory
// with what they return; a histogram nobody writes to may be read by any number
// of goroutines.
type Histogram struct {
	// Buckets has the count of values of each bucket: NumBuckets of them, or nil
	// when there are none. UpperBound and LowerBound say which values these are.
	Buckets []uint64
	// Sum is the sum of the values in nanoseconds, modulo 2^64: with 1,000 I/Os in
	// flight all the time it starts again from zero every 213 days, as a counter
	// may. Sub is right across that. It may differ from the buckets by the batch
	// that was being published when a snapshot was taken.
	Sum uint64
}

// Count returns the number of values.
func (h Histogram) Count() uint64 {
	var count uint64
	for _, n := range h.Buckets {
		count += n
	}
	return count
}

// CumulativeLE returns how many values are at most ns nanoseconds, counted by
// whole buckets. It is exact when ns is the upper bound of a bucket, as every
// power of two from 1 to 2^39 is; otherwise the bucket that has ns in it is left
// out. From 2^40 on it is Count.
func (h Histogram) CumulativeLE(ns int64) uint64 {
	if h.Buckets == nil {
		return 0
	}
	if ns >= maxUpperBound {
		return h.Count()
	}
	var count uint64
	for _, n := range h.Buckets[:Index(ns+1)] {
		count += n
	}
	return count
}

// Mean returns the mean of the values, exact as far as Sum is; 0 when there are
// none.
func (h Histogram) Mean() time.Duration {
	count := h.Count()
	if count == 0 {
		return 0
	}
	return time.Duration(h.Sum / count)
}

// StdDev returns the standard deviation of the values as a sample (divided by
// count-1), each taken as the middle of its bucket; 0 for fewer than two.
func (h Histogram) StdDev() time.Duration {
	count := float64(h.Count())
	if count < 2 {
		return 0
	}
	var mean, squares float64
	for i, n := range h.Buckets {
		mean += float64(n) / count * midpoint(i)
	}
	for i, n := range h.Buckets {
		deviation := midpoint(i) - mean
		squares += float64(n) * deviation * deviation
	}
	return time.Duration(math.Sqrt(squares / (count - 1)))
}

// Percentile returns the value that p percent of all values do not exceed: the
// middle of the first bucket up to which there are at least p percent of them.
// That is how fio computes its clat percentiles, so that the two compare. p of 0
// or less gives the first bucket that has values, 100 or more the last. It is 0
// when there are no values.
func (h Histogram) Percentile(p float64) time.Duration {
	count := h.Count()
	if count == 0 {
		return 0
	}
	// Multiplied before divided: 99.9/100*1000 is a little above 999.
	target := p * float64(count) / 100
	var cumulative uint64
	last := 0
	for i, n := range h.Buckets {
		if n == 0 {
			continue
		}
		cumulative += n
		last = i
		if float64(cumulative) >= target {
			break
		}
	}
	return time.Duration(midpoint(last))
}

// Min returns the lower bound of the first bucket that has values, so no value is
// smaller, apart from those below zero; 0 when there are none.
func (h Histogram) Min() time.Duration {
	for i, n := range h.Buckets {
		if n != 0 {
			return time.Duration(LowerBound(i))
		}
	}
	return 0
}

// Max returns the upper bound of the last bucket that has values, so no value is
// larger, apart from those above 2^40 ns; 0 when there are none.
func (h Histogram) Max() time.Duration {
	for i, n := range slices.Backward(h.Buckets) {
		if n != 0 {
			return time.Duration(UpperBound(i))
		}
	}
	return 0
}

// Add returns the values of h and other together.
func (h Histogram) Add(other Histogram) Histogram {
	sum := Histogram{Buckets: slices.Clone(h.Buckets), Sum: h.Sum + other.Sum}
	if sum.Buckets == nil {
		sum.Buckets = slices.Clone(other.Buckets)
		return sum
	}
	for i, n := range other.Buckets {
		sum.Buckets[i] += n
	}
	return sum
}

// Sub returns the values that were added since old, which must be an earlier
// snapshot of the same recorders.
func (h Histogram) Sub(old Histogram) Histogram {
	difference := Histogram{Buckets: slices.Clone(h.Buckets), Sum: h.Sum - old.Sum}
	if difference.Buckets == nil { // not the same recorders, or nothing to subtract
		return difference
	}
	for i, n := range old.Buckets {
		difference.Buckets[i] -= n
	}
	return difference
}
