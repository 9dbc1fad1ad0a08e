// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// Here create and destroy are cut for real: strace kills the process on the way
// into its Nth write or sync, for every N, or makes that call fail. Whatever is
// left then must be a whole volume, or none over which create works without
// --force.

// oneThread is set in the environment of a process that is to do all its system
// calls of the main goroutine in one thread, as strace counts by thread.
const oneThread = "POLLUX_TEST_ONE_THREAD"

func init() {
	if os.Getenv(oneThread) != "" {
		runtime.LockOSThread() // in init: main then runs in this thread
	}
}

// memberSize has room for one MiB of data.
const memberSize = 3 << 20

// cutCall is a system call of the traced process, the nth of its name from 1.
type cutCall struct {
	name string
	nth  int
}

func (c cutCall) String() string { return fmt.Sprintf("%s-%d", c.name, c.nth) }

// traced runs pollux under strace, with an injection unless it is "", and returns
// the writes and syncs that it made, in their order, up to last where that is not
// zero.
func traced(t *testing.T, inject string, last cutCall, args ...string) (calls []cutCall, state *os.ProcessState, stderr string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatalf("%v: this test needs strace (the package of that name)", err)
	}
	pollux, err := exec.LookPath("pollux") // the test binary itself, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	options := []string{"-f", "-qq", "-o", trace, "-e", "signal=none", "-e", "trace=pwrite64,fsync"}
	if name, _, _ := strings.Cut(inject, ":"); name == "pread64" {
		options[len(options)-1] += ",pread64" // strace injects into nothing else
	}
	if inject != "" {
		options = append(options, "-e", "inject="+inject)
	}
	cmd := exec.CommandContext(t.Context(), strace, slices.Concat(options, []string{pollux}, args)...)
	var out bytes.Buffer
	cmd.Stderr = &out
	// Preemption is by signals, of which each is a stop of the tracer.
	cmd.Env = append(os.Environ(), oneThread+"=1", "GODEBUG=asyncpreemptoff=1", "GORACE=atexit_sleep_ms=0")
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "strace: ") {
		t.Fatalf("strace cannot trace here; is ptrace forbidden (seccomp, kernel.yama.ptrace_scope=3)? It says: %s", text)
	}
	return parseTrace(t, trace, last), cmd.ProcessState, out.String()
}

var traceLine = regexp.MustCompile(`^(\d+) +(pwrite64|fsync)\(`)

func parseTrace(t *testing.T, path string, last cutCall) (calls []cutCall) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no trace: %v", err)
	}
	thread, count := "", map[string]int{}
	for line := range strings.Lines(string(data)) {
		m := traceLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		// Strace may show the call at which a process was killed once more, under
		// the number of another thread that dies with it.
		if len(calls) > 0 && calls[len(calls)-1] == last {
			break
		}
		if thread != "" && thread != m[1] {
			t.Fatalf("writes and syncs come from the threads %s and %s, and strace counts each alone:\n%s", thread, m[1], data)
		}
		thread = m[1]
		count[m[2]]++
		calls = append(calls, cutCall{m[2], count[m[2]]})
	}
	return calls
}

// pollux runs the program within the test.
func pollux(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// cutRig is three files that are, or may become, a volume.
type cutRig struct {
	t     *testing.T
	files []string
}

// newCutRig makes the files, with what fill leaves on each.
func newCutRig(t *testing.T, fill func(path string)) *cutRig {
	r := &cutRig{t: t}
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, bytes.Repeat([]byte{0xa5}, memberSize), 0o600); err != nil {
			t.Fatal(err)
		}
		if fill != nil {
			fill(path)
		}
		r.files = append(r.files, path)
	}
	return r
}

func (r *cutRig) create(more ...string) []string {
	return slices.Concat([]string{"create", "v"}, r.files, []string{"--allow-unpolled"}, r.where(), more)
}

func (r *cutRig) destroy() []string {
	return append([]string{"destroy", "v", "--force"}, r.where()...)
}

// where keeps a search to the files.
func (r *cutRig) where() (args []string) {
	for _, f := range r.files {
		args = append(args, "--device", f)
	}
	return args
}

// must runs pollux within the test and fails unless it exits so.
func (r *cutRig) must(want int, args ...string) string {
	r.t.Helper()
	code, stdout, stderr := pollux(args...)
	if code != want {
		r.t.Fatalf("exit code %d, want %d: pollux %s\n%s%s", code, want, strings.Join(args, " "), stdout, stderr)
	}
	return stdout
}

