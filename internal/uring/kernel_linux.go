// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Numbers of the io_uring interface, include/uapi/linux/io_uring.h.
const (
	setupIOPoll    = 1 << 0
	setupCQSize    = 1 << 3
	setupClamp     = 1 << 4
	setupSubmitAll = 1 << 7
	setupNoSQArray = 1 << 16

	registerBuffers      = 0
	registerFiles        = 2
	unregisterFiles      = 3
	registerFilesUpdate  = 6
	registerCloneBuffers = 30
)

var errClosed = fmt.Errorf("io_uring: %w", os.ErrClosed)

// noMemoryPatience is how long ENOMEM is retried: the kernel gives locked
// memory of a closed ring back from a work item, some time after close(2).
const noMemoryPatience = time.Second

// retryNoMemory calls f until it returns something else than ENOMEM or
// noMemoryPatience has passed.
func retryNoMemory(f func() error) error {
	start := time.Now()
	for {
		err := f()
		if !errors.Is(err, unix.ENOMEM) || time.Since(start) > noMemoryPatience {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// explain turns the errno of a setup or register call into an error that names
// the call and, where there is one, the cure.
func explain(call string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w: %w", call, err, ErrForbidden)
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("%s: %w: %w", call, err, ErrMemlock)
	}
	return fmt.Errorf("%s: %w", call, err)
}

// harmless says that an enter failed in a way that the next one mends: a
// signal, no memory for a request just now, completions that must be reaped
// first, or a wait that ran out.
func harmless(errno unix.Errno) bool {
	switch errno {
	case unix.EINTR, unix.EAGAIN, unix.EBUSY, unix.ETIME:
		return true
	}
	return false
}

// enterError returns what to tell the caller of an enter that failed with err.
func enterError(err error) error {
	if errno, ok := err.(unix.Errno); ok && harmless(errno) {
		return nil
	}
	return fmt.Errorf("io_uring_enter: %w", err)
}
