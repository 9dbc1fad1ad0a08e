// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// session is one goroutine with one queue, and what it is measured by.
type session struct {
	group  *group
	job    Job
	number int // from 0, of the job's goroutines
	loop   func(*session) error
	// stop ends the loop. A flag that a timer sets costs the loop one load per
	// batch, where looking at the clock costs nearly as much as a poll, and it
	// is on time however slow the device is: pollers yield now and then, which
	// lets the runtime see to its timers.
	stop atomic.Bool
	// ended is set by the goroutine when its loop has.
	ended atomic.Bool
	start time.Time
	// ramped is what the queue had counted when the ramp time was over.
	ramped poller.Stats

	// What follows is the goroutine's until it has ended.

	queue poller.Queue
	reqs  []*poller.Request
	batch []*poller.Request // as long as reqs
	// accepted is how many I/Os the queue took, all in all.
	accepted uint64
	out      outcome
}

// outcome is what the goroutine found.
type outcome struct {
	ios     uint64 // that came back
	errors  uint64 // of them with Err
	ioErr   error  // the first of those
	err     error  // of the queue
	end     time.Time
	workers int
}

// open makes the queue, one of so many, and its requests: all that the loop will ever
// use.
func (s *session) open(dev poller.Device, queues int) (err error) {
	job := s.job
	most := job.maxBS()
	s.queue, err = dev.NewQueue(poller.QueueConfig{
		Depth:          job.IODepth,
		MaxTransfer:    most,
		Queues:         queues,
		NoFixedBuffers: job.NoFixedBufs,
		CloseTimeout:   job.Grace,
	})
	if err != nil {
		return err
	}
	l := s.queue.Limits()
	depth := min(job.IODepth, l.QueueDepth)
	memory := l.Arena.Bytes()
	if depth < 1 || int64(len(memory)) < int64(depth)*most {
		return errors.Join(errNothingAccepted, s.queue.Close())
	}
	requests := make([]poller.Request, depth)
	s.reqs = make([]*poller.Request, depth)
	s.batch = make([]*poller.Request, depth)
	for i := range requests {
		r := &requests[i]
		first := int64(i) * most
		r.Buf = memory[first : first+most : first+most]
		r.Op, r.Priority = job.RW.op(), job.Priority
		r.Flags = job.flags(r.Op, job.HiPri > 0)
		s.reqs[i] = r
	}
	if job.RW.Writes() {
		// Drives that compress would make nothing of zeros.
		fillPattern(memory[:int64(depth)*most&^7], patternStart(job.Seed), 0)
	}
	return nil
}

// run is the goroutine.
func (s *session) run() {
	s.out.err = s.loop(s)
	s.out.end = time.Now()
	s.ended.Store(true)
	// Before Close, as the threads end with the rings.
	s.out.workers, _ = blockdev.WorkerThreads()
	if err := s.queue.Close(); s.out.err == nil {
		s.out.err = err
	}
	if s.out.err != nil {
		s.group.stopAll()
	}
}

// verdict returns what was wrong with a run whose I/Os the queue counted in stats.
func (s *session) verdict(stats poller.Stats) error {
	counted := ioCount(stats)
	switch good := s.out.ios - s.out.errors; {
	case s.out.ioErr != nil:
		return s.out.ioErr
	case s.out.err != nil:
		return s.out.err
	case counted != good:
		return fmt.Errorf("%w: %d I/Os came back, they say %d; an error in pollux", ErrCount, good, counted)
	}
	return nil
}