func (r *cutRig) contents() (all [][]byte) {
	for _, f := range r.files {
		data, err := os.ReadFile(f)
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

// mustBe fails unless the files have these contents.
func (r *cutRig) mustBe(before [][]byte) {
	r.t.Helper()
	for i, now := range r.contents() {
		for at := range now {
			if now[at] != before[i][at] {
				r.t.Fatalf("%s is not as it was: byte %d", filepath.Base(r.files[i]), at)
			}
		}
		if len(now) != len(before[i]) {
			r.t.Fatalf("%s has %d bytes and had %d", filepath.Base(r.files[i]), len(now), len(before[i]))
		}
	}
}

// whole says whether list shows a whole volume, and nothing but that.
func (r *cutRig) whole() bool {
	r.t.Helper()
	var list listJSON
	text := r.must(exitGood, append([]string{"list", "--json"}, r.where()...)...)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		r.t.Fatal(err)
	}
	return len(list.Volumes) == 1 && list.Volumes[0].State == "whole"
}

// settled fails unless there is a whole volume or none, and says which.
func (r *cutRig) settled() (whole bool) {
	r.t.Helper()
	if !r.whole() {
		r.must(exitGood, r.create()...)
		if !r.whole() {
			r.t.Fatal("created, and not whole")
		}
		return false
	}
	r.must(exitRefused, r.create()...)
	r.must(exitGood, slices.Concat([]string{"bench", "v", "--rw", "write", "--io-size", "4k", "--destructive", "--hipri=off"}, r.where())...)
	if !r.whole() {
		r.t.Fatal("opened for writing, and not whole any more")
	}
	r.must(exitRefused, r.create()...)
	return true
}

// countCalls runs a command whole, for its writes and syncs.
func countCalls(t *testing.T, r *cutRig, args []string) []cutCall {
	t.Helper()
	calls, state, stderr := traced(t, "", cutCall{}, args...)
	if state.ExitCode() != exitGood {
		t.Fatalf("exit code %d: %s", state.ExitCode(), stderr)
	}
	if len(calls) == 0 {
		t.Fatal("no writes and no syncs were seen: the trace is worth nothing")
	}
	count := map[string]int{}
	for _, c := range calls {
		count[c.name]++
	}
	t.Logf("%s: %d writes, %d syncs", args[0], count["pwrite64"], count["fsync"])
	if count["pwrite64"] < 12 || count["fsync"] < 12 {
		t.Fatal("that is fewer than three members need")
	}
	return calls
}

// outcomes counts how the cuts ended.
type outcomes struct{ whole, none atomic.Int32 }

func (o *outcomes) add(whole bool) {
	if whole {
		o.whole.Add(1)
	} else {
		o.none.Add(1)
	}
}

// check fails unless both were seen.
func (o *outcomes) check(t *testing.T) {
	t.Logf("afterwards: %d times a whole volume, %d times none", o.whole.Load(), o.none.Load())
	if !t.Failed() && (o.whole.Load() == 0 || o.none.Load() == 0) {
		t.Error("both should have been seen")
	}
}

// killedAt runs a command that is killed on its way into a call, which then does
// not happen.
func killedAt(t *testing.T, at cutCall, args []string) {
	t.Helper()
	calls, state, stderr := traced(t, fmt.Sprintf("%s:signal=KILL:when=%d", at.name, at.nth), at, args...)
	if status := state.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Fatalf("it was to be killed, and ended with %v: %s", state, stderr)
	}
	if len(calls) == 0 || calls[len(calls)-1] != at {
		t.Fatalf("it was to be killed at %v, and did %v", at, calls)
	}
}

// failedAt runs a command of which one call fails.
func failedAt(t *testing.T, at cutCall, args []string) {
	t.Helper()
	_, state, stderr := traced(t, fmt.Sprintf("%s:error=EIO:when=%d", at.name, at.nth), cutCall{}, args...)
	if state.ExitCode() != exitFailed {
		t.Fatalf("%v: %s", state, stderr)
	}
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "pollux: ") || !strings.Contains(stderr, "input/output error") {
		t.Fatalf("not one line that tells of it: %q", stderr)
	}
}

// TestCutCreate: to be cut before call N is to be cut after call N-1, and after the
// last one is a whole run.
func TestCutCreate(t *testing.T) {
	r := newCutRig(t, nil)
	calls := countCalls(t, r, r.create())
	if !r.settled() {
		t.Fatal("a create that was not cut made no volume")
	}
	ends := &outcomes{}
	t.Cleanup(func() { ends.check(t) })
	for i, at := range calls {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			r := newCutRig(t, nil)
			before := r.contents()
			killedAt(t, at, r.create())
			if i == 0 {
				r.mustBe(before) // or a cut is not what it is taken for
			}
			ends.add(r.settled())
		})
	}
}

func TestCutDestroy(t *testing.T) {
	r := newCutRig(t, nil)
	r.must(exitGood, r.create()...)
	calls := countCalls(t, r, r.destroy())
	if r.settled() {
		t.Fatal("a destroy that was not cut left a volume")
	}
	ends := &outcomes{}
	t.Cleanup(func() { ends.check(t) })
	for _, how := range []struct {
		name string
		cut  func(*testing.T, cutCall, []string)
	}{{"kill", killedAt}, {"error", failedAt}} {
		for _, at := range calls {
			t.Run(how.name+"-"+at.String(), func(t *testing.T) {
				t.Parallel()
				r := newCutRig(t, nil)
				r.must(exitGood, r.create()...)
				how.cut(t, at, r.destroy())
				ends.add(r.settled())
			})
		}
	}
}

// TestCreateFailsAtEachCall: a create that fails puts back what was there, byte for
// byte.
func TestCreateFailsAtEachCall(t *testing.T) {
	for _, kind := range []struct {
		name  string
		fill  func(path string)
		flags []string
	}{
		{name: "blank"},
		{name: "ext4", fill: func(path string) { mkfsExt4(t, path) }, flags: []string{"--force"}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			model := newCutRig(t, kind.fill)
			images := model.contents()
			calls := countCalls(t, model, model.create(kind.flags...))
			for _, at := range calls {
				t.Run(at.String(), func(t *testing.T) {
					t.Parallel()
					r := newCutRig(t, nil)
					for i, f := range r.files {
						if err := os.WriteFile(f, images[i], 0o600); err != nil {
							t.Fatal(err)
						}
					}
					failedAt(t, at, r.create(kind.flags...))
					r.mustBe(images)
				})
			}
		})
	}
}

func mkfsExt4(t *testing.T, path string) {
	t.Helper()
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Fatalf("%v: this test needs mkfs.ext4 (the package e2fsprogs)", err)
	}
	if out, err := exec.Command(mkfs, "-q", "-F", "-E", "nodiscard", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
