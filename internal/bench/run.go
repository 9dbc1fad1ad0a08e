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
	left := s.job.ios() // to be accepted yet
	ready := int(min(left, int64(len(s.reqs))))
	copy(batch, s.reqs[:ready])
	for _, r := range batch[:ready] {
		next.set(r)
	}
	out := 0 // accepted and not yet back
	for {
		accepted, err := queue.Submit(batch[:ready])
		if err != nil {
			return err
		}
		out += accepted
		left -= int64(accepted)
		kept := ready - accepted
		if kept != 0 {
			if out == 0 {
				return errNothingAccepted
			}
			copy(batch, batch[accepted:ready])
		}
		n, err := queue.Wait(1, batch[kept:], -1)
		out -= n
		s.out.ios += uint64(n)
		if err != nil {
			return err
		}
		ready = kept + n
		for _, r := range batch[kept:ready] {
			if r.Err != nil {
				s.fail(r.Err)
			}
			next.set(r)
		}
		if int64(ready) >= left {
			ready = int(left)
			if ready+out == 0 {
				return nil
			}
		}
		if s.stop.Load() {
			return s.drain(out)
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
func (s *session) drain(out int) error {
	for out > 0 {
		n, err := s.queue.Wait(1, s.batch, -1)
		out -= n
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
