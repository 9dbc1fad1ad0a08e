// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Locked memory is used up: no registered memory, but a ring that works; or,
// where there is none at all, an error that says so.
func TestMemlock(t *testing.T) {
	for _, child := range []string{"memlock", "memlock-0"} {
		t.Run(child, func(t *testing.T) {
			t.Parallel() // each retries for noMemoryPatience
			runChild(t, child)
		})
	}
}

// limitMemlock takes away CAP_IPC_LOCK, which lifts the limit, and sets it.
func limitMemlock(limit uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: limit, Max: limit})
}

func childLittleLockedMemory() error {
	// Enough for a ring, which counts as well since Linux 6.14.
	if err := limitMemlock(64 << 10); err != nil {
		return err
	}
	r, err := New(Config{Entries: 4})
	if err != nil {
		return err
	}
	defer r.Close()
	m, err := NewMemory(1 << 20)
	if err != nil {
		return err
	}
	defer m.Close()
	start := time.Now()
	err = r.RegisterMemory(m)
	if !errors.Is(err, ErrMemlock) || !errors.Is(err, unix.ENOMEM) {
		return fmt.Errorf("RegisterMemory: %v, want ErrMemlock", err)
	}
	if took := time.Since(start); took < noMemoryPatience || took > noMemoryPatience+patience {
		return fmt.Errorf("RegisterMemory tried for %v, want %v", took, noMemoryPatience)
	}
	*r.SQE() = SQE{Opcode: OpNop, UserData: 5}
	if err := r.Enter(); err != nil {
		return err
	}
	if r.Ready() != 1 || r.CQE(0).UserData != 5 {
		return errors.New("the ring without registered memory does not work")
	}
	return nil
}

func childNoLockedMemory() error {
	if err := limitMemlock(0); err != nil {
		return err
	}
	r, err := New(Config{Entries: 4})
	if err == nil {
		return r.Close() // rings do not count on this kernel
	}
	if !errors.Is(err, ErrMemlock) {
		return fmt.Errorf("New: %v, want ErrMemlock", err)
	}
	return nil
}

// io_uring is forbidden, as it is in most containers: one line with the cure.
func TestForbidden(t *testing.T) {
	for _, child := range []string{"seccomp-EPERM", "seccomp-ENOSYS"} {
		out := runChild(t, child)
		if strings.Count(out, "\n") != 1 || !strings.Contains(out, "seccomp") || !strings.Contains(out, "kernel.io_uring_disabled=0") {
			t.Errorf("%s says %q", child, out)
		}
	}
}

// childForbidden makes io_uring_setup fail with errno and prints what New says.
func childForbidden(errno unix.Errno) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the system call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IO_URING_SETUP, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	if e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	r, err := New(Config{Entries: 4})
	if r != nil || !errors.Is(err, ErrForbidden) || !errors.Is(err, errno) {
		return fmt.Errorf("New: %v, want ErrForbidden and %v", err, errno)
	}
	fmt.Println(err)
	return nil
}
