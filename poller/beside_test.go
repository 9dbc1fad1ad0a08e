// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"errors"
	"sync"
	"testing"

	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// NewQueue beside Close, from two goroutines: one of them fails. A queue on a
// disk that is closed would do its I/O on whatever has the descriptor next.
func TestNewQueueBesideClose(t *testing.T) {
	path := devtest.TempFile(t, 64<<10)
	arena := newArena(t, 4096)
	// The later Close comes the more often it loses: it is kept at the edge, where
	// both are at work.
	delay := 0
	for round := range 300 {
		d := devtest.OpenDiskWith(t, path, poller.OpenOptions{Polling: poller.PollNever})
		poller.SetCaps(d, 4096, 2048)
		var start, end sync.WaitGroup
		start.Add(1)
		var q poller.Queue
		var queueErr, closeErr error
		end.Go(func() {
			start.Wait()
			q, queueErr = d.NewQueue(poller.QueueConfig{Depth: 2048, MaxTransfer: 4096, Arena: arena})
		})
		end.Go(func() {
			start.Wait()
			for range delay {
				d.Limits()
			}
			closeErr = d.Close()
		})
		start.Done()
		end.Wait()
		if queueErr == nil {
			delay = max(0, delay-delay/8-1)
		} else {
			delay += delay/8 + 1
		}
		if errors.Is(queueErr, poller.ErrNotAllowed) {
			t.Skip(queueErr)
		}
		switch {
		case queueErr == nil && closeErr == nil:
			t.Fatalf("round %d: a queue on a disk that is closed", round)
		case queueErr != nil && !errors.Is(queueErr, poller.ErrClosed):
			t.Fatalf("round %d: NewQueue: %v", round, queueErr)
		case closeErr != nil && !errors.Is(closeErr, poller.ErrQueuesOpen):
			t.Fatalf("round %d: Close: %v", round, closeErr)
		case queueErr != nil && closeErr != nil:
			t.Fatalf("round %d: both fail: %v; %v", round, queueErr, closeErr)
		case queueErr == nil:
			if err := errors.Join(q.Close(), d.Close()); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
}
