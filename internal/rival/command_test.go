// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pollux/internal/bench"
	"pollux/poller"
)

// always is in every command line.
var always = []string{"--name=rival", "--output-format=json", "--eta=never", "--unified_rw_reporting=mixed",
	"--allow_file_create=0", "--ioengine=io_uring", "--direct=1", "--registerfiles=1", "--norandommap=1",
	"--scramble_buffers=0", "--thread=1", "--group_reporting=1"}

func TestCommand(t *testing.T) {
	split := []bench.SizeShare{{BS: 4096, Percent: 60}, {BS: 8192, Percent: 40}, {BS: 512, Percent: 0}}
	priority, err := poller.NewPriority(poller.PriorityBestEffort, 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		devices string
		job     bench.Job
		want    string
	}{
		"defaults": {"/dev/a", bench.Job{RW: bench.RandRead, Runtime: time.Second},
			"--readonly --filename=/dev/a --hipri=0 --fixedbufs=1 --rw=randread --bs=4096 --iodepth=1 --iodepth_batch=1 " +
				"--iodepth_batch_complete_min=1 --iodepth_batch_complete_max=1 --numjobs=1 --runtime=1000000us --time_based=1"},
		"polled, deep": {"/dev/a /dev/b:1", bench.Job{RW: bench.Read, HiPri: 100, IODepth: 32, BS: 65536, NumJobs: 16, Size: 1 << 20, Runtime: 1500 * time.Millisecond, RampTime: time.Second},
			`--readonly --filename=/dev/a:/dev/b\:1 --hipri=1 --fixedbufs=1 --rw=read --bs=65536 --iodepth=32 --iodepth_batch=32 ` +
				"--iodepth_batch_complete_min=1 --iodepth_batch_complete_max=32 --numjobs=16 --size=1048576 --runtime=1500000us --time_based=1 --ramp_time=1000000us"},
		"batches": {"/dev/a", bench.Job{RW: bench.RandRead, IODepth: 32, IODepthBatch: 8, BatchCompleteMin: 2, BatchCompleteMax: 16, NoFixedBufs: true, Seed: 7, IOSize: 1 << 30, Offset: 4096},
			"--readonly --filename=/dev/a --hipri=0 --fixedbufs=0 --rw=randread --bs=4096 --iodepth=32 --iodepth_batch=8 " +
				"--iodepth_batch_complete_min=2 --iodepth_batch_complete_max=16 --numjobs=1 --offset=4096 --io_size=1073741824 --randseed=7"},
		"mixed": {"/dev/a", bench.Job{RW: bench.RandRW, RWMixRead: 70, RateIOPS: 1000, Runtime: time.Second, DSync: true, NoWait: true, Priority: priority, Seed: math.MaxUint64},
			"--filename=/dev/a --hipri=0 --fixedbufs=1 --rw=randrw --rwmixread=70 --bs=4096 --iodepth=1 --iodepth_batch=1 " +
				"--iodepth_batch_complete_min=1 --iodepth_batch_complete_max=1 --numjobs=1 --runtime=1000000us --time_based=1 --rate_iops=700,300 " +
				"--randseed=9223372036854775807 --sync=dsync --nowait=1 --prioclass=2 --prio=3"},
		"split of writes in a mix": {"/dev/a", bench.Job{RW: bench.ReadWrite, BSSplit: [2][]bench.SizeShare{nil, split}, Runtime: time.Second},
			"--filename=/dev/a --hipri=0 --fixedbufs=1 --rw=readwrite --rwmixread=50 --bs=4096 --bssplit=4096/100,4096/60:8192/40 --iodepth=1 --iodepth_batch=1 " +
				"--iodepth_batch_complete_min=1 --iodepth_batch_complete_max=1 --numjobs=1 --runtime=1000000us --time_based=1"},
		"split, rate and durability of what is not done": {"/dev/a", bench.Job{RW: bench.RandRead, BSSplit: [2][]bench.SizeShare{nil, split}, RateIOPS: 10, DSync: true, IOSize: 1, Runtime: time.Second},
			"--readonly --filename=/dev/a --hipri=0 --fixedbufs=1 --rw=randread --bs=4096 --iodepth=1 --iodepth_batch=1 " +
				"--iodepth_batch_complete_min=1 --iodepth_batch_complete_max=1 --numjobs=1 --runtime=1000000us --io_size=1 --rate_iops=10"},
		"split of reads": {"/dev/a", bench.Job{RW: bench.RandRead, BSSplit: [2][]bench.SizeShare{split, split[:1]}, IOSize: 4096},
			"--readonly --filename=/dev/a --hipri=0 --fixedbufs=1 --rw=randread --bs=4096 --bssplit=4096/60:8192/40 --iodepth=1 --iodepth_batch=1 " +
				"--iodepth_batch_complete_min=1 --iodepth_batch_complete_max=1 --numjobs=1 --io_size=4096"},
	} {
		argv, err := Command(strings.Fields(test.devices), test.job)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if argv[0] != "fio" {
			t.Errorf("%s: %q is run", name, argv[0])
		}
		var own []string
		missing := slices.Clone(always)
		for _, arg := range argv[1:] {
			if i := slices.Index(missing, arg); i >= 0 {
				missing = slices.Delete(missing, i, i+1)
			} else {
				own = append(own, arg)
			}
		}
		if got := strings.Join(own, " "); got != test.want || len(missing) > 0 {
			t.Errorf("%s: missing %q; beside what is always there:\n%s\nnot\n%s", name, missing, got, test.want)
		}
	}
}

func TestCommandRefuses(t *testing.T) {
	good := bench.Job{RW: bench.RandRW, Runtime: time.Second}
	split := []bench.SizeShare{{BS: 4096, Percent: 100}}
	for _, test := range []struct {
		want    string
		devices []string
		change  func(*bench.Job)
	}{
		{"hipri=50%", []string{"/a"}, func(j *bench.Job) { j.HiPri = 50 }},
		{"bssplit", []string{"/a"}, func(j *bench.Job) { j.RateIOPS, j.BSSplit[1] = 100, split }},
		{"offset", []string{"/a", "/b"}, func(j *bench.Job) { j.Offset = 4096 }},
		{"runtime", []string{"/a"}, func(j *bench.Job) { j.Runtime = 0 }},
		{"runtime=1µs", []string{"/a"}, func(j *bench.Job) { j.Runtime = time.Microsecond }},
		{"ramp-time", []string{"/a"}, func(j *bench.Job) { j.Runtime, j.RampTime, j.IOSize = 0, time.Second, 1 }},
		{"rate-iops=1 ", []string{"/a"}, func(j *bench.Job) { j.RateIOPS = 1 }},
		{"device", nil, func(*bench.Job) {}},
		{"blank", []string{"/a "}, func(*bench.Job) {}},
	} {
		job := good
		test.change(&job)
		argv, err := Command(test.devices, job)
		if !errors.Is(err, ErrJob) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %q", test.want, err, argv)
		}
	}
	if _, err := Command([]string{"/a"}, good); err != nil {
		t.Errorf("what all of these were made of: %v", err)
	}
}
