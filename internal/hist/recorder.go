// SPDX-License-Identifier: Apache-2.0

package hist

import "sync/atomic"

const (
	// slots is the number of private counters: a power of two, so that masking
	// an index replaces the bounds check, and enough for every unclamped index,
	// so that Record does not clamp either. What lies outside the histogram's
	// range is moved into it by Publish, which sees it once per batch.
	slots         = 1024
	firstNegative = unclampedShift*subBuckets + subBuckets // values below 1

	// listed is how many changes of bucket between two calls of Publish are
	// remembered one by one; a power of two.
	listed = 64
)

// Recorder counts values for one writer and shows them to any number of readers.
// The zero value is ready for use. It must not be copied.
//
// Record and Publish belong to the writer: one goroutine, or several that hand
// it over with synchronization. All other methods may be called by any goroutine
// at any time and see what was published.
type Recorder struct {
	// Private to the writer. touched lists the counters that Publish has to
	// copy; last is the latest of them, plus one. A counter may be listed
	// again, but not twice in a row: the values of a batch mostly fall into few
	// buckets. When the list runs over, ntouched alone goes on.
	sum      uint64
	last     int
	ntouched int
	touched  [listed]uint16
	counts   [slots]uint64

	// Stored by the writer in Publish, loaded by readers. Each is a number of
	// its own: a reader may see some of a batch and not yet the rest of it.
	publishedSum    atomic.Uint64
	publishedCounts [NumBuckets]atomic.Uint64
}

// Record counts n times the same value in nanoseconds. Readers do not see it
// before Publish. The value is meant to be from a monotonic clock; one below zero
// is counted in the first bucket and lowers the sum.
func (r *Recorder) Record(ns int64, n uint64) {
	i := unclampedIndex(ns) & (slots - 1)
	r.counts[i] += n
	r.sum += uint64(ns) * n
	if i+1 != r.last {
		r.last = i + 1
		r.touched[r.ntouched&(listed-1)] = uint16(i)
		r.ntouched++
	}
}

// RecordNow is Record and Publish in one, for the common case that all values of
// a batch are the same.
func (r *Recorder) RecordNow(ns int64, n uint64) {
	i := unclampedIndex(ns)
	if uint(i) >= NumBuckets || r.ntouched != 0 {
		r.recordAndPublish(ns, n)
		return
	}
	count := r.counts[i] + n
	r.counts[i] = count
	r.sum += uint64(ns) * n
	r.publishedCounts[i].Store(count)
	r.publishedSum.Store(r.sum)
}

// recordAndPublish is a call of its own so that RecordNow needs no registers
// saved.
//
//go:noinline
func (r *Recorder) recordAndPublish(ns int64, n uint64) {
	r.Record(ns, n)
	r.Publish()
}

// Publish shows readers all that was recorded. It costs one atomic store per
// bucket touched since the last call, and one for the sum.
func (r *Recorder) Publish() {
	if r.ntouched > listed {
		r.publishAll()
	} else {
		for _, i := range r.touched[:r.ntouched] {
			if i >= NumBuckets {
				r.publishAll()
				break
			}
			r.publishedCounts[i].Store(r.counts[i&(slots-1)])
		}
	}
	r.ntouched, r.last = 0, 0
	r.publishedSum.Store(r.sum)
}

// publishAll moves the counts of values outside the range into the first and the
// last bucket and publishes every bucket.
func (r *Recorder) publishAll() {
	for i := NumBuckets; i < slots; i++ {
		bucket := NumBuckets - 1
		if i >= firstNegative {
			bucket = 0
		}
		r.counts[bucket] += r.counts[i]
		r.counts[i] = 0
	}
	for i := range r.publishedCounts {
		r.publishedCounts[i].Store(r.counts[i])
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
