// SPDX-License-Identifier: Apache-2.0

package hist

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// seeded returns a source of random numbers whose seed is in the test's log.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// latency is spread like those of I/O: most near 10 us, some far above.
func latency(random *rand.Rand) int64 {
	return int64(8000 + 2000*random.ExpFloat64()*math.Exp2(random.ExpFloat64()))
}

func TestNothingIsSeenBeforePublish(t *testing.T) {
	var r Recorder
	if h := r.Snapshot(); h.Buckets != nil || h.Sum != 0 {
		t.Errorf("an unused recorder shows %+v", h)
	}
	r.Record(100, 1)
	r.Record(5000, 1)
	if h := r.Snapshot(); h.Count() != 0 || h.Sum != 0 {
		t.Errorf("before Publish: count %d, sum %d", h.Count(), h.Sum)
	}
	r.Publish()
	if h := r.Snapshot(); h.Count() != 2 || h.Sum != 5100 || h.Buckets[Index(100)] != 1 || h.Buckets[Index(5000)] != 1 {
		t.Errorf("after Publish: count %d, sum %d", h.Count(), h.Sum)
	}
	r.Publish()
	if h := r.Snapshot(); h.Count() != 2 || h.Sum != 5100 {
		t.Errorf("after a second Publish: count %d, sum %d", h.Count(), h.Sum)
	}
}

// TestEveryBucket records the bounds of every bucket, each in a batch of its own.
func TestEveryBucket(t *testing.T) {
	var r Recorder
	var sum uint64
	for i := range NumBuckets {
		r.Record(LowerBound(i), 1)
		r.Record(UpperBound(i), 1)
		r.Publish()
		sum += uint64(LowerBound(i) + UpperBound(i))
		h := r.Snapshot()
		if h.Buckets[i] != 2 || h.Count() != uint64(2*i+2) || h.Sum != sum {
			t.Fatalf("bucket %d has %d of %d, sum %d, want %d", i, h.Buckets[i], h.Count(), h.Sum, sum)
		}
	}
}

func TestOutsideTheRange(t *testing.T) {
	const first, last = 0, NumBuckets - 1
	tests := []struct {
		ns   int64
		want int
	}{
		{1<<40 + 1, last}, {1 << 41, last}, {1 << 50, last}, {math.MaxInt64, last},
		{0, first}, {-1, first}, {-1000, first}, {-1 << 50, first}, {math.MinInt64 + 1, first},
	}
	var r Recorder
	var want [NumBuckets]uint64
	var sum int64
	for _, tt := range tests {
		r.Record(tt.ns, 1)
		r.Record(10000, 1)
		want[tt.want]++
		want[Index(10000)]++
		sum += tt.ns + 10000
		for range 2 { // the second finds nothing left to move
			r.Publish()
			h := r.Snapshot()
			if [NumBuckets]uint64(h.Buckets) != want || h.Sum != uint64(sum) {
				t.Fatalf("after %d: first %d, last %d, count %d, sum %d", tt.ns, h.Buckets[first], h.Buckets[last], h.Count(), h.Sum)
			}
		}
	}
}

func TestAgainstPlainCounting(t *testing.T) {
	random := seeded(t)
	var r Recorder
	var want [NumBuckets]uint64
	var sum uint64
	for range 1000 {
		batch := random.IntN(64)
		for range batch {
			ns := latency(random)
			if random.IntN(50) == 0 {
				ns = random.Int64() >> random.IntN(63)
			}
			r.Record(ns, 1)
			want[Index(ns)]++
			sum += uint64(ns)
		}
		r.Publish()
	}
	if h := r.Snapshot(); [NumBuckets]uint64(h.Buckets) != want || h.Sum != sum {
		t.Errorf("count %d, sum %d, want %d", h.Count(), h.Sum, sum)
	}
}

func TestAddToSumsRecorders(t *testing.T) {
	var a, b, unused Recorder
	a.Record(1000, 1)
	a.Publish()
	b.Record(1000, 1)
	b.Record(2000, 1)
	b.Publish()
	var h Histogram
	for _, r := range []*Recorder{&unused, &a, &b} {
		r.AddTo(&h)
	}
	if h.Count() != 3 || h.Sum != 4000 || h.Buckets[Index(1000)] != 2 || h.Buckets[Index(2000)] != 1 {
		t.Errorf("count %d, sum %d", h.Count(), h.Sum)
	}
}

// TestReadersBesideTheWriter is for the race detector, and shows that readers
// see counts that only grow and are never ahead of what was recorded.
func TestReadersBesideTheWriter(t *testing.T) {
	var r Recorder
	var recorded atomic.Uint64 // raised before Publish, so at least what is visible
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var before Histogram
			for !done.Load() {
				h := r.Snapshot()
				if count, atMost := h.Count(), recorded.Load(); count > atMost {
					t.Errorf("%d seen of %d recorded", count, atMost)
					return
				}
				for i, n := range before.Buckets {
					if h.Buckets[i] < n {
						t.Errorf("bucket %d went from %d to %d", i, n, h.Buckets[i])
						return
					}
				}
				before = h
			}
		})
	}
	random := seeded(t)
	const batches, batch = 5000, 32
	for range batches {
		for range batch {
			r.Record(latency(random), 1)
		}
		recorded.Add(batch)
		r.Publish()
	}
	done.Store(true)
	readers.Wait()
	if count := r.Snapshot().Count(); count != batches*batch {
		t.Errorf("%d seen after the last Publish, %d recorded", count, batches*batch)
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	r := new(Recorder)
	h := Histogram{Buckets: make([]uint64, NumBuckets)}
	ns := int64(-1)
	allocs := testing.AllocsPerRun(100, func() {
		r.Record(ns, 1)
		r.Publish()
		r.AddTo(&h)
		ns = ns*3 + 1000
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// BenchmarkRecord is the cost per value, its share of Publish included.
func BenchmarkRecord(b *testing.B) {
	random := seeded(b)
	spreads := map[string]func() int64{
		"narrow": func() int64 { return 10000 + random.Int64N(2000) },
		"wide":   func() int64 { return latency(random) },
	}
	for _, name := range []string{"narrow", "wide"} {
		values := make([]int64, 4096)
		for i := range values {
			values[i] = spreads[name]()
		}
		for _, batch := range []int{1, 4, 32} {
			b.Run(fmt.Sprintf("%s/batch=%d", name, batch), func(b *testing.B) {
				r := new(Recorder)
				b.ReportAllocs()
				at := 0
				for b.Loop() {
					for _, ns := range values[at : at+batch] {
						r.Record(ns, 1)
					}
					r.Publish()
					at = (at + batch) % len(values)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/value")
			})
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	r := new(Recorder)
	r.Record(10000, 1)
	r.Publish()
	b.ReportAllocs()
	for b.Loop() {
		r.Snapshot()
	}
}
