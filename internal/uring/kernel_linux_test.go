// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExplain(t *testing.T) {
	if err := explain("call", nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		errno unix.Errno
		is    error
		text  string
	}{
		{unix.EPERM, ErrForbidden, "kernel.io_uring_disabled=0"},
		{unix.EACCES, ErrForbidden, "seccomp"},
		{unix.ENOSYS, ErrForbidden, "allow io_uring_setup, io_uring_enter and io_uring_register"},
		{unix.ENOMEM, ErrMemlock, "LimitMEMLOCK="},
		{unix.EINVAL, unix.EINVAL, "invalid argument"},
		{unix.EMFILE, unix.EMFILE, "too many open files"},
	} {
		err := explain("io_uring_setup", tt.errno)
		if !errors.Is(err, tt.errno) || !errors.Is(err, tt.is) {
			t.Errorf("%v: %v", tt.errno, err)
		}
		if s := err.Error(); !strings.HasPrefix(s, "io_uring_setup: ") || !strings.Contains(s, tt.text) || strings.Contains(s, "\n") {
			t.Errorf("%v: %q", tt.errno, s)
		}
		for _, other := range []error{ErrForbidden, ErrMemlock} {
			if other != tt.is && errors.Is(err, other) {
				t.Errorf("%v is also %v", tt.errno, other)
			}
		}
	}
}

func TestEnterError(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EINTR, unix.EAGAIN, unix.EBUSY, unix.ETIME} {
		if err := enterError(errno); err != nil {
			t.Errorf("%v: %v", errno, err)
		}
	}
	for _, errno := range []unix.Errno{unix.EBADF, unix.EBADR, unix.EINVAL, unix.EFAULT, unix.ENXIO} {
		if err := enterError(errno); !errors.Is(err, errno) {
			t.Errorf("%v: %v", errno, err)
		}
	}
}

func TestRetryNoMemory(t *testing.T) {
	calls := 0
	err := retryNoMemory(func() error {
		if calls++; calls < 4 {
			return fmt.Errorf("register: %w", unix.ENOMEM)
		}
		return nil
	})
	if err != nil || calls != 4 {
		t.Errorf("%v after %d calls", err, calls)
	}
	calls = 0
	if err := retryNoMemory(func() error { calls++; return unix.EINVAL }); err != unix.EINVAL || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
