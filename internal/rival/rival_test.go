// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/internal/bench"
)

const fileSize = 4 << 20

// newFile makes a file that is as large as a job needs, and whose name fio might
// misread.
func newFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), `a:b c,d\e`)
	if err := os.WriteFile(path, bytes.Repeat([]byte{0x5A}, fileSize), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// needFio skips where jobs cannot be run at all.
func needFio(t *testing.T, path string) {
	t.Helper()
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skip("fio is missing (Debian package fio; scripts/test installs it)")
	}
	out, err := exec.Command("fio", "--name=try", "--filename="+strings.ReplaceAll(path, ":", `\:`), "--ioengine=io_uring", "--direct=1",
		"--rw=read", "--bs=4k", "--io_size=4k", "--readonly").CombinedOutput()
	if err != nil {
		t.Skipf("fio cannot do direct I/O by io_uring on files in TMPDIR here: %.300s", out)
	}
}

func TestRunFio(t *testing.T) {
	a, b := newFile(t), newFile(t)
	needFio(t, a)
	for name, test := range map[string]struct {
		devices []string
		job     bench.Job
		ios     uint64 // 0: some
	}{
		"reads":     {[]string{a}, bench.Job{RW: bench.RandRead, IODepth: 8, IOSize: 2 << 20}, 512},
		"two files": {[]string{a, b}, bench.Job{RW: bench.Read, IODepth: 4, BS: 8192, Size: 2 * fileSize, IOSize: 2 * fileSize}, 1024},
		"jobs":      {[]string{a}, bench.Job{RW: bench.RandRead, NumJobs: 3, IODepth: 4, IODepthBatch: 2, IOSize: 1 << 20, Seed: 3}, 768},
		"time":      {[]string{a}, bench.Job{RW: bench.RandRead, Size: 1 << 20, Runtime: 300 * time.Millisecond, RampTime: 100 * time.Millisecond}, 0},
		"rate":      {[]string{a}, bench.Job{RW: bench.RandRead, IODepth: 4, RateIOPS: 500, Runtime: 600 * time.Millisecond}, 0},
		"writes":    {[]string{b}, bench.Job{RW: bench.RandRW, IODepth: 4, DSync: true, IOSize: 128 << 10, NoFixedBufs: true}, 32},
		"sizes": {[]string{a}, bench.Job{RW: bench.RandRead, IODepth: 4, Runtime: 300 * time.Millisecond,
			BSSplit: [2][]bench.SizeShare{{{BS: 4096, Percent: 50}, {BS: 65536, Percent: 50}}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Run(t.Context(), test.devices, test.job, true)
			if err != nil {
				t.Fatal(err)
			}
			if f.IOs == 0 || test.ios > 0 && f.IOs != test.ios {
				t.Errorf("%d I/Os, not %d", f.IOs, test.ios)
			}
			if rate := test.job.RateIOPS; rate > 0 && (f.IOPS > 1.2*float64(rate) || f.IOPS < .3*float64(rate)) {
				t.Errorf("%.0f IOPS where %d were asked for", f.IOPS, rate)
			}
			if f.IOPS <= 0 || f.LatencyMean < 100 || f.LatencyMean > 1e9 || f.LatencyP9999 < f.LatencyMean || !strings.HasPrefix(f.Version, "fio-") {
				t.Errorf("figures %+v", f)
			}
		})
	}
	for _, path := range []string{a, b} {
		if info, err := os.Stat(path); err != nil || info.Size() != fileSize {
			t.Errorf("%v, %v", info, err)
		}
	}
	if left, err := os.ReadFile(a); err != nil || !bytes.Equal(left, bytes.Repeat([]byte{0x5A}, fileSize)) {
		t.Errorf("reads have written: %v", err)
	}
}

// A file is not polled, and fio says so.
func TestRunFioFails(t *testing.T) {
	path := newFile(t)
	needFio(t, path)
	_, err := Run(t.Context(), []string{path}, bench.Job{RW: bench.RandRead, HiPri: 100, IOSize: 1 << 20}, false)
	if !errors.Is(err, ErrFio) {
		t.Fatal(err)
	}
	for _, want := range []string{path, "not supported", "compare with hipri off"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q does not say %q in one line", err, want)
		}
	}
}

