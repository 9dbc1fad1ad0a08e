// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/poller"
)

func TestRunCountsEveryIO(t *testing.T) {
	for _, rw := range []RW{Read, Write, ReadWrite, RandRead, RandWrite, RandRW} {
		for _, depth := range []int{1, 3, 32} {
			for _, room := range []int{0, 1, 2} {
				for _, batch := range []int{0, 1} {
					dev := newFake(1 << 20)
					dev.room, dev.batch = room, batch
					job := Job{RW: rw, IODepth: depth, IOSize: 1001 * 4096, HiPri: 100}
					result, err := Run(t.Context(), dev, job)
					if err != nil {
						t.Fatalf("%v, depth %d, room %d, batch %d: %v", rw, depth, room, batch, err)
					}
					read, write := result.Rates(poller.Read), result.Rates(poller.Write)
					if read.IOs+write.IOs != 1001 || read.Bytes+write.Bytes != 1001*4096 {
						t.Errorf("%v, depth %d, room %d, batch %d: %d reads, %d writes", rw, depth, room, batch, read.IOs, write.IOs)
					}
					if (read.IOs > 0) != rw.Reads() || (write.IOs > 0) != rw.Writes() {
						t.Errorf("%v: %d reads, %d writes", rw, read.IOs, write.IOs)
					}
					if read.Polled+write.Polled != 1001 {
						t.Errorf("%d of 1001 I/Os were polled", read.Polled+write.Polled)
					}
					if most := dev.queues[0].most; room == 0 && most != depth {
						t.Errorf("depth %d: %d in flight", depth, most)
					}
					dev.checkClosed(t)
				}
			}
		}
	}
}

func TestRunFewerIOsThanDepth(t *testing.T) {
	dev := newFake(1 << 20)
	result, err := Run(t.Context(), dev, Job{IODepth: 32, IOSize: 1})
	if err != nil || result.count() != 1 {
		t.Errorf("%d I/Os, %v; want 1", result.count(), err)
	}
}

