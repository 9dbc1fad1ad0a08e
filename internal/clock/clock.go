// SPDX-License-Identifier: Apache-2.0

// Package clock reads the time for latencies. A reading of time.Since costs
// about 150 instructions under Go (it changes stacks to call the vDSO), two of
// them a fifth of what a polled I/O at depth 1 costs above the kernel. Where
// Linux itself keeps time by the CPU's counter, and so has found it constant and
// the same on all CPUs, this package reads that counter: about 15 instructions.
// Elsewhere it is time.Since.
package clock

import (
	"bytes"
	"math/bits"
	"os"
	"sync"
	"time"
)

var (
	base = time.Now()
	zero = cycles()
	// perCycle is nanoseconds per cycle times 2^32, 0 while the counter is not
	// used. It is set once, by Start.
	perCycle uint64
	start    sync.Once
)

// calibration is how long the counter is compared with the kernel's clock. Two
// readings of that are off by less than 100 ns, which makes the rate right to
// 20 parts per million.
const calibration = 5 * time.Millisecond

// Start decides where Now reads the time, at the first call; it may take 5 ms.
// It must be called before Now, and may be called again by any goroutine.
func Start() {
	start.Do(func() {
		if !trusted("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
			return
		}
		base, zero = time.Now(), cycles()
		time.Sleep(calibration)
		elapsed, ticks := uint64(time.Since(base)), cycles()-zero
		if ticks < elapsed/1000 { // below 1 MHz: no counter for latencies
			return
		}
		perCycle, _ = bits.Div64(elapsed>>32, elapsed<<32, ticks)
	})
}

// trusted says whether the kernel keeps time by the counter that cycles reads.
func trusted(path string) bool {
	name, err := os.ReadFile(path)
	return err == nil && counter != "" && string(bytes.TrimSpace(name)) == counter
}

// Now returns nanoseconds since a moment that is the same for the whole process.
// Differences are right to 20 parts per million.
func Now() int64 {
	if perCycle == 0 {
		return int64(time.Since(base))
	}
	hi, lo := bits.Mul64(cycles()-zero, perCycle)
	return int64(hi<<32 | lo>>32)
}

// Source names what Now reads, for reports.
func Source() string {
	if perCycle == 0 {
		return "time.Since"
	}
	return counter
}
