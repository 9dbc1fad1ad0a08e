// SPDX-License-Identifier: Apache-2.0

package hist

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// record makes a histogram of values.
func record(values ...int64) Histogram {
	var r Recorder
	for _, ns := range values {
		r.Record(ns, 1)
	}
	r.Publish()
	return r.Snapshot()
}

func randomLatencies(random *rand.Rand, n int) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = latency(random)
	}
	return values
}

func TestEmptyHistogram(t *testing.T) {
	var h Histogram
	if h.Count() != 0 || h.Sum != 0 || h.Mean() != 0 || h.StdDev() != 0 || h.Percentile(99) != 0 ||
		h.Min() != 0 || h.Max() != 0 || h.CumulativeLE(1<<20) != 0 || h.CumulativeLE(math.MaxInt64) != 0 {
		t.Errorf("an empty histogram has values")
	}
	if both := h.Add(h); both.Count() != 0 {
		t.Errorf("two empty histograms have %d values", both.Count())
	}
	one := record(1000)
	for _, got := range []Histogram{h.Add(one), one.Add(h), one.Sub(h)} {
		if got.Count() != 1 || got.Sum != 1000 {
			t.Errorf("with an empty histogram: count %d, sum %d", got.Count(), got.Sum)
		}
	}
}

// TestPercentileGolden has cases worked out by hand. Values up to 32 ns have a
// bucket each, so its middle is the value.
func TestPercentileGolden(t *testing.T) {
	ten := record(2, 4, 6, 8, 10, 12, 14, 16, 18, 20)
	tests := []struct {
		p    float64
		want time.Duration
	}{
		{-1, 2}, {0, 2}, {0.1, 2}, {10, 2}, {10.1, 4}, {50, 10}, {50.1, 12},
		{89, 18}, {90, 18}, {91, 20}, {99.99, 20}, {100, 20}, {101, 20},
	}
	for _, tt := range tests {
		if got := ten.Percentile(tt.p); got != tt.want {
			t.Errorf("p%v is %d, want %d", tt.p, got, tt.want)
		}
	}
	// 999 of 1,000 values are exactly 99.9 percent.
	var r Recorder
	for range 999 {
		r.Record(5, 1)
	}
	r.Record(30, 1)
	r.Publish()
	if got := r.Snapshot().Percentile(99.9); got != 5 {
		t.Errorf("p99.9 is %d, want 5", got)
	}
	if got := record(9985).Percentile(50); got != 9984 { // from 9729 to 10240
		t.Errorf("the middle of 9729 to 10240 is %d", got)
	}
}

// TestPercentileOfRandom compares with the values themselves, sorted: the
// percentile must be from the same bucket.
func TestPercentileOfRandom(t *testing.T) {
	random := seeded(t)
	for _, n := range []int{1, 2, 3, 10, 1000, 20000} {
		values := randomLatencies(random, n)
		h := record(values...)
		slices.Sort(values)
		for _, p := range []float64{0.1, 1, 5, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100} {
			rank := max(int(math.Ceil(p*float64(n)/100)), 1)
			exact := values[rank-1]
			if got := h.Percentile(p); Index(int64(got)) != Index(exact) {
				t.Errorf("%d values: p%v is %d, want the bucket of %d", n, p, got, exact)
			}
		}
		if h.Min() > time.Duration(values[0]) || Index(int64(h.Min())) != Index(values[0]) {
			t.Errorf("%d values: minimum is %d, want %d", n, h.Min(), values[0])
		}
		if h.Max() < time.Duration(values[n-1]) || Index(int64(h.Max())) != Index(values[n-1]) {
			t.Errorf("%d values: maximum is %d, want %d", n, h.Max(), values[n-1])
		}
	}
}

