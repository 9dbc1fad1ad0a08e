// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// group is the sessions of jobs that run at once.
type group struct {
	dev  poller.Device
	jobs []jobSessions
	all  []*session

	// What the device and the host had counted when the last ramp time was over.
	mu         sync.Mutex
	ramped     poller.Stats
	interrupts uint64
	known      bool
	rampEnd    time.Time
}

// jobSessions are those of one job.
type jobSessions struct {
	job      Job
	sessions []*session
	// rampEnd is from when the job is measured, which it is since measuring is true.
	rampEnd   time.Time
	measuring bool
	samples   [2]Samples // by operation; the sampler's
}

// setStart sets the time from which the job is measured to when its first goroutine
// began.
func (js *jobSessions) setStart() {
	for i, s := range js.sessions {
		if i == 0 || s.start.Before(js.rampEnd) {
			js.rampEnd = s.start
		}
	}
	js.measuring = js.job.RampTime == 0
}

// add adds a job that is prepared.
func (g *group) add(job Job, loop func(*session) error) {
	js := jobSessions{job: job}
	for n := range job.NumJobs {
		s := &session{group: g, job: job, number: n, loop: loop}
		js.sessions = append(js.sessions, s)
		g.all = append(g.all, s)
	}
	g.jobs = append(g.jobs, js)
}

func (g *group) stopAll() {
	for _, s := range g.all {
		s.stop.Store(true)
	}
}

// run runs all sessions and puts into out what was measured, also when it fails.
func (g *group) run(ctx context.Context, out *Group) error {
	out.NotPollable = g.dev.Limits().NotPollable
	for i, s := range g.all {
		if err := s.open(g.dev, len(g.all)); err != nil {
			if errors.Is(err, poller.ErrBudget) {
				err = fmt.Errorf("%w: numjobs adds up to %d queues, more than the device holds I/Os for; use fewer: %w", ErrJob, len(g.all), err)
			}
			for _, open := range g.all[:i] {
				err = errors.Join(err, open.queue.Close())
			}
			return err
		}
	}
	before := g.dev.Stats()
	g.snapshot(time.Now())
	begin, finished := make(chan struct{}), make(chan struct{})
	var begun, running sync.WaitGroup
	for _, s := range g.all {
		begun.Add(1)
		running.Go(func() {
			<-begin
			s.start = time.Now()
			begun.Done()
			s.run()
		})
	}
	go func() {
		running.Wait()
		close(finished)
	}()
	close(begin)
	// On a busy host goroutines may begin late, and have their full time then.
	begun.Wait()
	for i := range g.jobs {
		g.jobs[i].setStart()
		if i == 0 || g.jobs[i].rampEnd.Before(g.rampEnd) {
			g.rampEnd = g.jobs[i].rampEnd
		}
	}
	stopTimers := g.startTimers(time.Now())
	quit, sampler := make(chan struct{}), sync.WaitGroup{}
	sampler.Go(func() { g.sample(quit) })
	err := g.await(ctx, finished)
	close(quit)
	sampler.Wait()
	stopTimers()
	g.measure(out, err == nil)
	out.Interrupted = ctx.Err() != nil
	for i := range out.Results {
		out.Results[i].Interrupted = out.Interrupted
	}
	if err == nil {
		err = g.verdict(out, before)
	}
	if err != nil {
		errno := syscall.EIO
		errors.As(err, &errno)
		for i := range out.Results {
			out.Results[i].Errno = errno
		}
	}
	return err
}

// snapshot notes what was counted before what is measured.
func (g *group) snapshot(now time.Time) {
	g.ramped = g.dev.Stats()
	g.interrupts, g.known, _ = blockdev.NVMeInterrupts()
	g.rampEnd = now
}

// startTimers ends ramp times and runs. The returned function stops the timers, and
// returns when none is at work any more.
func (g *group) startTimers(start time.Time) (stop func()) {
	var timers []*time.Timer
	var working sync.WaitGroup
	after := func(d time.Duration, f func()) {
		working.Add(1)
		timers = append(timers, time.AfterFunc(time.Until(start.Add(d)), func() {
			defer working.Done()
			f()
		}))
	}
	last := time.Duration(0)
	for i := range g.jobs {
		js := &g.jobs[i]
		if ramp := js.job.RampTime; ramp > 0 {
			last = max(last, ramp)
			after(ramp, func() {
				g.mu.Lock()
				defer g.mu.Unlock()
				js.rampEnd, js.measuring = time.Now(), true
				for _, s := range js.sessions {
					s.ramped = s.queue.Stats()
				}
			})
		}
		if js.job.Runtime > 0 {
			after(js.job.RampTime+js.job.Runtime, func() {
				for _, s := range js.sessions {
					s.stop.Store(true)
				}
			})
		}
	}
	if last > 0 {
		after(last, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.snapshot(time.Now())
		})
	}
	return func() {
		for _, t := range timers {
			if t.Stop() {
				working.Done()
			}
		}
		working.Wait()
	}
}

