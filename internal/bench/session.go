// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

var (
	// ErrStuck says that I/O did not come back after the end of the run.
	ErrStuck = errors.New("I/O did not come back")
	// ErrCount says that the device's statistics and the generator disagree
	// about how many I/Os there were: an error in pollux.
	ErrCount = errors.New("the statistics miscount")
)

// session is one goroutine with one queue, and what it is measured by.
type session struct {
	job Job
	// stop ends the loop. A flag that a timer sets costs the loop one load per
	// batch, where looking at the clock costs nearly as much as a poll, and it
	// is on time however slow the device is: pollers yield now and then, which
	// lets the runtime see to its timers.
	stop atomic.Bool

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
	ios          uint64 // that came back
	errors       uint64 // of them with Err
	ioErr        error  // the first of those
	err          error  // of the queue
	elapsed      time.Duration
	depth        int
	fixedBuffers bool
	workers      int
}

// runSession runs loop on a queue of dev and returns what was measured, also
// when it fails.
func runSession(ctx context.Context, dev poller.Device, job Job, loop func(*session) error) (Result, error) {
	result := Result{Job: job, NotPollable: dev.Limits().NotPollable}
	s := &session{job: job}
	if err := s.open(dev); err != nil {
		return result, err
	}
	before := dev.Stats()
	interrupts, known, _ := blockdev.NVMeInterrupts()
	started, finished := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(finished)
		close(started)
		s.run(loop)
	}()
	// On a busy host the goroutine may begin late, and has its full time then.
	<-started
	err := s.await(ctx, finished)
	result.Elapsed = time.Since(start)
	result.Interrupted = ctx.Err() != nil
	if after, ok, _ := blockdev.NVMeInterrupts(); ok && known {
		result.Interrupts, result.InterruptsKnown = after-interrupts, true
	}
	result.Stats = dev.Stats().Sub(before)
	if err == nil { // otherwise what is the goroutine's stays so
		result.Elapsed = s.out.elapsed
		result.IODepth, result.FixedBuffers, result.Workers = s.out.depth, s.out.fixedBuffers, s.out.workers
		err = s.out.verdict(result.count())
	}
	if err != nil && !errors.As(err, &result.Errno) {
		result.Errno = syscall.EIO
	}
	return result, err
}

// verdict returns what was wrong with a run of which the device's statistics
// have counted so many I/Os.
func (o outcome) verdict(counted uint64) error {
	switch good := o.ios - o.errors; {
	case o.ioErr != nil:
		return o.ioErr
	case o.err != nil:
		return o.err
	case counted != good:
		return fmt.Errorf("%w: %d I/Os came back, they say %d; an error in pollux", ErrCount, good, counted)
	}
	return nil
}

// open makes the queue and its requests: all that the loop will ever use.
func (s *session) open(dev poller.Device) (err error) {
	job := s.job
	s.queue, err = dev.NewQueue(poller.QueueConfig{Depth: job.IODepth, MaxTransfer: job.BS, CloseTimeout: job.Grace})
	if err != nil {
		return err
	}
	l := s.queue.Limits()
	depth := min(job.IODepth, l.QueueDepth)
	s.out.depth, s.out.fixedBuffers = depth, l.FixedBuffers
	memory := l.Arena.Bytes()
	if depth < 1 || int64(len(memory)) < int64(depth)*job.BS {
		return errors.Join(errNothingAccepted, s.queue.Close())
	}
	requests := make([]poller.Request, depth)
	s.reqs = make([]*poller.Request, depth)
	s.batch = make([]*poller.Request, depth)
	for i := range requests {
		r := &requests[i]
		first := int64(i) * job.BS
		r.Buf = memory[first : first+job.BS : first+job.BS]
		r.Op, r.Flags = job.RW.op(), job.flags()
		s.reqs[i] = r
	}
	if job.RW.Writes() {
		// Drives that compress would make nothing of zeros.
		fillPattern(memory[:int64(depth)*job.BS&^7], patternStart(job.Seed), 0)
	}
	return nil
}

// run is the goroutine.
func (s *session) run(loop func(*session) error) {
	start := time.Now()
	s.out.err = loop(s)
	s.out.elapsed = time.Since(start)
	// Before Close, as the threads end with the rings.
	s.out.workers, _ = blockdev.WorkerThreads()
	if err := s.queue.Close(); s.out.err == nil {
		s.out.err = err
	}
}

// await ends the run when its time has come, and gives up on a device that does
// not give back its I/O within Grace after that. The goroutine and its memory
// are then left to the process's end: the device may still write to it.
//
// Because of this the loop may wait without a timeout, which would cost a
// reading of the clock per batch.
func (s *session) await(ctx context.Context, finished <-chan struct{}) error {
	var end <-chan time.Time
	if s.job.Runtime > 0 {
		timer := time.NewTimer(s.job.Runtime)
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-finished:
		return nil
	case <-end:
	case <-ctx.Done():
	}
	s.stop.Store(true)
	grace := time.NewTimer(s.job.Grace)
	defer grace.Stop()
	select {
	case <-finished:
		return nil
	case <-grace.C:
		return fmt.Errorf("%w within %v after the end of the run: the device hangs; see dmesg", ErrStuck, s.job.Grace)
	}
}
