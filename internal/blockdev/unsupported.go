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

// Paths works on Linux only.
func (in Info) Paths() []Path { return nil }

// NodesOf works on Linux only.
func NodesOf(string) []string { return nil }

// KernelVersion works on Linux only.
func KernelVersion() (major, minor int, release string) { return 0, 0, "" }

// WorkerThreads works on Linux only.
func WorkerThreads() (int, error) { return 0, errors.ErrUnsupported }

// NVMeInterrupts works on Linux only.
func NVMeInterrupts() (sum uint64, ok bool, err error) { return 0, false, errors.ErrUnsupported }

// Size works on Linux only.
func (d *Device) Size() int64 { return 0 }

// ReadAt works on Linux only.
func (d *Device) ReadAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

// WriteAt works on Linux only.
func (d *Device) WriteAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }

// Sync works on Linux only.
func (d *Device) Sync() error { return errors.ErrUnsupported }

// Lock works on Linux only.
func (d *Device) Lock() error { return errors.ErrUnsupported }

// Locked works on Linux only.
func (d *Device) Locked() (locked, write bool, err error) { return false, false, errors.ErrUnsupported }

// LockDisk works on Linux only.
func (d *Device) LockDisk() (release func(), err error) { return nil, errors.ErrUnsupported }

// All works on Linux only.
func All() ([]string, error) { return nil, errors.ErrUnsupported }

// InUse works on Linux only.
func (d *Device) InUse() error { return errors.ErrUnsupported }

// RereadPartitions works on Linux only.
func (d *Device) RereadPartitions() {}