// await waits for all sessions, and gives up on a device that does not give back its
// I/O within Grace after the end of the longest job. The goroutines and their memory
// are then left to the process's end: the device may still write to it.
//
// Because of this the loops may wait without a timeout, which would cost a
// reading of the clock per batch.
func (g *group) await(ctx context.Context, finished <-chan struct{}) error {
	longest, grace := time.Duration(0), time.Duration(0)
	for i := range g.jobs {
		job := &g.jobs[i].job
		if job.Runtime == 0 {
			longest = -1
		} else if longest >= 0 {
			longest = max(longest, job.RampTime+job.Runtime)
		}
		grace = max(grace, job.Grace)
	}
	var end <-chan time.Time
	if longest > 0 {
		timer := time.NewTimer(longest)
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-finished:
		return nil
	case <-end:
	case <-ctx.Done():
	}
	g.stopAll()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-finished:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w within %v after the end of the run: the device hangs; see dmesg", ErrStuck, grace)
	}
}

// measure fills in the results. ended says that the goroutines have: otherwise what
// is theirs stays so.
func (g *group) measure(out *Group, ended bool) {
	end := time.Now()
	after, known, _ := blockdev.NVMeInterrupts()
	out.Stats = g.dev.Stats().Sub(g.ramped)
	if known && g.known {
		out.Interrupts, out.InterruptsKnown = after-g.interrupts, true
	}
	if ended {
		end = g.rampEnd
	}
	for i, js := range g.jobs {
		r := &out.Results[i]
		r.NotPollable, r.Samples = out.NotPollable, js.samples
		r.IODepth, r.FixedBuffers = len(js.sessions[0].reqs), true
		jobEnd := js.rampEnd
		for n, s := range js.sessions {
			own := s.queue.Stats().Sub(s.ramped)
			if n == 0 {
				r.Stats = own
			} else {
				r.Stats = r.Stats.Add(own)
			}
			r.IOsPerJob = append(r.IOsPerJob, ioCount(own))
			r.IODepth = min(r.IODepth, len(s.reqs))
			r.FixedBuffers = r.FixedBuffers && s.queue.Limits().FixedBuffers
			if ended {
				out.Workers = max(out.Workers, s.out.workers)
				if s.out.end.After(jobEnd) {
					jobEnd = s.out.end
				}
			}
		}
		if !ended {
			jobEnd = end
		}
		r.Elapsed = max(jobEnd.Sub(js.rampEnd), 0)
		if ended && jobEnd.After(end) {
			end = jobEnd
		}
	}
	out.Elapsed = end.Sub(g.rampEnd)
	for i := range out.Results {
		out.Results[i].Workers, out.Results[i].Beside = out.Workers, len(out.Results) > 1
	}
	if len(out.Results) == 1 {
		// What is counted for the device as a whole is the job's.
		r := &out.Results[0]
		r.Stats.Name, r.Stats.Members = out.Stats.Name, out.Stats.Members
		r.Interrupts, r.InterruptsKnown = out.Interrupts, out.InterruptsKnown
	}
}

// verdict returns what was wrong with the run.
func (g *group) verdict(out *Group, before poller.Stats) error {
	counted := uint64(0)
	for _, js := range g.jobs {
		for _, s := range js.sessions {
			own := s.queue.Stats()
			if err := s.verdict(own); err != nil {
				if len(g.jobs) > 1 {
					err = fmt.Errorf("job %s: %w", js.job.Name, err)
				}
				return err
			}
			counted += ioCount(own)
		}
	}
	if n := ioCount(g.dev.Stats().Sub(before)); n != counted {
		return fmt.Errorf("%w: the queues have %d I/Os, the device says %d; an error in pollux", ErrCount, counted, n)
	}
	return nil
}

// ioCount returns how many reads and writes without error there are.
func ioCount(s poller.Stats) uint64 {
	n := uint64(0)
	for _, op := range operations {
		for _, io := range s.IO[op] {
			n += io.Latency.Count()
		}
	}
	return n
}
