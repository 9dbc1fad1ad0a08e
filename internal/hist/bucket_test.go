// SPDX-License-Identifier: Apache-2.0

package hist

import (
	"math"
	"testing"
	"time"
)

func TestNumBuckets(t *testing.T) {
	if NumBuckets != 592 {
		t.Errorf("NumBuckets is %d", NumBuckets)
	}
	if last := Index(maxUpperBound); last != NumBuckets-1 {
		t.Errorf("2^40 is in bucket %d", last)
	}
	if i := unclampedIndex(0); i < firstNegative || i >= slots {
		t.Errorf("0 has slot %d, want one from %d to %d", i, firstNegative, slots-1)
	}
	if i := unclampedIndex(math.MinInt64 + 1); i != firstNegative {
		t.Errorf("the most negative value has slot %d, want %d", i, firstNegative)
	}
	if i := unclampedIndex(math.MaxInt64); i != firstNegative-1 {
		t.Errorf("the largest value has slot %d, want %d", i, firstNegative-1)
	}
}

func TestIndexGolden(t *testing.T) {
	tests := []struct {
		ns   int64
		want int
	}{
		{math.MinInt64, 0}, {-1, 0}, {0, 0}, {1, 0},
		{2, 1}, {16, 15}, {17, 16}, {32, 31}, // one nanosecond each
		{33, 32}, {34, 32}, {35, 33}, {64, 47}, // two
		{65, 48}, {68, 48}, {69, 49}, {128, 63}, // four
		{1000, 111}, {1024, 111}, {1025, 112},
		{1 << 40, 591}, {1<<40 - 1, 591}, {1<<40 - 1<<35 + 1, 591}, {1<<40 - 1<<35, 590},
		{1<<40 + 1, 591}, {math.MaxInt64, 591}, // clamped
	}
	for _, tt := range tests {
		if got := Index(tt.ns); got != tt.want {
			t.Errorf("Index(%d) is %d, want %d", tt.ns, got, tt.want)
		}
	}
}

// TestBounds: the buckets follow each other without gap or overlap, and both
// bounds of each lie in it.
func TestBounds(t *testing.T) {
	if LowerBound(0) != 0 {
		t.Errorf("the first bucket begins at %d", LowerBound(0))
	}
	for i := range NumBuckets {
		lower, upper := LowerBound(i), UpperBound(i)
		if lower > upper {
			t.Fatalf("bucket %d is from %d to %d", i, lower, upper)
		}
		if Index(lower) != i || Index(upper) != i {
			t.Fatalf("bucket %d is from %d to %d, which are in %d and %d", i, lower, upper, Index(lower), Index(upper))
		}
		if i > 0 && lower != UpperBound(i-1)+1 {
			t.Fatalf("bucket %d begins at %d, the one before ends at %d", i, lower, UpperBound(i-1))
		}
	}
	if got := UpperBound(NumBuckets - 1); got != 1<<40 {
		t.Errorf("the last bucket ends at %d", got)
	}
}

func TestPowersOfTwoAreUpperBounds(t *testing.T) {
	for power := range 41 {
		ns := int64(1) << power
		if got := UpperBound(Index(ns)); got != ns {
			t.Errorf("2^%d is in the bucket that ends at %d", power, got)
		}
	}
}

func TestIndexIsMonotonic(t *testing.T) {
	before := Index(0)
	for ns := int64(1); ns < 1<<41; ns += 1 + ns/1000 {
		i := Index(ns)
		if i < before || i > before+1 {
			t.Fatalf("Index(%d) is %d after %d", ns, i, before)
		}
		before = i
	}
}

func TestResolution(t *testing.T) {
	from, to := Index(int64(time.Microsecond)), Index(int64(100*time.Millisecond))
	for i := from; i <= to; i++ {
		width := UpperBound(i) - LowerBound(i) + 1
		if ratio := float64(width) / float64(LowerBound(i)); ratio > 0.0625 {
			t.Errorf("bucket %d, from %d ns, is %.2f %% wide", i, LowerBound(i), 100*ratio)
		}
	}
}

func FuzzIndex(f *testing.F) {
	for _, ns := range []int64{math.MinInt64, -1, 0, 1, 2, 1023, 1024, 1025, 1 << 40, 1<<40 + 1, math.MaxInt64} {
		f.Add(ns)
	}
	f.Fuzz(func(t *testing.T, ns int64) {
		i := Index(ns)
		within := min(max(ns, 0), maxUpperBound)
		if within < LowerBound(i) || within > UpperBound(i) {
			t.Errorf("Index(%d) is %d, from %d to %d", ns, i, LowerBound(i), UpperBound(i))
		}
		if ns == math.MinInt64 {
			return // the one value from which 1 cannot be subtracted; no clock is that wrong
		}
		var r Recorder
		r.Record(ns, 1)
		r.Publish()
		if h := r.Snapshot(); h.Buckets[i] != 1 || h.Count() != 1 {
			t.Errorf("%d was not recorded in bucket %d alone", ns, i)
		}
	})
}
