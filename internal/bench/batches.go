// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"time"

	"pollux/internal/clock"
	"pollux/poller"
)

// stopWithin is how late a session may see that it is to stop while it has nothing
// out and waits until its next I/O is due.
const stopWithin = 20 * time.Millisecond

// batches is the state of generateBatches.
type batches struct {
	next  offsets
	idle  []*poller.Request // whose I/O is not drawn yet
	drawn []*poller.Request // to be submitted, in this order
	left  int64             // bytes that may be drawn still
	size  int               // of a batch
	most  int               // completions that are taken at once

	// Of a job with a rate: one I/O each interval, in nanoseconds, counted from the
	// start, so that what was late is made up for.
	interval, start float64
	begun           uint64
}

func (s *session) newBatches() *batches {
	j, depth := s.job, len(s.reqs)
	b := &batches{
		next:  newOffsets(j, s.number),
		idle:  append(make([]*poller.Request, 0, depth), s.reqs...),
		drawn: make([]*poller.Request, 0, depth),
		left:  math.MaxInt64,
		size:  depth,
		most:  depth,
	}
	if j.IOSize > 0 {
		b.left = j.IOSize
	}
	if j.IODepthBatch > 0 {
		b.size = min(j.IODepthBatch, depth)
	}
	if j.BatchCompleteMax > 0 {
		b.most = min(j.BatchCompleteMax, depth)
	}
	if j.RateIOPS > 0 {
		clock.Start()
		b.interval, b.start = float64(time.Second)/float64(j.RateIOPS), float64(clock.Now())
	}
	return b
}

// draw draws I/Os, a batch at most, and returns in how many nanoseconds the
// next is due that could not be drawn yet, 0 if that is not what is in the way.
func (b *batches) draw() time.Duration {
	for len(b.drawn) < b.size && len(b.idle) > 0 && b.left > 0 {
		if b.interval > 0 {
			if early := b.start + float64(b.begun)*b.interval - float64(clock.Now()); early >= 1 {
				return time.Duration(early)
			}
			b.begun++
		}
		last := len(b.idle) - 1
		r := b.idle[last]
		b.idle = b.idle[:last]
		b.next.set(r)
		b.left -= int64(len(r.Buf))
		b.drawn = append(b.drawn, r)
	}
	return 0
}

// generateBatches is for jobs that say how many I/Os are submitted or taken back
// together, or how many a second there are, or whose sizes differ. As in fio a batch is
// how many are submitted at most: nothing is held back until there are so many.
func (s *session) generateBatches() error {
	b := s.newBatches()
	least := max(s.job.BatchCompleteMin, 1)
	for out := 0; !s.stop.Load(); {
		early := b.draw()
		if len(b.drawn) > 0 {
			n, err := s.queue.Submit(b.drawn)
			s.accepted += uint64(n)
			out += n
			b.drawn = b.drawn[:copy(b.drawn, b.drawn[n:])]
			switch {
			case err != nil:
				return err
			case out == 0:
				return errNothingAccepted
			}
		}
		if out == 0 {
			if early == 0 {
				return nil
			}
			time.Sleep(min(early, stopWithin))
			continue
		}
		// While there is another batch this only starts the last one.
		wait, patience := least, time.Duration(-1)
		switch {
		case early > 0:
			patience = early
		case b.left > 0 && len(b.drawn) == 0 && len(b.idle) > 0:
			wait, patience = 0, 0
		}
		n, err := s.queue.Wait(min(wait, b.most), s.batch[:b.most], patience)
		s.out.ios += uint64(n)
		out -= n
		if err != nil {
			return err
		}
		for _, r := range s.batch[:n] {
			if r.Err != nil {
				s.fail(r.Err)
			}
			r.Buf = r.Buf[:cap(r.Buf)]
			b.idle = append(b.idle, r)
		}
	}
	return s.drain()
}
