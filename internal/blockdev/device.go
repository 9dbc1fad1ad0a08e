// SPDX-License-Identifier: Apache-2.0

// Package blockdev is the door to the drives that pollux stands on: it opens
// them for direct I/O, says what they and the kernel's queues above them can
// do, tells whether two of them are the same, and turns the kernel's refusals
// into one line with cause and cure.
//
// It works on block devices and, for tests and trials, on regular files. What
// it knows comes from ioctls, from sysfs and from /proc. Missing or strange
// sysfs content is never an error: the fact is then unknown, and its field says
// how that looks.
package blockdev

import "sync"

// Mode says how Open opens.
type Mode struct {
	// Write opens for reading and writing; otherwise only reading works.
	Write bool
	// Exclusive claims a block device with O_EXCL, against mounts, swap,
	// stacked devices and every other exclusive open. It means nothing on a
	// regular file.
	Exclusive bool
}

// Device is an open drive. Its methods may be called by any goroutine.
type Device struct {
	mu   sync.RWMutex // keeps fd from being closed under a call of Gone
	fd   int          // -1 when closed
	info Info
	// write says that it was opened for writing.
	write bool
}

// Info returns what was found when the device was opened.
func (d *Device) Info() Info { return d.info }

// ID returns the identity of the device.
func (d *Device) ID() ID { return d.info.ID() }

// FD returns the descriptor, or -1 after Close. It belongs to the Device: it
// must not be closed, nor used after Close.
func (d *Device) FD() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.fd
}
