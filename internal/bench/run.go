// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"

	"pollux/poller"
)

// Run drives dev as job says until its time is over, its I/O is done, an I/O
// fails, or ctx is cancelled; the last is no error, Result.Interrupted says it.
// The Result holds what was measured, also when there is an error. That answers
// to ErrJob where the job does not fit the device.
func Run(ctx context.Context, dev poller.Device, job Job) (Result, error) {
	job, err := job.prepare(dev.Limits())
	if err != nil {
		return Result{Job: job}, err
	}
	if job.Runtime == 0 && job.IOSize == 0 {
		return Result{Job: job}, fmt.Errorf("%w: it has no end; set runtime or io-size", ErrJob)
	}
	return runSession(ctx, dev, job, (*session).generate)
}

// generate is the loop that is measured. What has come back goes out again as
// the batch that it came in.
//
//	reqs ──► Submit ──► device ──► Wait ──► batch ──┐
//	           ▲                                    │ next offset
//	           └────────────────────────────────────┘
func (s *session) generate() error {
	queue, batch := s.queue, s.batch
	next := newOffsets(s.job)
	limit := uint64(s.job.ios())
	ready := int(min(limit, uint64(len(s.reqs))))
	copy(batch, s.reqs[:ready])
	for _, r := range batch[:ready] {
		next.set(r)
	}
	for {
		accepted, err := queue.Submit(batch[:ready])
		s.accepted += uint64(accepted)
		if err != nil {
			return err
		}
		back := batch
		if accepted != ready {
			if s.accepted == s.out.ios {
				return errNothingAccepted
			}
			back = batch[copy(batch, batch[accepted:ready]):]
		}
		n, err := queue.Wait(1, back, -1)
		s.out.ios += uint64(n)
		if err != nil {
			return err
		}
		for _, r := range back[:n] {
			if r.Err != nil {
				s.fail(r.Err)
			}
			next.set(r)
		}
		ready += n - accepted
		if s.accepted+uint64(ready) >= limit {
			ready = int(limit - s.accepted)
			if ready == 0 && s.accepted == s.out.ios {
				return nil
			}
		}
		if s.stop.Load() {
			return s.drain()
		}
	}
}

var errNothingAccepted = errors.New("an empty queue took no request: an error in pollux")

// fail remembers the first error of an I/O and ends the run.
func (s *session) fail(err error) {
	s.out.errors++
	if s.out.ioErr == nil {
		s.out.ioErr = err
	}
	s.stop.Store(true)
}

// drain takes back what is still out.
func (s *session) drain() error {
	for s.accepted > s.out.ios {
		n, err := s.queue.Wait(1, s.batch, -1)
		s.out.ios += uint64(n)
		if err != nil {
			return err
		}
		for _, r := range s.batch[:n] {
			if r.Err != nil {
				s.fail(r.Err)
			}
		}
	}
	return nil
}
