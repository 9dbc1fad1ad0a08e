// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

func labels(ticks plot.ConstantTicks) string {
	var all []string
	for _, t := range ticks {
		if t.Label != "" {
			all = append(all, t.Label)
		}
	}
	return strings.Join(all, " ")
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		values []float64
		log    bool
		places []float64
		want   string
	}{
		{[]float64{15000, 376000}, false, nil, "0 100k 200k 300k"},
		{[]float64{0, 100}, false, nil, "0 20 40 60 80 100"},
		{[]float64{0, 1}, false, nil, "0 0.2 0.4 0.6 0.8 1"},
		{[]float64{2e6, 7.1e6}, false, nil, "0 2M 4M 6M"},
		{[]float64{9000}, false, nil, "0 2k 4k 6k 8k"},
		{[]float64{0}, false, nil, "0 0.2 0.4 0.6 0.8 1"},
		{[]float64{-5, 5}, false, nil, "-4 -2 0 2 4"},
		{[]float64{9, 517}, true, nil, "10 20 50 100 200 500"},
		{[]float64{66, 2900}, true, nil, "100 200 500 1k 2k"},
		{[]float64{10, 1e6}, true, nil, "10 100 1k 10k 100k 1M"},
		{[]float64{300, 310}, true, nil, "260 280 300 320 340 360"},
		{[]float64{1, 128}, true, []float64{1, 2, 4, 8, 16, 32, 64, 128}, "1 2 4 8 16 32 64 128"},
		{[]float64{1, 32}, true, []float64{1, 4, 16, 64}, "1 4 16"},
		{[]float64{4, 65536}, true, []float64{4, 1024, 65536}, "4 1024 65.536k"},
	} {
		a := newAxis(test.values, test.log, test.places)
		if got := labels(a.ticks); got != test.want {
			t.Errorf("%v, log %v: %q, not %q", test.values, test.log, got, test.want)
		}
	}
}

// Whatever is measured has between two and twelve numbers beside it, no two of them
// the same, all on the axis, and room for every value.
func TestTicksOfAnything(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20000 {
		low := math.Pow(10, r.Float64()*12-3)
		high, log := low*math.Pow(10, r.Float64()*r.Float64()*11), r.IntN(2) == 0
		a := newAxis([]float64{high, low}, log, nil)
		seen := make(map[string]bool)
		for _, tick := range a.ticks {
			if tick.Value < a.min || tick.Value > a.max {
				t.Fatalf("seed %d: tick %v is outside of %v", seed, tick.Value, a)
			}
			if tick.Label != "" && seen[tick.Label] {
				t.Fatalf("seed %d: %g to %g has %q twice", seed, low, high, tick.Label)
			}
			if tick.Label != "" {
				seen[tick.Label] = true
			}
		}
		if len(seen) < 2 || len(seen) > 14 {
			t.Fatalf("seed %d: %g to %g, log %v, has the numbers %q", seed, low, high, log, labels(a.ticks))
		}
		if a.min > low || a.max < high {
			t.Fatalf("seed %d: %g to %g does not fit into %g to %g", seed, low, high, a.min, a.max)
		}
	}
}
