// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"testing"
	"time"

	"pollux/poller"
)

// Samples are of whole intervals within what is measured, and add up to about what
// was done.
func TestSamples(t *testing.T) {
	result, err := Run(t.Context(), newFake(1<<20), Job{RateIOPS: 200, RampTime: 300 * time.Millisecond, Runtime: 1900 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s := result.Samples[poller.Read]
	if n := len(s.IOPS); n < 1 || n > 3 || len(s.BytesPerSecond) != n {
		t.Fatalf("%d samples", n)
	}
	f := result.Fio().Read
	if f.IOPSMean < 100 || f.IOPSMean > 300 || f.IOPSMin > f.IOPSMax || float64(f.IOPSMin) > float64(f.IOPSMean) {
		t.Errorf("of 200 I/Os a second: %+v", f)
	}
	// The two are counted one after the other, so one may know of an I/O more.
	if want := float64(f.IOPSMean) * 4; math.Abs(float64(f.BWMean)-want) > want/20 {
		t.Errorf("bw %v KiB/s, want %v", f.BWMean, want)
	}
	if len(result.Samples[poller.Write].IOPS) != len(s.IOPS) || result.Fio().Write.IOPSMax != 0 {
		t.Error("writes of a job that reads")
	}
}

func TestSpread(t *testing.T) {
	got := spreadOf([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	if got.min != 2 || got.max != 9 || got.mean != 5 || math.Abs(got.stddev-math.Sqrt(32.0/7)) > 1e-12 {
		t.Errorf("%+v", got)
	}
	if got := spreadOf([]float64{3}); got != (spread{3, 3, 3, 0}) {
		t.Errorf("%+v", got)
	}
	if got := spreadOf(nil); got != (spread{}) {
		t.Errorf("%+v", got)
	}
}
