// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"
	"time"

	"pollux/poller"
)

// watch is a device that notes how its queues are used.
type watch struct {
	*fakeDevice
	submitted []int // lengths
	waits     []waited
	begun     []time.Time // of each I/O
}

type waited struct{ least, room, got int }

type watchedQueue struct {
	*fakeQueue
	dev *watch
}

func (w *watch) NewQueue(cfg poller.QueueConfig) (poller.Queue, error) {
	q, err := w.fakeDevice.NewQueue(cfg)
	return &watchedQueue{q.(*fakeQueue), w}, err
}

func (q *watchedQueue) Submit(reqs []*poller.Request) (int, error) {
	n, err := q.fakeQueue.Submit(reqs)
	q.dev.submitted = append(q.dev.submitted, n)
	for range n {
		q.dev.begun = append(q.dev.begun, time.Now())
	}
	return n, err
}

func (q *watchedQueue) Wait(least int, done []*poller.Request, d time.Duration) (int, error) {
	n, err := q.fakeQueue.Wait(least, done, d)
	q.dev.waits = append(q.dev.waits, waited{least, len(done), n})
	return n, err
}

// Whatever the batches, every I/O that was asked for is done once.
func TestBatchesCountEveryIO(t *testing.T) {
	for _, job := range []Job{
		{IODepth: 1, IODepthBatch: 1},
		{IODepth: 32, IODepthBatch: 8, BatchCompleteMin: 1, BatchCompleteMax: 32},
		{IODepth: 32, IODepthBatch: 1},
		{IODepth: 32, IODepthBatch: 32, BatchCompleteMin: 32, BatchCompleteMax: 32},
		{IODepth: 7, IODepthBatch: 3, BatchCompleteMin: 2, BatchCompleteMax: 2},
		{IODepth: 5, BatchCompleteMin: 5},
		{IODepth: 5, BatchCompleteMax: 1},
		{IODepth: 2, IODepthBatch: 8, BatchCompleteMin: 9},
		{IODepth: 4, RateIOPS: 1e6},
	} {
		for _, room := range []int{0, 1, 2} {
			for _, batch := range []int{0, 1} {
				dev := newFake(1 << 20)
				dev.room, dev.batch = room, batch
				job.RW, job.IOSize = RandRW, 1001*4096
				result, err := Run(t.Context(), dev, job)
				if err != nil || result.count() != 1001 {
					t.Errorf("%+v, room %d, batch %d: %d I/Os, %v", job, room, batch, result.count(), err)
				}
				dev.checkClosed(t)
			}
		}
	}
}

// With a batch of 8 submits are of 8 at most, and of all that is there if that is less;
// at most so many come back at once as was said, and so many are waited for.
func TestBatchSizes(t *testing.T) {
	dev := &watch{fakeDevice: newFake(1 << 20)}
	job := Job{IODepth: 32, IODepthBatch: 8, BatchCompleteMin: 2, BatchCompleteMax: 5, IOSize: 1004 * 4096}
	if _, err := Run(t.Context(), dev, job); err != nil {
		t.Fatal(err)
	}
	for i, n := range dev.submitted {
		if n > 8 || i < 4 && n != 8 {
			t.Fatalf("submit %d was of %d", i, n)
		}
	}
	least := 0
	for _, w := range dev.waits {
		if w.room > 5 {
			t.Fatalf("a wait had room for %d", w.room)
		}
		if w.least == 2 {
			least++
		} else if w.least != 0 {
			t.Fatalf("a wait was for %d", w.least)
		}
	}
	if least == 0 {
		t.Error("no wait was for 2")
	}
	if most := dev.queues[0].most; most != 32 {
		t.Errorf("%d in flight", most)
	}
}

// Sizes of I/Os are drawn from the whole of bssplit, and io-size counts bytes.
func TestSplitSizes(t *testing.T) {
	dev := newFake(1 << 20)
	job := Job{RW: RandRead, IODepth: 8, IOSize: 4 << 20, BSSplit: [2][]SizeShare{{{512, 50}, {8192, 50}}, nil}}
	result, err := Run(t.Context(), dev, job)
	if err != nil {
		t.Fatal(err)
	}
	rates := result.Rates(poller.Read)
	if rates.Bytes < 4<<20 || rates.Bytes >= 4<<20+8192 {
		t.Errorf("%d bytes", rates.Bytes)
	}
	if mean := rates.Bytes / rates.IOs; mean < 3500 || mean > 5200 {
		t.Errorf("I/Os of %d bytes on the mean, want about 4352", mean)
	}
	dev.checkClosed(t)
}

// A rate is kept: no I/O begins before it is due, and what was late is made up for.
// The times are given by the rate, not by the host.
func TestRate(t *testing.T) {
	dev := &watch{fakeDevice: newFake(1 << 20)}
	const rate, ios = 2000, 400
	start := time.Now()
	result, err := Run(t.Context(), dev, Job{IODepth: 4, RateIOPS: rate, IOSize: ios * 4096})
	if err != nil || result.count() != ios {
		t.Fatalf("%d I/Os, %v", result.count(), err)
	}
	for i, at := range dev.begun {
		// The generator's clock is another one: 1 ms covers the difference.
		if early := time.Duration(i)*time.Second/rate - at.Sub(start); early > time.Millisecond {
			t.Fatalf("I/O %d began %v early", i, early)
		}
	}
	if result.Elapsed < (ios-1)*time.Second/rate-time.Millisecond {
		t.Errorf("it took %v", result.Elapsed)
	}
}

// A slow job sees the end of its time although it is asleep.
func TestRateEndsWithItsTime(t *testing.T) {
	start := time.Now()
	result, err := Run(t.Context(), newFake(1<<20), Job{RateIOPS: 1, Runtime: 50 * time.Millisecond})
	if err != nil || result.count() != 1 {
		t.Errorf("%d I/Os, %v", result.count(), err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestBadJobs(t *testing.T) {
	for want, job := range map[string]Job{
		"numjobs -1":                         {NumJobs: -1},
		"rwmixread 100":                      {RWMixRead: 100},
		"iodepth-batch -3":                   {IODepthBatch: -3},
		"iodepth-batch-complete-min -2":      {BatchCompleteMin: -2},
		"complete-max 1 is less":             {IODepth: 4, BatchCompleteMin: 2, BatchCompleteMax: 1},
		"hipri 101%":                         {HiPri: 101},
		"bs 100 is no multiple":              {BSSplit: [2][]SizeShare{{{100, 100}}, nil}},
		"bssplit for reads add up to 99":     {BSSplit: [2][]SizeShare{{{512, 99}}, nil}},
		"rate-iops -1":                       {RateIOPS: -1},
		"offset 100 is no multiple":          {Offset: 100},
		"offset 2MiB":                        {Offset: 2 << 20},
		"size 1MiB is more than the 1MiB of": {Offset: 512, Size: 1 << 20},
		"ramp-time needs a runtime":          {RampTime: 1, IOSize: 1},
	} {
		if job.IOSize == 0 {
			job.Runtime = time.Second
		}
		if _, err := Run(t.Context(), newFake(1<<20), job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", job, err, want)
		}
	}
}
