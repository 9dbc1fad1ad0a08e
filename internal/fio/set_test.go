// SPDX-License-Identifier: Apache-2.0

package fio

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"pollux/internal/bench"
	"pollux/poller"
)

// options of a line as on a command line.
func split(line string) []Option {
	var list []Option
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		name, value, ok := strings.Cut(strings.TrimPrefix(words[i], "--"), "=")
		if !ok && !NeedsNoValue(Canonical(name)) && i+1 < len(words) {
			i++
			value = words[i]
		}
		list = append(list, Option{Name: name, Value: value})
	}
	return list
}

const gib = 1 << 30

func jobsOf(t *testing.T, line string) []bench.Job {
	t.Helper()
	s, err := Parse(split(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	jobs, err := s.Jobs(gib, 512, time.Minute)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return jobs
}

func TestOneJob(t *testing.T) {
	base := bench.Job{HiPri: 100, Runtime: time.Minute}
	for line, change := range map[string]func(j *bench.Job){
		"":                            func(*bench.Job) {},
		"--rw randwrite":              func(j *bench.Job) { j.RW = bench.RandWrite },
		"--readwrite=rw":              func(j *bench.Job) { j.RW = bench.ReadWrite },
		"--rw=randrw --rwmixread=30":  func(j *bench.Job) { j.RW, j.RWMixRead = bench.RandRW, 30 },
		"--rwmixwrite=30 --rw=randrw": func(j *bench.Job) { j.RW, j.RWMixRead = bench.RandRW, 70 },
		"--rw=rw --rwmixread=0":       func(j *bench.Job) { j.RW = bench.Write },
		"--rw=randrw --rwmixwrite=0 --rwmixread=100": func(j *bench.Job) { j.RW = bench.RandRead },
		"--rwmixread=30": func(*bench.Job) {},
		"--bs=8k":        func(j *bench.Job) { j.BS = 8192 },
		"--blocksize=4k,64k": func(j *bench.Job) {
			j.BSSplit = [2][]bench.SizeShare{{{BS: 4096, Percent: 100}}, {{BS: 65536, Percent: 100}}}
		},
		"--bssplit=4k/60:8k/40": func(j *bench.Job) {
			both := []bench.SizeShare{{BS: 4096, Percent: 60}, {BS: 8192, Percent: 40}}
			j.BSSplit = [2][]bench.SizeShare{both, both}
		},
		"--bssplit=4k/50:8k:16k,512/100": func(j *bench.Job) {
			j.BSSplit = [2][]bench.SizeShare{{{BS: 4096, Percent: 50}, {BS: 8192, Percent: 25}, {BS: 16384, Percent: 25}}, {{BS: 512, Percent: 100}}}
		},
		"--iodepth=32 --iodepth_batch=8 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=32": func(j *bench.Job) {
			j.IODepth, j.IODepthBatch, j.BatchCompleteMin, j.BatchCompleteMax = 32, 8, 1, 32
		},
		"--iodepth-batch-submit 2 --iodepth-batch-complete 2": func(j *bench.Job) {
			j.IODepthBatch, j.BatchCompleteMin, j.BatchCompleteMax = 2, 2, 2
		},
		"--numjobs=4":                  func(j *bench.Job) { j.NumJobs = 4 },
		"--fixedbufs":                  func(*bench.Job) {},
		"--fixedbufs=0":                func(j *bench.Job) { j.NoFixedBufs = true },
		"--hipri":                      func(*bench.Job) {},
		"--hipri=0":                    func(j *bench.Job) { j.HiPri = 0 },
		"--hipri=50%":                  func(j *bench.Job) { j.HiPri = 50 },
		"--hipri=1":                    func(*bench.Job) {},
		"--ioengine=io_uring":          func(j *bench.Job) { j.HiPri = 0 },
		"--ioengine=pvsync":            func(j *bench.Job) { j.HiPri = 0 },
		"--ioengine=pv2sync":           func(*bench.Job) {},
		"--ioengine=pvsync2":           func(*bench.Job) {},
		"--hipri --ioengine=io_uring":  func(*bench.Job) {},
		"--ioengine=pvsync2 --hipri=0": func(j *bench.Job) { j.HiPri = 0 },
		"--size=1m --offset=1m":        func(j *bench.Job) { j.Size, j.Offset = 1<<20, 1<<20 },
		"--size=50% --offset=25%":      func(j *bench.Job) { j.Size, j.Offset = gib/2, gib/4 },
		"--size=33%":                   func(j *bench.Job) { j.Size = 354332672 },
		"--io_size=1g":                 func(j *bench.Job) { j.IOSize, j.Runtime = gib, 0 },
		"--runtime=30":                 func(j *bench.Job) { j.Runtime = 30 * time.Second },
		"--runtime=30 --timeout=500ms": func(j *bench.Job) { j.Runtime = 500 * time.Millisecond },
		"--ramp_time=2":                func(j *bench.Job) { j.RampTime = 2 * time.Second },
		"--ramp_time=0":                func(*bench.Job) {},
		"--rate_iops=100":              func(j *bench.Job) { j.RateIOPS = 100 },
		"--randseed=7":                 func(j *bench.Job) { j.Seed = 7 },
		"--dsync --nowait 1":           func(j *bench.Job) { j.DSync, j.NoWait = true, true },
		"--sync=dsync":                 func(j *bench.Job) { j.DSync = true },
		"--sync=none":                  func(*bench.Job) {},
		"--prio=3":                     func(j *bench.Job) { j.Priority = 2<<13 | 3 },
		"--prioclass=1 --prio=7":       func(j *bench.Job) { j.Priority = 1<<13 | 7 },
		"--prioclass=3":                func(j *bench.Job) { j.Priority = 3 << 13 },
		"--name=x":                     func(j *bench.Job) { j.Name = "x" },
	} {
		want := base
		change(&want)
		if got := jobsOf(t, line); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	for line, want := range map[string]string{
		"--mem=malloc":                           "fio's option mem is not supported",
		"--frobnicate":                           "option frobnicate is unknown, to fio as well",
		"--bssplit=4k/51:8k/50:16k:32k":          "do not add up to 100",
		"--bs=,":                                 "no size",
		"--job=1 --name=x":                       "is unknown",
		"--name=x --name=global --bs=8k":         "option bs comes after all jobs and reaches none",
		"--direct":                               "option direct needs a value",
		"--nowait":                               "option nowait needs a value",
		"--rw=trim":                              `option rw: "trim"`,
		"--rw":                                   "option rw needs a value",
		"--bs=0":                                 "option bs",
		"--bs=4k,4k,4k":                          "trims",
		"--bssplit=4k/60:8k/50":                  "do not add up to 100",
		"--bssplit=4k/60:8k/50:1k":               "do not add up to 100",
		"--bssplit=4k/x":                         `"x" is no percentage`,
		"--bssplit=4k/60:8k/40,4k/99":            "do not add up to 100",
		"--bssplit=/60":                          "not a size",
		"--iodepth=0":                            "at least 1",
		"--iodepth=99999999999":                  "at least 1",
		"--hipri=101%":                           "not a percentage",
		"--hipri=maybe":                          "neither on nor off, nor 1 nor 0, nor a percentage",
		"--fixedbufs=2":                          "neither on nor off",
		"--rw=rw --rwmixread=30 --rwmixwrite=30": "do not add up to 100",
		"--rwmixread=101":                        "from 0 to 100",
		"--prio=8":                               "from 0 to 7",
		"--prio=3 --prioclass=0":                 "no meaning in prioclass 0",
		"--prioclass=4":                          "from 0 to 3",
		"--size=101%":                            "not a percentage",
		"--size=-1":                              "not a size",
		"--runtime=0":                            "more than 0",
		"--ramp_time=-1":                         "option ramp_time",
		"--seed=-1":                              "option seed",
		"--sync=maybe":                           "none of none, sync, dsync",
		"--name=":                                "name needs a value",
		"--name=a --name=b --bs=x":               `option bs: "x"`,
		"--name=a --rw=rw --rwmixread=1 --rwmixwrite=1": "job a: rwmixread 1 and rwmixwrite 1",
		"--filename=": "option filename needs a value",
		"--=":         "is unknown",
	} {
		if _, err := Parse(split(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// The option lines of the published experiments.
func TestPublishedLines(t *testing.T) {
	const first = "--name lowpri --filename=/dev/nvme0n1 --size=1G --direct=1 --ioengine=pvsync --rw=randread --bs=4k --runtime=30 --numjobs=5 --iodepth=1 --randrepeat=0 --refill_buffers " +
		"--name hipri --filename=/dev/nvme0n1 --size=1G --direct=1 --ioengine=pv2sync --rw=randread --bs=4k --runtime=30 --numjobs=5 --iodepth=1 --randrepeat=0 --refill_buffers"
	s, err := Parse(split(first))
	if err != nil {
		t.Fatal(err)
	}
	job := bench.Job{Name: "lowpri", NumJobs: 5, RW: bench.RandRead, BS: 4096, IODepth: 1, Size: gib, Runtime: 30 * time.Second}
	hipri := job
	hipri.Name, hipri.HiPri = "hipri", 100
	if got, err := s.Jobs(gib, 512, 1); err != nil || !reflect.DeepEqual(got, []bench.Job{job, hipri}) {
		t.Errorf("%+v", got)
	}
	if got := strings.Join(s.Ignored, " "); got != "filename=/dev/nvme0n1 direct=1 ioengine=pvsync randrepeat=0 refill_buffers ioengine=pv2sync" {
		t.Errorf("ignored: %s", got)
	}
	if s.Writes() || !s.Polls() || s.Len() != 2 {
		t.Errorf("writes %v, polls %v, %d jobs", s.Writes(), s.Polls(), s.Len())
	}
	const third = "--time_based --runtime=60 --thread --rw=randread --refill_buffers --direct=1 --ioengine=io_uring --hipri --fixedbufs --bs=4k --iodepth=32 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=32 --iodepth_batch=8 --group_reporting --gtod_reduce=0 --disable_lat=0"
	got := jobsOf(t, third)
	want := bench.Job{RW: bench.RandRead, BS: 4096, IODepth: 32, IODepthBatch: 8, BatchCompleteMin: 1, BatchCompleteMax: 32, HiPri: 100, Runtime: time.Minute}
	if !reflect.DeepEqual(got, []bench.Job{want}) {
		t.Errorf("%+v", got)
	}
}

// Defaults reach the jobs after them; an option of a job reaches no other.
func TestDefaults(t *testing.T) {
	got := jobsOf(t, "--bs=8k --name=a --iodepth=2 --name=global --bs=16k --name=b --name=c --bs=1k")
	if len(got) != 3 || got[0].BS != 8192 || got[0].IODepth != 2 || got[1].BS != 16384 || got[1].IODepth != 0 || got[2].BS != 1024 {
		t.Errorf("%+v", got)
	}
}

// A job's own mix replaces the one of the defaults.
func TestMixOfDefaults(t *testing.T) {
	got := jobsOf(t, "--rw=randrw --rwmixread=70 --name=a --rwmixwrite=50 --name=b --name=c --rwmixread=10")
	if got[0].RWMixRead != 50 || got[1].RWMixRead != 70 || got[2].RWMixRead != 10 {
		t.Errorf("%+v", got)
	}
}

// A percentage that comes to nothing is no request for all.
func TestPercentageOfNothing(t *testing.T) {
	for _, line := range []string{"--size=1% --rw=write", "--io_size=1%", "--size=50% --offset=100%"} {
		s, err := Parse(split(line))
		if err != nil {
			t.Fatal(err)
		}
		if jobs, err := s.Jobs(32<<10, 512, 1); err == nil || !strings.Contains(err.Error(), "less than one I/O") {
			t.Errorf("%s: %+v, %v", line, jobs, err)
		}
	}
}

func TestReadFile(t *testing.T) {
	const file = "# a comment\n; and another\n\n[global]\nbs = 8k ; half of it\nthread\n[ a ] # the first\nrw=randread\n[global2]\nbs=16k\n[b]\nhipri\nioengine=io_uring\n"
	list, err := ReadFile(strings.NewReader(file), "x.fio")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(append(list, Option{Name: "name", Value: "c"}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Jobs(gib, 512, 1)
	if err != nil || len(got) != 3 || got[0].Name != "a" || got[0].BS != 8192 || got[0].RW != bench.RandRead ||
		got[1].Name != "b" || got[1].BS != 16384 || got[1].HiPri != 100 || got[2].BS != 16384 {
		t.Errorf("%+v", got)
	}
	if strings.Join(s.Ignored, " ") != "thread ioengine=io_uring" {
		t.Errorf("ignored: %v", s.Ignored)
	}
	for text, want := range map[string]string{
		"":                                   "x.fio: no job in it",
		"[global]\nbs=4k":                    "x.fio: no job in it",
		"bs=4k":                              "x.fio, line 1: option bs stands before the first [section]",
		"[a]\n=4k":                           "x.fio, line 2",
		"[a]\nbs=":                           "x.fio, line 2: option bs has no value",
		"[a\n":                               "x.fio, line 1",
		"[]\n":                               "x.fio, line 1",
		"[a]\nname=b":                        "x.fio, line 2: the name of a job",
		"[a]\n\nmem=x":                       "x.fio, line 3: fio's option mem is not supported",
		"[a]\nbs=x":                          `x.fio, line 2: option bs: "x"`,
		"[a]\n" + strings.Repeat("x", 1<<17): "x.fio: ",
	} {
		list, err := ReadFile(strings.NewReader(text), "x.fio")
		if err == nil {
			_, err = Parse(list)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}

// What a set passes on as valid the benches can prepare, or refuse in good order; and
// nothing panics.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"--name=a --rw=randrw --rwmixread=10 --bssplit=4k/60:8k/40,4k/100", "--hipri=50% --size=50% --offset=10%",
		"--bs=4k,8k --prio=1 --prioclass=2", "--name=global --bs=4k --name=x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, err := Parse(split(line))
		if err != nil {
			if strings.Contains(err.Error(), "\n") && !strings.Contains(line, "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		jobs, err := s.Jobs(gib, 512, time.Second)
		if err != nil {
			return
		}
		for _, j := range jobs {
			if j.Size < 0 || j.Offset < 0 || j.Runtime == 0 && j.IOSize == 0 || j.HiPri < 0 || j.HiPri > 100 {
				t.Errorf("%q: %+v", line, j)
			}
			for _, shares := range j.BSSplit {
				sum := 0
				for _, share := range shares {
					sum += share.Percent
					if share.Percent < 0 {
						t.Errorf("%q: shares %v", line, shares)
					}
				}
				if shares != nil && sum != 100 {
					t.Errorf("%q: shares %v", line, shares)
				}
			}
		}
	})
}

func FuzzReadFile(f *testing.F) {
	f.Add("[global]\nbs=4k\n[a]\nrw=randread\n")
	f.Add("; c\n[x]\nhipri\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ReadFile(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		if s, err := Parse(list); err == nil && s.Len() == 0 {
			t.Error("no job")
		}
	})
}

// The real fio takes the same values for valid.
func TestFioAgrees(t *testing.T) {
	fio, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("fio is missing (Debian package fio; scripts/test installs it)")
	}
	for _, line := range []string{
		"--rw=randrw --rwmixread=30", "--rw=nonsense", "--bs=4k,8k", "--bs=nonsense", "--bssplit=4k/60:8k/40", "--bssplit=4k/50:8k:16k,512/100",
		"--iodepth=x", "--iodepth=4 --iodepth_batch=2 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=4",
		"--numjobs=x", "--size=50%", "--offset=25%", "--runtime=30", "--runtime=x", "--ramp_time=2", "--rate_iops=100", "--prio=8", "--prio=7 --prioclass=2",
		"--prioclass=4", "--sync=dsync", "--rwmixread=101", "--randseed=7", "--io_size=1g", "--readwrite=rw", "--time_based --runtime=5 --thread --group_reporting",
		"--blocksize=64k", "--timeout=3", "--name=b --bs=8k",
	} {
		_, ours := Parse(append([]Option{{Name: "name", Value: "a"}}, split(line)...))
		args := append([]string{"--parse-only", "--name=a", "--filename=/dev/null"}, strings.Fields(line)...)
		out, theirs := exec.CommandContext(t.Context(), fio, args...).CombinedOutput()
		if (ours == nil) != (theirs == nil) {
			t.Errorf("%s: we say %v, fio %v: %s", line, ours, theirs, out)
		}
	}
}

func TestPriorityIsThatOfTheKernel(t *testing.T) {
	p, err := poller.NewPriority(poller.PriorityRealtime, 4)
	if got := jobsOf(t, "--prioclass=1 --prio=4")[0].Priority; err != nil || got != p {
		t.Errorf("%v, want %v, %v", got, p, err)
	}
}
