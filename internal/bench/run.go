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
	group, err := RunJobs(ctx, dev, []Job{job})
	return group.Results[0], err
}

// Check says, by an error that answers to ErrJob, whether RunJobs can run jobs on a
// device with these limits. Fill, Sweep and Verify take jobs without an end, which is
// not looked at.
func Check(l poller.Limits, jobs []Job) error {
	for _, job := range jobs {
		if job, err := job.prepare(l); err != nil {
			return named(job, jobs, err)
		}
	}
	return nil
}

// named says which of several jobs an error is of.
func named(job Job, all []Job, err error) error {
	if len(all) > 1 {
		return fmt.Errorf("job %s: %w", job.Name, err)
	}
	return err
}

// RunJobs is Run for jobs that run at once, each with as many goroutines and queues
// as NumJobs says. All begin together. Each ends by itself, but when an I/O fails all
// do. The Group has one Result for each job, also when there is an error.
func RunJobs(ctx context.Context, dev poller.Device, jobs []Job) (Group, error) {
	g := &group{dev: dev}
	out := Group{Results: make([]Result, len(jobs))}
	for i, job := range jobs {
		job, err := job.prepare(dev.Limits())
		if err == nil && job.Runtime == 0 && job.IOSize == 0 {
			err = fmt.Errorf("%w: it has no end; set runtime or io-size", ErrJob)
		}
		if err != nil {
			out.Results[i].Job = job
			return out, named(job, jobs, err)
		}
		out.Results[i].Job = job
		g.add(job, (*session).generate)
	}
	err := g.run(ctx, &out)
	return out, err
}

// runAlone runs loop, of one goroutine, as a job that is prepared.
func runAlone(ctx context.Context, dev poller.Device, job Job, loop func(*session) error) (Result, error) {
	job.NumJobs = 1
	g := &group{dev: dev}
	g.add(job, loop)
	out := Group{Results: []Result{{Job: job}}}
	err := g.run(ctx, &out)
	return out.Results[0], err
}

// generate is the loop that is measured.
func (s *session) generate() error {
	if s.job.simple() {
		return s.generateSimply()
	}
	return s.generateBatches()
}

// simple says that generateSimply does all that the job asks for.
func (j Job) simple() bool {
	return j.IODepthBatch == 0 && j.BatchCompleteMin <= 1 && j.BatchCompleteMax == 0 && j.RateIOPS == 0 &&
		j.BSSplit[poller.Read] == nil && j.BSSplit[poller.Write] == nil
}

// generateSimply sends what has come back out again, as the batch that it came in.
//
//	reqs ──► Submit ──► device ──► Wait ──► batch ──┐
//	           ▲                                    │ next offset
//	           └────────────────────────────────────┘
func (s *session) generateSimply() error {
	queue, batch := s.queue, s.batch
	next := newOffsets(s.job, s.number)
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

// fail remembers the first error of an I/O and ends the run, of all jobs.
func (s *session) fail(err error) {
	s.out.errors++
	if s.out.ioErr == nil {
		s.out.ioErr = err
	}
	s.group.stopAll()
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
