// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"errors"
	"strings"
	"testing"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// TestLabNoPollQueues opens a drive whose driver was loaded without poll queues:
// Linux 6.1 would complete polled I/O there by interrupt, in silence.
func TestLabNoPollQueues(t *testing.T) {
	path := labDevices(t, blockdev.DriverNVMe, 1)[0]
	disk, err := poller.Open(path, poller.OpenOptions{})
	if err == nil {
		_ = disk.Close()
		t.Fatalf("%s has no poll queues and was opened as pollable", path)
	}
	t.Log(err)
	if !errors.Is(err, poller.ErrNotPollable) {
		t.Errorf("error %v is not %v", err, poller.ErrNotPollable)
	}
	for what, word := range map[string]string{"the drive": path, "the reason": "without poll queues", "the cure": "nvme.poll_queues="} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %s (%q): %v", what, word, err)
		}
	}

	disk = openDisk(t, path, poller.PollIfPossible)
	if err := disk.Limits().NotPollable; !errors.Is(err, poller.ErrNotPollable) || !strings.Contains(err.Error(), path) {
		t.Errorf("Limits().NotPollable is %v", err)
	}
	q := newQueue(t, disk, poller.QueueConfig{Depth: 1, MaxTransfer: 4 * kib})
	if err := q.Limits().NotPollable; !errors.Is(err, poller.ErrNotPollable) {
		t.Errorf("Limits().NotPollable of the queue is %v", err)
	}
	const count = 200
	n := interrupts(t, func() {
		for range count {
			mustDo(t, q, false, readRequests(q, 1, 4*kib, poller.HiPri)...)
		}
	})
	if ratio := float64(n) / count; ratio < 0.9 || ratio > 1.1 {
		t.Errorf("%d interrupts for %d reads at depth 1, want one each", n, count)
	}
	s := disk.Stats()
	if got := s.Fallbacks[poller.FallbackNotPollable]; got != count {
		t.Errorf("%d HiPri reads counted as sent plain, want %d", got, count)
	}
	if plain, polled := s.IO[poller.Read][poller.Plain].Latency.Count(), s.IO[poller.Read][poller.Polled].Latency.Count(); plain != count || polled != 0 {
		t.Errorf("%d plain and %d polled reads counted, want %d and none", plain, polled, count)
	}
}
