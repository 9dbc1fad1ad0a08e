// SPDX-License-Identifier: Apache-2.0

package blockdev

// Driver names the kind of block device: the kernel's module where one is
// known. A driver that has no constant here appears under the name sysfs gives
// it, or as "".
type Driver string

// The drivers that are told apart.
const (
	DriverFile   Driver = "file" // no driver: a regular file
	DriverNVMe   Driver = "nvme"
	DriverNull   Driver = "null_blk"
	DriverDM     Driver = "dm"
	DriverMD     Driver = "md"
	DriverLoop   Driver = "loop"
	DriverVirtio Driver = "virtio_blk"
	DriverSCSI   Driver = "sd"
	DriverUblk   Driver = "ublk"
)

// Info describes a device as it was when it was opened. Sizes are bytes. What
// is said of the queue is, for a partition, said of its disk, whose queue it
// uses. The sysfs files are explained in the kernel's
// Documentation/ABI/stable/sysfs-block.
type Info struct {
	// Path is the path as it was given to Open.
	Path string
	// Name is the kernel's name, such as nvme0n1p2; "" for a file.
	Name string
	// Disk is the kernel's name of the whole disk; the same as Name unless the
	// device is a partition.
	Disk string
	// Block tells a block device from a regular file.
	Block bool
	// Major and Minor are the number of a block device; 0 for a file.
	Major, Minor uint32
	// Dev and Ino identify the file, or the device node.
	Dev, Ino uint64
	// WWID is the worldwide identifier of the disk, made by the kernel from
	// NGUID, EUI-64 or UUID of an NVMe namespace or from a SCSI drive's VPD
	// page; "" when there is none.
	WWID string
	// PartStart is where on the disk a partition starts; 0 for a whole disk,
	// as no partition starts in the sector that holds the table.
	PartStart int64

	// Size is the capacity. A file's is rounded down to BlockSize.
	Size int64
	// BlockSize divides the offset and the length of every direct I/O: the
	// logical block, or for a file what statx(2) tells (STATX_DIOALIGN, since
	// Linux 6.1), else 4096.
	BlockSize int64
	// BufAlign divides the address of the memory of every direct I/O:
	// queue/dma_alignment + 1, or for a file what statx(2) tells; BlockSize
	// where that is unknown.
	BufAlign int64

	// LimitsKnown says that the three limits below were read. When it is
	// false, as for every file, they are 0 and callers have to be cautious.
	LimitsKnown bool
	// MaxSectorsBytes is the longest I/O that the kernel does not split
	// (queue/max_sectors_kb).
	MaxSectorsBytes int64
	// Boundary divides the offsets on the whole disk, in bytes, that no single
	// I/O may cross without being split (queue/chunk_sectors); 0 where there is
	// none.
	Boundary int64
	// MaxSegments is how many pieces of memory, not adjacent to each other, one
	// unsplit I/O may have.
	MaxSegments int64
	// MaxSegmentSize is the longest such piece.
	MaxSegmentSize int64
	// NrRequests is how many I/Os one hardware queue has room for. An NVMe
	// multipath head and device mapper have no such queue of their own (or
	// show a number without meaning), so it is then the smallest figure of
	// whatever they stand on, at any depth. 0 when unknown.
	NrRequests int

	// PollQueues says that polled I/O is offered (queue/io_poll), by the device
	// and by everything it stands on.
	PollQueues bool
	// PollKnown says that queue/io_poll could be read. Without it PollQueues
	// is false and only a polled read can tell.
	PollKnown bool
	// Below names the first lower device without poll queues, when the device
	// is stacked and there is one. BelowDriver is its driver.
	Below       string
	BelowDriver Driver

	// WriteThrough says that the device has no volatile write cache, so that
	// flushes do nothing. It is false when unknown.
	WriteThrough bool
	// FUA says that the device itself has forced unit access; without it the
	// kernel follows such a write with a flush.
	FUA bool
	// Scheduler is the I/O scheduler in use, such as none; "" when unknown.
	Scheduler string
	// Rotational says that the device claims to be a spinning disk.
	Rotational bool
	// Driver is the kind of device.
	Driver Driver
	// Transport is how an NVMe controller is reached: pcie, tcp, rdma, fc or
	// loop; "" for others.
	Transport string
	// Subsystem is the NVMe qualified name (NQN) of the subsystem that the namespace is
	// in.
	Subsystem string
	// Controller is the kernel's name of the one NVMe controller over which the device
	// reaches the drive, Address where that is: a PCI or a network address. Both are
	// "" for a multipath head, which has several, and for what is no NVMe drive.
	Controller, Address string
	// ControllerID tells the controllers of a subsystem apart, if ControllerKnown.
	ControllerID    int
	ControllerKnown bool
	// ReadOnly says that the kernel refuses writes (BLKROGET).
	ReadOnly bool
}

// Path is an NVMe controller over which a namespace is reached.
type Path struct {
	// Controller is the kernel's name, such as nvme3.
	Controller string
	// Name is that of its block device: the hidden nvme0c3n1 of a multipath head, or
	// nvme3n1 where the kernel does not join paths. "" where there is none now.
	Name string
	// Transport is pcie, tcp, rdma, fc or loop, Address a PCI or a network address.
	Transport, Address string
	// State is live, connecting, resetting, deleting or another word of the kernel's,
	// ANAState that of the namespace over this path (asymmetric namespace access).
	State, ANAState string
	// ControllerID tells the controllers of a subsystem apart; -1 when unknown.
	ControllerID int
}
