// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// What recording costs is the difference to a build without it (tag nostats), whose test
// binary is this one otherwise. It is run for one round after the other.

// withoutRecording returns that binary: POLLUX_NOSTATS names it, or it is built.
func withoutRecording(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("POLLUX_NOSTATS"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "nostats.test")
	if out, err := exec.Command("go", "test", "-c", "-tags", "nostats", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

var figureLine = regexp.MustCompile(`figure: ([0-9.]+)`)

// figureOf runs a test of a binary and returns the figure that it logs.
func figureOf(t *testing.T, binary, test string) float64 {
	t.Helper()
	out, err := exec.Command(binary, "-test.run", "^"+test+"$", "-test.v", "-test.timeout", "0").CombinedOutput()
	m := figureLine.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%s %s: %v: %s", binary, test, err, out)
	}
	f, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLabCountingRecording holds it to 3 % of the instructions of an I/O at depth 32.
func TestLabCountingRecording(t *testing.T) {
	labDevices(t, blockdev.DriverNull, 2)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	without := withoutRecording(t)
	var with, bare []float64
	for range 3 {
		with = append(with, figureOf(t, self, "TestLabCountingReads"))
		bare = append(bare, figureOf(t, without, "TestLabCountingReads"))
	}
	ratio := median(with) / median(bare)
	t.Logf("depth 32: %.0f instructions with recording, %.0f without, ratio %.3f", median(with), median(bare), ratio)
	if ratio > 1.03 {
		t.Errorf("recording takes %.3f times the instructions, want 1.03 at most", ratio)
	}
}

// TestLabCountingReads is one side of it, of whichever build it is in.
func TestLabCountingReads(t *testing.T) {
	null := labDevices(t, blockdev.DriverNull, 2)
	v := stripeOver(t, 64*kib, openDisk(t, null[0], poller.PollRequired), openDisk(t, null[1], poller.PollRequired))
	closing(t, v)
	q := newQueue(t, v, poller.QueueConfig{Depth: 32, MaxTransfer: 4 * kib})
	var rates []float64
	for range 3 {
		rate, err := queueReads(q, 32, 100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		rates = append(rates, rate)
	}
	t.Logf("figure: %.1f", 1e9/median(rates))
	if name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test"); name == "nostats" {
		if s := v.Stats(); s.Polls != 0 {
			t.Error("a build without recording counts")
		}
	}
}
