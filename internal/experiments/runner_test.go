// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program writes a shell script and returns its path.
func program(t *testing.T, script string) string {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	polluxOutput = `{"jobs":[{"jobname":"j","error":0,"read":{"total_ios":5,"iops":5,"clat_ns":{"mean":9000}},"pollux":{"polled_ios":5}}],"pollux":{"group":{"interrupts":3}}}`
	fioOutputs   = `{"jobs":[{"jobname":"f","error":0,"read":{"total_ios":5,"iops":5,"lat_ns":{"mean":9000}}}]}`
)

// fakes returns programs that note how they were called and print figures.
func fakes(t *testing.T) (pollux, fio, calls string) {
	calls = filepath.Join(t.TempDir(), "calls")
	body := "echo \"$0 $*\" >>" + calls + "\ncase \"$*\" in *--version*) echo version 1;; *) echo '%s';; esac\n"
	return program(t, fmt.Sprintf(body, polluxOutput)), program(t, fmt.Sprintf(body, fioOutputs)), calls
}

// TestPlan: every measurement of an experiment is made as often as it is to be, with
// all of the options that make it comparable.
func TestPlan(t *testing.T) {
	pollux, fio, calls := fakes(t)
	measure := func(experiment int, setup string, devices ...string) *Boot {
		t.Helper()
		var log bytes.Buffer
		b, err := Measure(t.Context(), Config{Experiment: experiment, Number: 7, Setup: setup, Devices: devices, Pollux: pollux, Fio: fio, Log: &log})
		if err != nil {
			t.Fatal(err)
		}
		if b.Number != 7 || b.Guest.Pollux != "version 1" || b.Guest.Fio != "version 1" || log.Len() == 0 {
			t.Errorf("boot %+v, log %q", b.Guest, log.String())
		}
		return b
	}
	count := func(b *Boot) map[string]int {
		n := map[string]int{}
		for _, s := range b.Samples {
			if s.Error != "" {
				t.Errorf("%s: %s", s.Command, s.Error)
			}
			n[fmt.Sprint(s.Case, " ", s.Tool, " ", s.Target, " ", s.Polling, " ", s.NumJobs, "x", s.IODepth)]++
		}
		return n
	}
	for _, c := range []struct {
		boot *Boot
		want map[string]int
	}{
		{measure(1, SetupOneCPU, "a", "b"), map[string]int{
			"half pollux stripe over two drives mixed 1x1": firstRounds,
			"alone pollux one drive on 1x1":                rivalRounds, "alone pollux one drive off 1x1": rivalRounds,
			"alone fio one drive on 1x1": rivalRounds, "alone fio one drive off 1x1": rivalRounds,
		}},
		{measure(1, SetupTwoCPUs, "a", "b"), map[string]int{
			"1+1 pollux stripe over two drives mixed 1x1": firstRounds,
			"5+5 pollux stripe over two drives mixed 5x1": rivalRounds, "5+5 fio one drive mixed 5x1": rivalRounds,
		}},
		{measure(3, SetupHost, "a"), map[string]int{
			"paths pollux one path on 1x1": thirdRounds, "paths pollux one path off 1x1": thirdRounds,
			"paths pollux one path on 1x32": thirdRounds, "paths pollux one path off 1x32": thirdRounds,
			"paths pollux one path on 16x32": thirdRounds, "paths pollux one path off 16x32": thirdRounds,
			"paths fio one path on 1x1": 1, "paths fio one path off 1x1": 1, "paths fio one path on 1x32": 1,
			"paths fio one path off 1x32": 1, "paths fio one path on 16x32": 1, "paths fio one path off 16x32": 1,
		}},
	} {
		got := count(c.boot)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("experiment %d on %s:\n got %v\nwant %v", c.boot.Experiment, c.boot.Setup, got, c.want)
		}
		for _, s := range c.boot.Samples {
			if s.Tool == ToolPollux && (s.Interrupts == nil || *s.Interrupts != 3) {
				t.Errorf("%s: interrupts %v", s.Command, s.Interrupts)
			}
		}
	}
	data, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "--version") {
			continue
		}
		for _, option := range []string{"randread", "64M", "ms", "json"} {
			if !strings.Contains(line, option) && !strings.Contains(line, "--runtime=1.5s") && !strings.Contains(line, "--runtime=800ms") {
				t.Errorf("no %s in %s", option, line)
			}
		}
		if strings.Contains(line, "destructive") {
			t.Errorf("this writes, and nobody asked for it: %s", line)
		}
	}
}

