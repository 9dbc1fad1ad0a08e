// SPDX-License-Identifier: Apache-2.0

package blockdev

import "fmt"

// ID is the identity of an open device: equal IDs are the same device, by
// whatever path it was opened. IDs can be compared with == and be map keys. They
// mean nothing on another host or after a reboot.
type ID struct {
	block bool
	a, b  uint64 // major and minor, or device and inode of a file
}

// String returns the identity in words, for messages.
func (id ID) String() string {
	if id.block {
		return fmt.Sprintf("block device %d:%d", id.a, id.b)
	}
	return fmt.Sprintf("file %d:%d", id.a, id.b)
}

// ID returns the identity of the device that in describes.
func (in Info) ID() ID {
	if in.Block {
		return ID{block: true, a: uint64(in.Major), b: uint64(in.Minor)}
	}
	return ID{a: in.Dev, b: in.Ino}
}

// Drive names the bytes that the device shows: devices with equal Drives are one
// drive, or one part of it, reached in several ways. It goes by the worldwide
// identifier and is the ID where there is none.
func (in Info) Drive() string {
	if in.WWID == "" {
		return in.ID().String()
	}
	return fmt.Sprintf("%s at %d", in.WWID, in.PartStart)
}

// Overlaps is that of the devices that in and other describe.
func (in Info) Overlaps(other Info) bool { return in.overlaps(other) }

// Overlaps says whether writing to one of a and b could change the other: they
// are the same device, a disk and a partition of it, or one drive seen twice,
// which shows in the worldwide identifier. Two partitions side by side do not
// overlap. It does not look through device mapper, whose claim on what it stands on
// makes an exclusive open fail, nor through loop devices, which claim nothing.
func Overlaps(a, b *Device) bool { return a.info.overlaps(b.info) }

func (in Info) overlaps(other Info) bool {
	if in.ID() == other.ID() {
		return true
	}
	if !in.Block || !other.Block || !in.sameDisk(other) {
		return false
	}
	if !in.partition() || !other.partition() {
		return true
	}
	if in.PartStart == other.PartStart {
		return true
	}
	// Differences, because start plus size could overflow.
	if in.PartStart < other.PartStart {
		return other.PartStart-in.PartStart < in.Size
	}
	return in.PartStart-other.PartStart < other.Size
}

func (in Info) partition() bool { return in.Name != in.Disk }

func (in Info) sameDisk(other Info) bool {
	if in.WWID != "" && in.WWID == other.WWID {
		return true
	}
	return in.Disk != "" && in.Disk == other.Disk
}
