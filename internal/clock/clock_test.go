// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"math/bits"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestRate compares both sources with the kernel's clock over a while. Only the
// ratio matters, and a late wake-up is late for both.
func TestRate(t *testing.T) {
	Start()
	for _, counting := range []bool{false, true} {
		if counting && counter == "" {
			continue
		}
		if counting && perCycle == 0 {
			// The kernel does not trust the counter here, so Start left it
			// alone. Its arithmetic is the same, and one CPU's counter is good
			// enough for a test that tolerates a percent.
			elapsed, ticks := uint64(time.Since(base)), cycles()-zero
			perCycle, _ = bits.Div64(elapsed>>32, elapsed<<32, ticks)
			defer func() { perCycle = 0 }()
		}
		before, wall := Now(), time.Now()
		time.Sleep(50 * time.Millisecond)
		got, want := Now()-before, time.Since(wall)
		if ratio := float64(got) / float64(want); ratio < 0.99 || ratio > 1.01 {
			t.Errorf("%s: %d ns in %v, ratio %.4f", Source(), got, want, ratio)
		}
	}
}

func TestTrusted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "current_clocksource")
	for content, want := range map[string]bool{
		counter + "\n": counter != "",
		"hpet\n":       false,
		"":             false,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := trusted(path); got != want {
			t.Errorf("trusted with %q: %v, want %v", content, got, want)
		}
	}
	if trusted(filepath.Join(t.TempDir(), "missing")) {
		t.Error("trusted without a clock source")
	}
}

func BenchmarkNow(b *testing.B) {
	Start()
	b.ReportMetric(0, Source())
	for b.Loop() {
		Now()
	}
}
