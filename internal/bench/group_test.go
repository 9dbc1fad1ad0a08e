// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/poller"
)

// Jobs run at once, have a queue for each of their goroutines, and are told apart.
func TestJobsTogether(t *testing.T) {
	dev := newFake(1 << 20)
	group, err := RunJobs(t.Context(), dev, []Job{
		{Name: "a", RW: RandRead, NumJobs: 3, IODepth: 4, IOSize: 100 * 4096, HiPri: 100},
		{Name: "b", RW: Write, NumJobs: 1, BS: 512, IOSize: 50 * 512},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, b := group.Results[0], group.Results[1]
	if n := a.Rates(poller.Read); n.IOs != 300 || n.Polled != 300 || len(a.IOsPerJob) != 3 || a.IOsPerJob[1] != 100 {
		t.Errorf("a: %+v, %v", n.IOs, a.IOsPerJob)
	}
	if n := b.Rates(poller.Write); n.IOs != 50 || n.Polled != 0 || n.Bytes != 50*512 {
		t.Errorf("b: %d I/Os, %d polled, %d bytes", n.IOs, n.Polled, n.Bytes)
	}
	if ioCount(group.Stats) != 350 || !a.Beside {
		t.Errorf("the group has %d I/Os", ioCount(group.Stats))
	}
	for _, q := range dev.queues {
		if q.cfg.Queues != 4 {
			t.Errorf("a queue is one of %d", q.cfg.Queues)
		}
	}
	fio := group.Fio()
	if fio.PolledIOs != 300 || fio.PlainIOs != 50 {
		t.Errorf("%+v", fio)
	}
	dev.checkClosed(t)
}

// Each job ends by itself.
func TestJobsEndByThemselves(t *testing.T) {
	dev := newFake(1 << 20)
	dev.delay = 100 * time.Microsecond
	group, err := RunJobs(t.Context(), dev, []Job{
		{Name: "short", Runtime: 30 * time.Millisecond},
		{Name: "long", Runtime: 120 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	short, long := group.Results[0].Elapsed, group.Results[1].Elapsed
	if short < 30*time.Millisecond || long < 120*time.Millisecond || short >= long || group.Elapsed < long {
		t.Errorf("%v, %v, together %v", short, long, group.Elapsed)
	}
}

// What is done in the ramp time is not measured, and checked all the same.
func TestRampTimeIsNotMeasured(t *testing.T) {
	dev := newFake(1 << 20)
	dev.delay = 200 * time.Microsecond
	result, err := Run(t.Context(), dev, Job{NumJobs: 2, RampTime: 150 * time.Millisecond, Runtime: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	all := dev.Stats()
	total := ioCount(all)
	// On a busy host either end may be late.
	if result.Elapsed < 100*time.Millisecond || result.Elapsed > 5*time.Second || result.count() == 0 || result.count() >= total {
		t.Errorf("%v, %d of %d I/Os", result.Elapsed, result.count(), total)
	}
	for _, s := range result.Samples {
		if len(s.IOPS) != 0 {
			t.Errorf("%d samples of half a second in 300 ms", len(s.IOPS))
		}
	}
	if in := ioCount(result.Stats); in != result.IOsPerJob[0]+result.IOsPerJob[1] {
		t.Errorf("%d I/Os, of the two %v", in, result.IOsPerJob)
	}
}

// An I/O that fails ends all jobs, and the error says whose it was.
func TestJobsStopAtAnError(t *testing.T) {
	dev := newFake(1 << 20)
	dev.failAt = 1000
	group, err := RunJobs(t.Context(), dev, []Job{
		{Name: "sleeper", RateIOPS: 10, Runtime: time.Hour},
		{Name: "fails", Runtime: time.Hour},
	})
	if !errors.Is(err, syscall.ENODATA) || !strings.Contains(err.Error(), "job fails") {
		t.Errorf("error %v", err)
	}
	if group.Results[0].Errno != syscall.ENODATA {
		t.Errorf("errno %d", group.Results[0].Errno)
	}
	dev.checkClosed(t)
}

// A job that the device does not fit is named, and nothing has run.
func TestJobsRefused(t *testing.T) {
	dev := newFake(1 << 20)
	_, err := RunJobs(t.Context(), dev, []Job{{Name: "good", Runtime: 1}, {Name: "bad", BS: 100, Runtime: 1}})
	if !errors.Is(err, ErrJob) || !strings.Contains(err.Error(), "job bad: ") || len(dev.queues) != 0 {
		t.Errorf("%v, %d queues", err, len(dev.queues))
	}
}

func TestJobsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	group, err := RunJobs(ctx, newFake(1<<20), []Job{{Runtime: time.Hour, RampTime: time.Hour}, {Runtime: time.Hour, NumJobs: 3}})
	if err != nil || !group.Interrupted || !group.Results[1].Interrupted {
		t.Errorf("interrupted %v, %v", group.Interrupted, err)
	}
}

// A share of the I/Os that are polled is reported apart from the rest.
func TestHiPriShare(t *testing.T) {
	result, err := Run(t.Context(), newFake(1<<20), Job{RW: RandRead, HiPri: 50, IOSize: 10_000 * 4096})
	if err != nil {
		t.Fatal(err)
	}
	info := result.Fio().Pollux
	if info.Polled == nil || info.Plain == nil || info.Polled.TotalIOs+info.Plain.TotalIOs != 10_000 ||
		info.Polled.TotalIOs < 4_700 || info.Polled.TotalIOs > 5_300 || info.Polled.CLat.N != info.Polled.TotalIOs {
		t.Errorf("%+v and %+v", info.Polled, info.Plain)
	}
}
