// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// axis is the range of one axis and its ticks.
type axis struct {
	min, max float64
	log      bool
	ticks    plot.ConstantTicks
}

// newAxis makes an axis that has room for all values, of which there is at least one.
// Places are the ticks wanted, nil for round ones.
func newAxis(values []float64, log bool, places []float64) axis {
	a := axis{min: slices.Min(values), max: slices.Max(values), log: log}
	switch {
	case log:
		a.min, a.max = a.min/1.2, a.max*1.2
	default:
		if a.min >= 0 {
			a.min = 0
		}
		if a.min == a.max {
			a.max = a.min + 1
		}
		room := (a.max - a.min) * .04
		a.max += room
		if a.min < 0 {
			a.min -= room
		}
	}
	for _, v := range places {
		if v >= a.min && v <= a.max {
			a.ticks = append(a.ticks, plot.Tick{Value: v, Label: plain(v)})
		}
	}
	if a.ticks == nil && log {
		a.ticks = logTicks(a.min, a.max)
	}
	if a.ticks == nil {
		a.ticks = linearTicks(a.min, a.max)
	}
	return a
}

// scale is the axis's for gonum.
func (a axis) scale() plot.Normalizer {
	if a.log {
		return plot.LogScale{}
	}
	return plot.LinearScale{}
}

// linearTicks returns four to eight multiples of 1, 2, 2.5 or 5 times a power of ten.
func linearTicks(low, high float64) plot.ConstantTicks {
	raw := (high - low) / 7
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, m := range []float64{1, 2, 2.5, 5} {
		if raw <= m*power {
			step = m * power
			break
		}
	}
	var ticks plot.ConstantTicks
	// By number, as adding a small step to a large value may not move it.
	first := math.Ceil(low / step)
	for i := range 12 {
		v := (first + float64(i)) * step
		if v > high {
			break
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: short(v)})
	}
	return ticks
}

// logTicks returns numbered ticks at 1, 2 and 5 of each power of ten, or at fewer
// places where that would be a crowd, and small ones between.
func logTicks(low, high float64) plot.ConstantTicks {
	decades := math.Log10(high / low)
	if decades < .8 {
		ticks := linearTicks(low, high)
		return slices.DeleteFunc(ticks, func(t plot.Tick) bool { return t.Value < low })
	}
	labelled := func(m int) bool { return m == 1 || decades < 3.5 && (m == 2 || m == 5) }
	every := 1 + int(decades)/10
	var ticks plot.ConstantTicks
	for e := int(math.Floor(math.Log10(low))); e <= int(math.Ceil(math.Log10(high))); e++ {
		for m := 1; m < 10; m++ {
			v := float64(m) * math.Pow(10, float64(e))
			switch {
			case v < low || v > high:
			case labelled(m) && e%every == 0:
				ticks = append(ticks, plot.Tick{Value: v, Label: short(v)})
			case every == 1 || m == 1:
				ticks = append(ticks, plot.Tick{Value: v})
			}
		}
	}
	return ticks
}

// plain writes a number without a suffix as long as it is easily read so.
func plain(v float64) string {
	if math.Abs(v) < 10000 {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return short(v)
}

// short writes a number with the suffixes k, M and G for its thousands.
func short(v float64) string {
	for _, unit := range []struct {
		value  float64
		suffix string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		// Ticks are sums of fractions: 999.9999999 is 1000.
		if a := math.Abs(v); a >= unit.value*(1-1e-9) && a < 1e13 {
			return strconv.FormatFloat(v/unit.value, 'g', 6, 64) + unit.suffix
		}
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
