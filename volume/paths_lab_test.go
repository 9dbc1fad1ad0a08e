// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/multipath"
	"pollux/poller"
)

// joinPaths makes one device of paths; whoever has it closes it.
func joinPaths(t *testing.T, opts multipath.Options, paths ...poller.Device) *multipath.Multipath {
	t.Helper()
	m, err := multipath.New(paths, opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLabCountingPaths compares a volume over two drives with two paths each with one
// over four drives: the same devices, and one layer more.
func TestLabCountingPaths(t *testing.T) {
	null := labDevices(t, blockdev.DriverNull, 4)
	disk := func(i int) poller.Device { return openDisk(t, null[i], poller.PollRequired) }
	plain := stripeOver(t, 64*kib, disk(0), disk(1), disk(2), disk(3))
	closing(t, plain)
	paths := stripeOver(t, 64*kib,
		joinPaths(t, multipath.Options{}, disk(0), disk(1)), joinPaths(t, multipath.Options{}, disk(2), disk(3)))
	closing(t, paths)
	for _, depth := range []int{1, 32} {
		const rounds, turn = 5, 100 * time.Millisecond
		var without, with []float64
		for range rounds {
			for _, side := range []struct {
				dev   poller.Device
				rates *[]float64
			}{{plain, &without}, {paths, &with}} {
				q, err := side.dev.NewQueue(poller.QueueConfig{Depth: depth, MaxTransfer: 4 * kib})
				if err != nil {
					t.Fatal(err)
				}
				rate, err := queueReads(q, depth, turn)
				if err != nil {
					t.Fatal(err)
				}
				if err := q.Close(); err != nil {
					t.Fatal(err)
				}
				*side.rates = append(*side.rates, rate)
			}
		}
		ratio := median(without) / median(with)
		t.Logf("depth %d: %.0f instructions over four drives, %.0f over two with two paths each, ratio %.3f",
			depth, 1e9/median(without), 1e9/median(with), ratio)
		if ratio > mostForPaths {
			t.Errorf("depth %d: paths cost %.3f times what drives do, want %.2f at most", depth, ratio, mostForPaths)
		}
	}
}

// mostForPaths is the most that the instructions of an I/O may grow by paths.
const mostForPaths = 1.05
