// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package blockdev

import (
	"errors"
	"runtime"
)

// Open works on Linux only.
func Open(path string, _ Mode) (*Device, error) {
	return nil, &Error{Path: path, Cause: "pollux needs Linux and this is " + runtime.GOOS, Err: errors.ErrUnsupported}
}

// Close works on Linux only.
func (d *Device) Close() error { return errors.ErrUnsupported }

// Gone works on Linux only.
func (d *Device) Gone() bool { return false }

// KernelVersion works on Linux only.
func KernelVersion() (major, minor int, release string) { return 0, 0, "" }

// WorkerThreads works on Linux only.
func WorkerThreads() (int, error) { return 0, errors.ErrUnsupported }

// NVMeInterrupts works on Linux only.
func NVMeInterrupts() (sum uint64, ok bool, err error) { return 0, false, errors.ErrUnsupported }
