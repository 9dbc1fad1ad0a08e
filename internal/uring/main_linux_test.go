// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// childEnv names the child that the test binary is to be. Limits and filters
// cannot be taken back, so they are laid upon a process of their own.
const childEnv = "POLLUX_URING_TEST_CHILD"

// children are what the test binary can be instead of a test run.
var children = map[string]func() error{
	"memlock":        childLittleLockedMemory,
	"memlock-0":      childNoLockedMemory,
	"seccomp-EPERM":  func() error { return childForbidden(unix.EPERM) },
	"seccomp-ENOSYS": func() error { return childForbidden(unix.ENOSYS) },
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		runtime.LockOSThread() // capabilities belong to a thread
		if err := children[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if ring, err := New(Config{}); err != nil {
		fmt.Fprintln(os.Stderr, "these tests are about io_uring and there is none:", err)
		return 1
	} else if err := ring.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, left := range ringsLeft() {
		fmt.Fprintln(os.Stderr, "left behind by a test:", left)
		code = 1
	}
	return code
}

// ringsLeft lists the descriptors and mappings of rings in this process.
func ringsLeft() (left []string) {
	const name = "anon_inode:[io_uring]"
	for fd, target := range descriptors() {
		if target == name {
			left = append(left, "descriptor "+fd)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return append(left, err.Error())
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, name) {
			left = append(left, "mapping "+strings.TrimSpace(line))
		}
	}
	return left
}

// descriptors returns what the open descriptors of this process stand for.
func descriptors() map[string]string {
	const dir = "/proc/self/fd"
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		// The one that read the directory is gone by now.
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			found[e.Name()] = target
		}
	}
	return found
}

// runChild runs the test binary as the child of that name and returns what it
// printed.
func runChild(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	// The race detector sleeps a second before it exits.
	cmd.Env = append(os.Environ(), childEnv+"="+name, "GORACE=atexit_sleep_ms=0")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("child %s: %v\n%s", name, err, errs.String())
	}
	return out.String()
}

// newRing returns a ring that is closed when the test ends.
func newRing(tb testing.TB, cfg Config) *Ring {
	tb.Helper()
	r, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			tb.Error(err)
		}
	})
	return r
}

func newMemory(tb testing.TB, n int) *Memory {
	tb.Helper()
	m, err := NewMemory(n)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := m.Close(); err != nil {
			tb.Error(err)
		}
	})
	return m
}

func mustAddr(tb testing.TB, m *Memory, b []byte) uint64 {
	tb.Helper()
	p, ok := m.Addr(b)
	if !ok {
		tb.Fatal("buffer outside of the memory")
	}
	return uint64(p)
}

// push fills the next entry, which there must be.
func push(tb testing.TB, r *Ring, sqe SQE) {
	tb.Helper()
	p := r.SQE()
	if p == nil {
		tb.Fatal("submission ring full")
	}
	*p = sqe
}

func pushNop(tb testing.TB, r *Ring, userData uint64) {
	tb.Helper()
	push(tb, r, SQE{Opcode: OpNop, UserData: userData})
}

// patience is how late a busy host may be before a test calls it a failure.
const patience = 10 * time.Second

// badOpcode is one that no kernel has.
const badOpcode = 255

func enter(tb testing.TB, r *Ring) {
	tb.Helper()
	if err := r.Enter(); err != nil {
		tb.Fatal(err)
	}
}

// await waits for n completions, and returns and frees all that there are.
func await(tb testing.TB, r *Ring, n uint32) []CQE {
	tb.Helper()
	for r.Ready() < n {
		if err := r.EnterWait(n, -1); err != nil {
			tb.Fatal(err)
		}
	}
	return reap(r)
}

// reap returns and frees the completions that are ready.
func reap(r *Ring) []CQE {
	got := make([]CQE, r.Ready())
	for i := range got {
		got[i] = *r.CQE(uint32(i))
	}
	r.Advance(uint32(len(got)))
	return got
}

// inOrder sorts completions by user data: which of several comes first is the
// kernel's choice.
func inOrder(got []CQE) []CQE {
	slices.SortFunc(got, func(a, b CQE) int { return cmp.Compare(a.UserData, b.UserData) })
	return got
}

func eventfd(tb testing.TB) int {
	tb.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { unix.Close(fd) })
	return fd
}

// signal makes a read of the eventfd return.
func signal(tb testing.TB, fd int) {
	if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		tb.Error(err)
	}
}

// kernelAtLeast compares with the running kernel.
func kernelAtLeast(tb testing.TB, major, minor int) bool {
	tb.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		tb.Fatal(err)
	}
	var gotMajor, gotMinor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &gotMajor, &gotMinor); err != nil {
		tb.Fatal(err)
	}
	return gotMajor > major || gotMajor == major && gotMinor >= minor
}