func TestRunEndsWithItsTime(t *testing.T) {
	dev := newFake(1 << 20)
	dev.delay = time.Millisecond
	result, err := Run(t.Context(), dev, Job{RW: RandRead, IODepth: 4, Runtime: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if result.Elapsed < 50*time.Millisecond || result.Elapsed > 5*time.Second {
		t.Errorf("it took %v", result.Elapsed)
	}
	rates := result.Rates(poller.Read)
	if want := float64(rates.IOs) / result.Elapsed.Seconds(); rates.IOPS != want {
		t.Errorf("IOPS %v, want %v", rates.IOPS, want)
	}
	if result.Interrupted {
		t.Error("it says that it was interrupted")
	}
	dev.checkClosed(t)
}

func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	dev := newFake(1 << 20)
	result, err := Run(ctx, dev, Job{Runtime: time.Hour})
	if err != nil || !result.Interrupted || result.count() == 0 {
		t.Errorf("%d I/Os, interrupted %v, %v", result.count(), result.Interrupted, err)
	}
	dev.checkClosed(t)
}

func TestRunStopsAtAnError(t *testing.T) {
	dev := newFake(1 << 20)
	dev.failAt, dev.batch = 100, 3
	result, err := Run(t.Context(), dev, Job{IODepth: 8, Runtime: time.Minute, Grace: time.Second})
	var where *poller.Error
	if !errors.As(err, &where) || !errors.Is(err, syscall.ENODATA) {
		t.Fatalf("error %v", err)
	}
	rates := result.Rates(poller.Read)
	if rates.Errors != 1 || rates.IOs < 99 || rates.IOs > 120 {
		t.Errorf("%d I/Os, %d errors", rates.IOs, rates.Errors)
	}
	if result.Errno != syscall.ENODATA || result.Fio().Error != int(syscall.ENODATA) {
		t.Errorf("errno %d", result.Errno)
	}
	dev.checkClosed(t)
}

func TestRunGivesUpOnAStuckDevice(t *testing.T) {
	dev := newFake(1 << 20)
	dev.stuckAt = 50
	start := time.Now()
	result, err := Run(t.Context(), dev, Job{Runtime: 500 * time.Millisecond, Grace: 50 * time.Millisecond})
	if !errors.Is(err, ErrStuck) {
		t.Fatalf("error %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	if n := result.Rates(poller.Read).IOs; n != 49 {
		t.Errorf("%d I/Os were measured before, want 49", n)
	}
}

func TestRunNoticesAMiscount(t *testing.T) {
	dev := newFake(1 << 20)
	dev.miscount = true
	if _, err := Run(t.Context(), dev, Job{IOSize: 1 << 20}); !errors.Is(err, ErrCount) {
		t.Errorf("error %v", err)
	}
}

func TestRunSaysWhatWasGranted(t *testing.T) {
	dev := newFake(1 << 20)
	dev.grant, dev.pollable = 5, false
	result, err := Run(t.Context(), dev, Job{IODepth: 64, IOSize: 1 << 20, HiPri: 100})
	if err != nil {
		t.Fatal(err)
	}
	if result.IODepth != 5 || result.Job.IODepth != 64 || dev.queues[0].most != 5 {
		t.Errorf("granted %d, asked %d, in flight %d", result.IODepth, result.Job.IODepth, dev.queues[0].most)
	}
	if result.NotPollable == nil || result.Rates(poller.Read).Polled != 0 {
		t.Error("it does not say that nothing was polled")
	}
}

func TestRunRefusesBadJobs(t *testing.T) {
	tests := []struct {
		job  Job
		want []string
	}{
		{Job{}, []string{"no end"}},
		{Job{IOSize: 1, BS: 1000}, []string{"bs 1000 is no multiple of the block size 512"}},
		{Job{IOSize: 1, BS: 2 << 20}, []string{"bs 2MiB is more than the 1MiB"}},
		{Job{IOSize: 1, BS: -512}, []string{"bs -512"}},
		{Job{IOSize: 1, BS: 1 << 20, IODepth: 2000, Size: 2 << 20}, []string{"more than the 1GiB of memory", "size 2MiB is more than"}},
		{Job{IOSize: 1, IODepth: -1}, []string{"iodepth -1"}},
		{Job{IOSize: 1, IODepth: maxIODepth + 1}, []string{"iodepth 65537"}},
		{Job{IOSize: 1, Size: 512}, []string{"size 512 is less than bs 4KiB"}},
		{Job{IOSize: 1, Size: 4097}, []string{"size 4097 is no multiple"}},
		{Job{IOSize: 1, Size: -1}, []string{"size -1"}},
		{Job{IOSize: -1, Runtime: -1, Grace: -1}, []string{"runtime", "io-size", "grace"}},
		{Job{IOSize: 1, RW: 77}, []string{"rw(77)"}},
	}
	for _, tt := range tests {
		_, err := Run(t.Context(), newFake(1<<20), tt.job)
		if !errors.Is(err, ErrJob) {
			t.Errorf("%+v: error %v", tt.job, err)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %q does not say %q", tt.job, err, want)
			}
		}
	}
}

// TestRunDoesNotAllocatePerIO compares a short run with a long one.
func TestRunDoesNotAllocatePerIO(t *testing.T) {
	for _, rw := range []RW{Read, RandRead, RandRW} {
		dev := newFake(1 << 20)
		dev.batch = 3
		mallocs := func(ios int64) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := Run(t.Context(), dev, Job{RW: rw, IODepth: 8, IOSize: ios * 4096}); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			return after.Mallocs - before.Mallocs
		}
		mallocs(10)
		short, long := mallocs(100), mallocs(100_100)
		if long > short+200 {
			t.Errorf("%v: 100,000 more I/Os made %d more allocations", rw, long-short)
		}
	}
}

// BenchmarkGenerator is what the loop itself costs, with a device that costs
// little.
func BenchmarkGenerator(b *testing.B) {
	dev := newFake(1 << 20)
	b.ReportAllocs()
	if _, err := Run(b.Context(), dev, Job{RW: RandRead, BS: 512, IODepth: 32, IOSize: int64(b.N) * 512}); err != nil {
		b.Fatal(err)
	}
}
