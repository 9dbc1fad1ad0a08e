// SPDX-License-Identifier: Apache-2.0

//go:build linux && invariants

package poller_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// While one goroutine waits, every call of another says that it is one too
// many, and disturbs nothing.
func TestConcurrentUse(t *testing.T) {
	for _, kind := range heldKinds {
		t.Run(kind.name, func(t *testing.T) {
			gate := new(faultdev.Gate)
			dev := kind.make(t, gate)
			devtest.Close(t, dev)
			r := devtest.Open(t, dev, poller.QueueConfig{MaxTransfer: kindChunk})
			t.Cleanup(gate.Release)
			stopped, free := held(r, kind.name)
			r.Submit(stopped)
			done := make([]*poller.Request, 2)
			var n int
			var err error
			var wg sync.WaitGroup
			wg.Go(func() {
				// It may be the one that is too many, as long as the other polls.
				for err = poller.ErrConcurrent; errors.Is(err, poller.ErrConcurrent); {
					n, err = r.Queue.Wait(1, done, -1)
				}
			})

			// Until the other one is inside, a Poll is just a Poll: the request
			// is held, so it finds nothing.
			inside := false
			for start := time.Now(); !inside && time.Since(start) < devtest.Patience; {
				got, err := r.Queue.Poll(make([]*poller.Request, 1))
				if got != 0 {
					t.Fatal("the held request came back")
				}
				inside = errors.Is(err, poller.ErrConcurrent)
			}
			if !inside {
				t.Error("Poll never noticed the goroutine in Wait")
			}
			for name, call := range map[string]func() (int, error){
				"Submit": func() (int, error) { return r.Queue.Submit([]*poller.Request{free}) },
				"Poll":   func() (int, error) { return r.Queue.Poll(make([]*poller.Request, 1)) },
				"Wait":   func() (int, error) { return r.Queue.Wait(1, make([]*poller.Request, 1), 0) },
				"Close":  func() (int, error) { return 0, r.Queue.Close() },
			} {
				if n, err := call(); n != 0 || !errors.Is(err, poller.ErrConcurrent) {
					t.Errorf("%s beside a Wait: %d, %v", name, n, err)
				}
			}
			gate.Release()
			wg.Wait()
			if n != 1 || err != nil || done[0] != stopped || stopped.Err != nil {
				t.Fatalf("the Wait: %d, %v, %v", n, err, stopped.Err)
			}
			r.Take(done[:1])
			r.MustDo(free)
		})
	}
}
