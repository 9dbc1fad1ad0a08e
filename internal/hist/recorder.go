// SPDX-License-Identifier: Apache-2.0

package hist

import (
	"math/bits"
	"sync/atomic"
)

const (
	// slots is the number of private counters: a power of two, so that masking
	// an index replaces the bounds check, and enough for every unclamped index,
	// so that Record does not clamp either. What lies outside the histogram's
	// range is moved into it by Publish, which sees it once per batch.
	slots         = 1024
	firstNegative = unclampedShift*subBuckets + subBuckets // values below 1

	bucketWords = (NumBuckets + 63) / 64 // words of dirty that have buckets: 10
)

// Recorder counts values for one writer and shows them to any number of readers.
// The zero value is ready for use. It must not be copied.
//
// Record and Publish belong to the writer: one goroutine, or several that hand
// it over with synchronization. All other methods may be called by any goroutine
// at any time and see what was published.
type Recorder struct {
	// Private to the writer.
	sum    uint64
	dirty  [slots / 64]uint64 // one bit per counter that Publish has to copy
	counts [slots]uint64

	// Stored by the writer in Publish, loaded by readers. Each is a number of
	// its own: a reader may see some of a batch and not yet the rest of it.
	publishedSum    atomic.Uint64
	publishedCounts [bucketWords * 64]atomic.Uint64
}

// Record counts one value in nanoseconds. Readers do not see it before Publish.
// The value is meant to be from a monotonic clock; one below zero is counted in
// the first bucket and lowers the sum.
func (r *Recorder) Record(ns int64) {
	i := unclampedIndex(ns) & (slots - 1)
	r.counts[i]++
	r.dirty[i>>6] |= 1 << (i & 63)
	r.sum += uint64(ns)
}

// Publish shows readers all that was recorded. It costs one atomic store per
// bucket touched since the last call, and next to nothing if there is none.
func (r *Recorder) Publish() {
	const inRange = 1<<(NumBuckets%64) - 1 // bits of buckets in the last of their words
	d := &r.dirty
	if d[bucketWords-1]&^inRange|d[10]|d[11]|d[12]|d[13]|d[14]|d[15] != 0 {
		r.clamp()
	}
	for w := range bucketWords {
		word := r.dirty[w]
		if word == 0 {
			continue
		}
		r.dirty[w] = 0
		for ; word != 0; word &= word - 1 {
			i := w<<6 + bits.TrailingZeros64(word)
			r.publishedCounts[i].Store(r.counts[i])
		}
	}
	if r.publishedSum.Load() != r.sum {
		r.publishedSum.Store(r.sum)
	}
}

// clamp moves the counts of values outside the range into the first and the last
// bucket.
func (r *Recorder) clamp() {
	for i := NumBuckets; i < slots; i++ {
		if r.counts[i] == 0 {
			continue
		}
		bucket := NumBuckets - 1
		if i >= firstNegative {
			bucket = 0
		}
		r.counts[bucket] += r.counts[i]
		r.dirty[bucket>>6] |= 1 << (bucket & 63)
		r.counts[i] = 0
		r.dirty[i>>6] &^= 1 << (i & 63)
	}
}

// Snapshot returns what was published so far. Any goroutine may call it.
func (r *Recorder) Snapshot() Histogram {
	var h Histogram
	r.AddTo(&h)
	return h
}

// AddTo adds what was published so far to h, to sum up many recorders without
// a histogram for each. Any goroutine that owns h may call it.
func (r *Recorder) AddTo(h *Histogram) {
	for i := range NumBuckets {
		n := r.publishedCounts[i].Load()
		if n == 0 {
			continue
		}
		if h.Buckets == nil {
			h.Buckets = make([]uint64, NumBuckets)
		}
		h.Buckets[i] += n
	}
	h.Sum += r.publishedSum.Load()
}