// TestPublishedLine: the line is the one that was published, word for word but for what
// is varied.
func TestPublishedLine(t *testing.T) {
	const want = "--time_based --runtime=60 --thread --rw=randread --refill_buffers --direct=1 --ioengine=io_uring --hipri --fixedbufs --bs=4k --iodepth=32 --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=32 --iodepth_batch=8 --group_reporting --gtod_reduce=0 --disable_lat=0"
	got := fmt.Sprintf(publishedLine, "60", "1", 32, 8, 16)
	got = strings.Replace(got, "--hipri=1", "--hipri", 1)
	if got != want+" --numjobs=16 --size=64M --norandommap" {
		t.Errorf("the line is\n%s", got)
	}
}

func TestMeasureRefuses(t *testing.T) {
	pollux, fio, _ := fakes(t)
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Experiment: 4, Devices: []string{"a", "b"}}, "no experiment 4"},
		{Config{Experiment: 1, Devices: []string{"a"}}, "needs 2 drives"},
		{Config{Experiment: 3}, "needs 1 drives"},
		{Config{Experiment: 1, Devices: []string{"a", "b"}, Pollux: "/nowhere/pollux"}, "/nowhere/pollux: cannot be run"},
		{Config{Experiment: 1, Devices: []string{"a", "b"}, Pollux: pollux, Fio: "/nowhere/fio"}, "/nowhere/fio: cannot be run"},
		{Config{Experiment: 2, Devices: []string{"/nowhere/a", "b"}, Pollux: pollux, Fio: fio}, "/nowhere/a: sysfs does not say"},
		{Config{Experiment: 3, Setup: SetupMultipath, Devices: []string{"a"}, Pollux: pollux, Fio: fio}, "/dev/nullb0: no such block device"},
	} {
		c.config.Log = &bytes.Buffer{}
		if _, err := Measure(t.Context(), c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v instead of %q", c.config, err, c.want)
		}
	}
}

// TestRunFails: what a program says when it fails is in the sample, and ends nothing.
func TestRunFails(t *testing.T) {
	r := &runner{ctx: t.Context(), boot: &Boot{}, Config: Config{
		Fio: program(t, "echo 'fio: io_u error on file x: Operation not supported: read offset=1, buflen=2' >&2; exit 1")}}
	r.fio(Key{Case: CaseSweep}, 1, nil, 0, "--name=x")
	if s := r.boot.Samples[0]; s.Error != "fio: io_u error on file x: Operation not supported" || s.Parts != nil || s.Tool != ToolFio {
		t.Errorf("%+v", s)
	}
	// Figures before an exit code other than 0 do not count.
	r.Fio = program(t, "echo '"+fioOutputs+"'; exit 3")
	r.fio(Key{Case: CaseSweep}, 1, nil, 0, "--name=x")
	if s := r.boot.Samples[1]; s.Error != "exit status 3" || s.Parts != nil {
		t.Errorf("%+v", s)
	}
}

// TestRunIsKilled: a program that does not end is killed with its children.
func TestRunIsKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	r := &runner{ctx: t.Context(), boot: &Boot{}}
	began := time.Now()
	_, stderr, err := r.output(300*time.Millisecond, program(t, "sleep 60 & echo $! >"+file+"; wait"))
	if got := failure(err, stderr); got != timedOut {
		t.Errorf("it ended with %q", got)
	}
	if d := time.Since(began); d > 30*time.Second {
		t.Errorf("after %v", d)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if !waitFor(t.Context(), 10*time.Second, func() bool { return gone(pid) }) {
		t.Errorf("its child %d lives on", pid)
	}
}

// gone says that a process has ended. Who is to reap it may take its time.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// TestCancelled: after Ctrl-C there are no samples of what it cut.
func TestCancelled(t *testing.T) {
	pollux, _, _ := fakes(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &runner{ctx: ctx, boot: &Boot{}, Config: Config{Pollux: pollux}}
	r.pollux(Key{}, 1, nil, 0, []string{"a"})
	if len(r.boot.Samples) != 0 {
		t.Errorf("%+v", r.boot.Samples)
	}
}

func TestInTurn(t *testing.T) {
	if got := fmt.Sprint(inTurn(0, 1, 2, 3), inTurn(1, 1, 2, 3), inTurn(2, 1, 2, 3)); got != "[1 2 3] [3 2 1] [1 2 3]" {
		t.Error(got)
	}
}