// What fio must not be given it is not given.
func TestRunRefuses(t *testing.T) {
	marker := fakeFio(t, `echo ran >"$MARKER"`)
	path, dir := newFile(t), t.TempDir()
	missing := filepath.Join(dir, "missing")
	read := bench.Job{RW: bench.RandRead, Runtime: time.Second}
	write, large, beyond, polled := read, read, read, read
	write.RW = bench.RandRW
	large.Size = fileSize + 4096
	beyond.Offset = fileSize
	polled.HiPri = 20
	for name, test := range map[string]struct {
		device string
		job    bench.Job
		is     error
		want   string
	}{
		"writes":       {path, write, ErrDestructive, path},
		"missing":      {missing, read, ErrDevice, missing},
		"folder":       {dir, read, ErrDevice, "neither"},
		"character":    {"/dev/null", read, ErrDevice, "neither"},
		"too large":    {path, large, ErrDevice, "has 4MiB"},
		"offset":       {path, beyond, ErrDevice, "has 4MiB"},
		"partly hipri": {path, polled, ErrJob, "hipri=20%"},
	} {
		_, err := Run(t.Context(), []string{path, test.device}[1:], test.job, false)
		if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Run(t.Context(), []string{path, missing}, read, false); !errors.Is(err, ErrDevice) {
		t.Errorf("the second device: %v", err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("a file was made")
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("fio was run")
	}
	if _, err := Run(t.Context(), []string{path}, read, false); !errors.Is(err, ErrFio) {
		t.Error(err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error("the fake fio is not what is run")
	}
}

// fakeFio puts a shell script in the place of fio, and returns the file $MARKER.
func fakeFio(t *testing.T, script string) (marker string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fio"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	marker = filepath.Join(dir, "marker")
	t.Setenv("MARKER", marker)
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return marker
}

func TestFakeFio(t *testing.T) {
	path := newFile(t)
	job := bench.Job{RW: bench.RandRead, IOSize: 1 << 20}
	const good = `{"fio version":"fio-9","jobs":[{"error":0,"mixed":{"total_ios":5,"iops":2.5,"clat_ns":{"mean":7,"percentile":{"99.990000":9}}}}]}`
	for name, test := range map[string]struct{ script, want string }{
		"nothing":       {"", "no JSON"},
		"garbage":       {"echo '{ what'", "JSON cannot be read"},
		"other JSON":    {"echo '{}'", "not that of one job"},
		"wrong types":   {`echo '{"jobs":"none"}'`, "JSON cannot be read"},
		"two jobs":      {`echo '{"jobs":[{},{}]}'`, "not that of one job"},
		"not mixed":     {`echo '{"jobs":[{"read":{}}]}'`, "not that of one job"},
		"no percentile": {`echo '{"jobs":[{"mixed":{"total_ios":5}}]}'`, "no 99.99th"},
		"no I/O":        {`echo '{"jobs":[{"mixed":{"total_ios":0}}]}'`, "did no I/O"},
		"short I/O":     {"echo '" + strings.Replace(good, `"iops"`, `"short_ios":3,"iops"`, 1) + "'", "3 I/Os that were cut short"},
		"silent exit":   {"exit 1", "exit status 1"},
		"complaint":     {"echo 'fio: io_u error on file x: Input/output error' >&2; echo more >&2; exit 1", "failed: io_u error on file x: Input/output error"},
		"on stdout":     {"echo 'fio: pid=1, err=5'; exit 1", "failed: pid=1, err=5"},
		"usage":         {"printf 'Bad\\n option\\n' >&2; exit 2", "failed: Bad option"},
		"error in JSON": {"echo '" + strings.Replace(good, `"error":0`, `"error":5`, 1) + "'", "failed: input/output error"},
		"EINVAL":        {"echo '" + strings.Replace(good, `"error":0`, `"error":22`, 1) + "'", "direct I/O"},
		"good, exit 1":  {"echo '" + good + "'; exit 1", "exit status 1"},
		"killed":        {"kill -9 $$", "killed"},
		"endless":       {"exec yes", "does not end"},
		"long":          {"head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", "xxx..."},
	} {
		t.Run(name, func(t *testing.T) {
			fakeFio(t, test.script)
			f, err := Run(t.Context(), []string{path}, job, false)
			if !errors.Is(err, ErrFio) || f != (Figures{}) {
				t.Fatalf("%+v, %v", f, err)
			}
			if s := err.Error(); !strings.Contains(s, test.want) || strings.Contains(s, "\n") || len(s) > 1000 {
				t.Errorf("%.2000q does not say %q in one line", s, test.want)
			}
		})
	}
	fakeFio(t, "echo 'a note first'; echo '"+good+"'; echo 'fio: a warning' >&2")
	want := Figures{IOPS: 2.5, LatencyMean: 7, LatencyP9999: 9, Version: "fio-9", IOs: 5}
	if f, err := Run(t.Context(), []string{path}, job, false); err != nil || f != want {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestNoFio(t *testing.T) {
	path := newFile(t)
	t.Setenv("PATH", t.TempDir())
	_, err := Run(t.Context(), []string{path}, bench.Job{RW: bench.RandRead, IOSize: 1 << 20}, false)
	if !errors.Is(err, ErrFio) || !strings.Contains(err.Error(), "install the Debian package fio") {
		t.Error(err)
	}
}

// A fio that hangs, with a child that ignores what can be ignored, is gone when Run
// returns; so is a child that outlives it.
func TestNothingIsLeft(t *testing.T) {
	path := newFile(t)
	job := bench.Job{RW: bench.RandRead, Runtime: time.Second}
	const child = "(trap '' TERM INT HUP; while :; do sleep 1; done) & echo $! $$ >\"$MARKER.new\"; mv \"$MARKER.new\" \"$MARKER\"; "
	errStop := errors.New("enough")
	for name, script := range map[string]string{
		"cancelled":    "trap '' TERM INT; " + child + "while :; do sleep 1; done",
		"left a child": child + "exit 0",
		"and failed":   child + "exit 1",
	} {
		t.Run(name, func(t *testing.T) {
			marker := fakeFio(t, script)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			running := make(chan struct{})
			go func() {
				defer close(running)
				for ctx.Err() == nil {
					if _, err := os.Stat(marker); err == nil {
						break
					}
					time.Sleep(time.Millisecond)
				}
				if name == "cancelled" {
					cancel(errStop)
				}
			}()
			start := time.Now()
			_, err := Run(ctx, []string{path}, job, false)
			took := time.Since(start)
			cancel(nil)
			<-running
			switch {
			case took > 20*time.Second:
				t.Errorf("it took %v", took)
			case name == "cancelled" && !errors.Is(err, errStop):
				t.Errorf("cancelled, and %v", err)
			case name != "cancelled" && !errors.Is(err, ErrFio):
				t.Error(err)
			}
			pids, err := os.ReadFile(marker)
			if err != nil {
				t.Fatal(err)
			}
			for pid := range strings.FieldsSeq(string(pids)) {
				waitGone(t, pid)
			}
		})
	}
}

// waitGone waits until a killed process, which is nobody's child any more, is no
// longer there but as a zombie.
func waitGone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 1 {
		t.Fatalf("process %q", pid)
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(n, 0) == syscall.ESRCH {
			return
		}
		// The state is behind the name, which is in brackets.
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n)); err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
	}
	t.Errorf("process %d is still there", n)
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

// A context that is done already starts nothing, and its reason is told.
func TestDoneContext(t *testing.T) {
	marker := fakeFio(t, `echo ran >"$MARKER"`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, []string{newFile(t)}, bench.Job{RW: bench.RandRead, Runtime: time.Second}, false)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("fio was started")
	}
}