func TestCumulativeLEIsExactAtPowersOfTwo(t *testing.T) {
	random := seeded(t)
	values := append(randomLatencies(random, 5000), 0, 1, 2, 3, 1023, 1024, 1025, 1<<39, 1<<39+1, 1<<40, 1<<40+1)
	for range 1000 {
		values = append(values, 1<<random.IntN(41), random.Int64()>>random.IntN(63))
	}
	h := record(values...)
	atMost := func(ns int64) uint64 {
		var count uint64
		for _, v := range values {
			if v <= ns {
				count++
			}
		}
		return count
	}
	for power := range 40 {
		if got, want := h.CumulativeLE(1<<power), atMost(1<<power); got != want {
			t.Errorf("at most 2^%d: %d, want %d", power, got, want)
		}
	}
	for i := range NumBuckets - 1 {
		upper := UpperBound(i)
		if got, want := h.CumulativeLE(upper), atMost(upper); got != want {
			t.Errorf("at most %d: %d, want %d", upper, got, want)
		}
		if got, least := h.CumulativeLE(upper+1), h.CumulativeLE(upper); got < least {
			t.Errorf("at most %d: %d, fewer than at most %d", upper+1, got, upper)
		}
	}
	for _, ns := range []int64{1 << 40, 1 << 41, math.MaxInt64} {
		if got := h.CumulativeLE(ns); got != h.Count() {
			t.Errorf("at most %d: %d of %d", ns, got, h.Count())
		}
	}
	for _, ns := range []int64{math.MinInt64, -1, 0} {
		if got := h.CumulativeLE(ns); got != 0 {
			t.Errorf("at most %d: %d", ns, got)
		}
	}
}

func TestMeanAndStdDev(t *testing.T) {
	if got := record(1000, 2000, 6000).Mean(); got != 3000 {
		t.Errorf("mean is %d", got)
	}
	if got := record(5).StdDev(); got != 0 {
		t.Errorf("standard deviation of one value is %d", got)
	}
	if got := record(2, 32).StdDev(); got != 21 { // sqrt(2 * 15^2), in whole ns
		t.Errorf("standard deviation of 2 and 32 is %d", got)
	}

	random := seeded(t)
	values := randomLatencies(random, 20000)
	var mean, squares float64
	for _, v := range values {
		mean += float64(v) / float64(len(values))
	}
	for _, v := range values {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	h := record(values...)
	if got := float64(h.Mean()); math.Abs(got-mean) > 1 {
		t.Errorf("mean is %v, want %v", got, mean)
	}
	stdDev := math.Sqrt(squares / float64(len(values)-1))
	if got := float64(h.StdDev()); math.Abs(got-stdDev) > stdDev/16 {
		t.Errorf("standard deviation is %v, want %v", got, stdDev)
	}
}

func TestAddAndSub(t *testing.T) {
	random := seeded(t)
	first, second := randomLatencies(random, 1000), randomLatencies(random, 700)
	var r Recorder
	for _, ns := range first {
		r.Record(ns, 1)
	}
	r.Publish()
	before := r.Snapshot()
	for _, ns := range second {
		r.Record(ns, 1)
	}
	r.Publish()
	after := r.Snapshot()
	keptBefore, keptAfter := slices.Clone(before.Buckets), slices.Clone(after.Buckets)

	between, want := after.Sub(before), record(second...)
	if !slices.Equal(between.Buckets, want.Buckets) || between.Sum != want.Sum {
		t.Errorf("the difference has count %d, sum %d, want %d, %d", between.Count(), between.Sum, want.Count(), want.Sum)
	}
	if both := before.Add(between); !slices.Equal(both.Buckets, after.Buckets) || both.Sum != after.Sum {
		t.Errorf("the sum has count %d, sum %d, want %d, %d", both.Count(), both.Sum, after.Count(), after.Sum)
	}
	if nothing := after.Sub(after); nothing.Count() != 0 || nothing.Sum != 0 || nothing.Percentile(50) != 0 {
		t.Errorf("a histogram less itself has count %d, sum %d", nothing.Count(), nothing.Sum)
	}
	if !slices.Equal(before.Buckets, keptBefore) || !slices.Equal(after.Buckets, keptAfter) {
		t.Errorf("an operand was changed")
	}
}

func TestSubAcrossTheWrapOfSum(t *testing.T) {
	old := Histogram{Sum: math.MaxUint64 - 99}
	now := Histogram{Buckets: record(250).Buckets, Sum: 150}
	if got := now.Sub(old); got.Sum != 250 || got.Mean() != 250 {
		t.Errorf("sum is %d, mean %d", got.Sum, got.Mean())
	}
}

// The snapshots of two recorders have no difference that means anything, but one
// of them may be empty where the other is not, and that must not be an accident.
func TestSubOfAnotherRecorder(t *testing.T) {
	var recorder Recorder
	recorder.Record(100, 3)
	recorder.Publish()
	old := recorder.Snapshot()
	difference := Histogram{}.Sub(old)
	if n := difference.Count(); n != 0 {
		t.Errorf("an empty histogram has %d values since another", n)
	}
	if n := old.Sub(Histogram{}).Count(); n != 3 {
		t.Errorf("%d values since an empty histogram, want 3", n)
	}
	if n := old.Count(); n != 3 {
		t.Errorf("the old histogram was changed: %d values", n)
	}
}
