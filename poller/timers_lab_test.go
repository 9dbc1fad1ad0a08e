// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// TestLabTimersBesidePollers runs one spinning poller per CPU and a goroutine
// that sleeps for a millisecond beside them. Pollers that do not yield make it
// late by whole scheduler periods: those of Go are 10 ms. One kind of drive is
// found busy by nearly every poll, the other by none.
func TestLabTimersBesidePollers(t *testing.T) {
	for _, driver := range []blockdev.Driver{blockdev.DriverNVMe, blockdev.DriverNull} {
		t.Run(string(driver), func(t *testing.T) { testTimers(t, labDevices(t, driver, 2)) })
	}
}

func testTimers(t *testing.T, paths []string) {
	const (
		rounds = 7
		turn   = 200 * time.Millisecond
		latest = 5 * time.Millisecond
	)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(len(paths)))
	var disks []*poller.Disk
	var queues []poller.Queue
	for _, path := range paths {
		disk := openDisk(t, path, poller.PollRequired)
		disks = append(disks, disk)
		queues = append(queues, newQueue(t, disk, poller.QueueConfig{Depth: 1, MaxTransfer: 4 * kib}))
	}
	besidePollers := func() []time.Duration {
		return timers(turn, len(queues), func(i int, stop *atomic.Bool) {
			r := readRequests(queues[i], 1, 4*kib, poller.HiPri)
			for !stop.Load() {
				if _, err := load(queues[i], r, turn/10); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	// A busy host takes the CPUs away for longer than that, and QEMU holds them up
	// while it works for the drives. Neither is ours to answer for: the measure is
	// the same I/O with a yield after every single poll.
	besideYielders := func() []time.Duration {
		return timers(turn, len(queues), func(i int, stop *atomic.Bool) {
			r := readRequests(queues[i], 1, 4*kib, poller.HiPri)
			done := make([]*poller.Request, 1)
			for out := 0; out > 0 || !stop.Load(); runtime.Gosched() {
				if out == 0 {
					if _, err := queues[i].Submit(r); err != nil {
						t.Error(err)
						return
					}
					out = 1
				}
				n, err := queues[i].Poll(done)
				if err != nil {
					t.Error(err)
					return
				}
				out -= n
			}
		})
	}
	// Still it may hit one side harder; not three times, and pollers that do not
	// yield are late every time.
	for attempt := 1; ; attempt++ {
		var ours, host []time.Duration
		for range rounds {
			ours = append(ours, besidePollers()...)
			host = append(host, besideYielders()...)
		}
		slices.Sort(ours)
		slices.Sort(host)
		p50, p99, hostP99 := ours[len(ours)/2], ours[len(ours)*99/100], host[len(host)*99/100]
		t.Logf("timers of 1 ms are late by %v at the median, %v at p99; beside pollers that yield after every poll by %v at p99", p50, p99, hostP99)
		if p50 <= latest && p99 <= max(latest, 2*hostP99) {
			break
		}
		if attempt == 3 {
			t.Errorf("timers are late by %v at the median, %v at p99, want at most %v", p50, p99, latest)
			break
		}
	}
	for _, disk := range disks {
		s := disk.Stats()
		t.Logf("%s: %d polls, %d of them empty", s.Name, s.Polls, s.EmptyPolls)
	}
}

// timers returns by how much timers of 1 ms were late beside n goroutines that
// run busy, until stop says that it is over.
func timers(d time.Duration, n int, busy func(i int, stop *atomic.Bool)) (late []time.Duration) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { busy(i, &stop) })
	}
	for began := time.Now(); time.Since(began) < d; {
		start := time.Now()
		time.Sleep(time.Millisecond)
		late = append(late, time.Since(start)-time.Millisecond)
	}
	stop.Store(true)
	wg.Wait()
	return late
}
