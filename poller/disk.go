// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"pollux/internal/blockdev"
)

// Disk is the leaf among the devices: one block device or file, opened for
// direct I/O.
type Disk struct {
	// drive is what is open now. Revive puts another one in its place; then its figures
	// that count here are those of info, which is of the first.
	drive atomic.Pointer[drive]
	info  blockdev.Info
	opts  OpenOptions
	// base and size are the part of the device that the disk is.
	base, size int64
	caps       childCaps
	// notPollable says why HiPri requests are sent plain, nil when they are not.
	notPollable error

	recorders Recorders
	reviving  revival

	mu       sync.Mutex
	budget   int // children in flight over all queues
	reserved int
	closed   bool
}

// drive is a device that is open. Queues know which one their rings have.
type drive struct {
	dev  *blockdev.Device
	gone atomic.Bool
}

// Polling says what Open does about HiPri requests.
type Polling uint8

const (
	// PollRequired makes Open fail with ErrNotPollable where the drive cannot
	// be polled.
	PollRequired Polling = iota
	// PollIfPossible sends HiPri requests plain to a drive that cannot be
	// polled. Limits().NotPollable and the statistics say so.
	PollIfPossible
	// PollNever sends every request plain and probes nothing.
	PollNever
)

// OpenOptions are those of Open. The zero value opens for reading and insists
// on polling.
type OpenOptions struct {
	// Write opens for reading and writing.
	Write bool
	// Exclusive fails with an error that answers to blockdev.ErrBusy when a
	// block device is mounted or held by another (O_EXCL of open(2)), or when
	// another pollux uses the device or file.
	Exclusive bool
	Polling   Polling
	// Offset and Size, in bytes, make the disk a part of the device: its offset 0
	// is at Offset of the device. A Size of 0 means up to the end. Both are
	// multiples of the logical block.
	Offset, Size int64
	// Reopen, where it is given, is how Revive opens the drive again after it was gone
	// and has come back, perhaps under another name. It opens as the device was opened,
	// claims and locks it likewise, and has proved that it is the same drive. While
	// the drive is not there it fails.
	Reopen func() (*blockdev.Device, error)
}

// Open opens the block device or file at path. What is found out about it is
// proved: unless opts say PollNever, one polled read is made. The error answers
// to ErrNotPollable, ErrNotAllowed, ErrKernelTooOld or os.ErrNotExist where it
// is one of those.
func Open(path string, opts OpenOptions) (*Disk, error) {
	dev, err := blockdev.Open(path, blockdev.Mode{Write: opts.Write, Exclusive: opts.Exclusive})
	if err != nil {
		return nil, err
	}
	if opts.Exclusive {
		err = dev.Lock()
	}
	var d *Disk
	if err == nil {
		d, err = NewDisk(dev, opts)
	}
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return d, nil
}

// NewDisk makes a Disk of a device that is open already, for what opts.Write
// says; Exclusive is not looked at. The disk owns the device from then on and
// closes it; on error it is the caller's still. The error is as that of Open.
func NewDisk(dev *blockdev.Device, opts OpenOptions) (_ *Disk, err error) {
	if major, minor, release := blockdev.KernelVersion(); release != "" && (major < 6 || major == 6 && minor < 1) {
		return nil, fmt.Errorf("this is Linux %s: %w", release, ErrKernelTooOld)
	}
	d := &Disk{info: dev.Info(), opts: opts, base: opts.Offset, size: opts.Size}
	d.drive.Store(&drive{dev: dev})
	if err := d.checkSize(); err != nil {
		return nil, fmt.Errorf("%s: %w", d.info.Path, err)
	}
	d.caps = capsOf(d.info, int64(os.Getpagesize()))
	d.caps.start += d.base
	d.budget = d.info.NrRequests
	if d.budget <= 0 {
		d.budget = unknownBudget
	}
	if d.notPollable, err = d.probe(dev); err != nil {
		return nil, err
	}
	if d.notPollable != nil && opts.Polling == PollRequired {
		return nil, d.notPollable
	}
	return d, nil
}

// checkSize completes size and says what is wrong with the part of the device.
func (d *Disk) checkSize() error {
	whole, block := d.info.Size, d.info.BlockSize
	if d.opts.Write && d.info.ReadOnly {
		return fmt.Errorf("%w: the device is set read-only (blockdev --setrw)", ErrReadOnly)
	}
	if d.base < 0 || d.size < 0 || d.base > whole || d.size > whole-d.base {
		return fmt.Errorf("%w: %d bytes at %d of a device of %d", ErrRange, d.size, d.base, whole)
	}
	if (d.base|d.size)&(block-1) != 0 {
		return fmt.Errorf("%w: %d bytes at %d, both must be multiples of %d", ErrAlignment, d.size, d.base, block)
	}
	if d.size == 0 {
		d.size = whole - d.base
	}
	if d.size < block {
		return fmt.Errorf("%w: it has %d bytes, less than one block of %d", ErrRange, d.size, block)
	}
	return nil
}

// unknownBudget is what may be in flight on a device that does not tell: the
// default depth of a block device's queue (BLKDEV_DEFAULT_RQ of the kernel).
const unknownBudget = 128

// probe finds out whether the drive really polls; err is of the host, not the
// drive.
func (d *Disk) probe(dev *blockdev.Device) (notPollable, err error) {
	if d.opts.Polling == PollNever {
		return fmt.Errorf("%s: %w: opened without polling", d.info.Path, ErrNotPollable), nil
	}
	if !d.info.PollQueues {
		// Linux 6.1 completes a polled read here by interrupt, in silence.
		return fmt.Errorf("%s: %w: %s", d.info.Path, ErrNotPollable, blockdev.PollCure(d.info)), nil
	}
	read, err := startRead(dev, true)
	if err != nil {
		return nil, err
	}
	if err := read.wait(probePatience); err != nil {
		return fmt.Errorf("%s: %w: %w, although the kernel says that it can be polled", d.info.Path, ErrNotPollable, err), nil
	}
	return nil, nil
}

// Info returns what the kernel tells about the drive, as it was when it was opened, or
// revived.
func (d *Disk) Info() blockdev.Info { return d.drive.Load().dev.Info() }

// name is what errors call the disk.
func (d *Disk) name() string { return d.Info().Path }

// Overlaps reports whether d and other share bytes: one drive under two names,
// or a drive and a partition of it.
func (d *Disk) Overlaps(other *Disk) bool { return d.Info().Overlaps(other.Info()) }

// Limits implements Device.
func (d *Disk) Limits() Limits {
	depth, unit := d.caps.budget(d.budget)
	return Limits{
		Size:        d.size,
		BlockSize:   d.info.BlockSize,
		BufAlign:    d.info.BufAlign,
		MaxTransfer: int64(depth) * unit,
		QueueDepth:  depth,
		Unit:        unit,
		ReadOnly:    !d.opts.Write,
		NotPollable: d.notPollable,
		GoneIsFinal: d.info.Transport == "pcie",
	}
}

// Stats implements Device.
func (d *Disk) Stats() Stats {
	s := d.recorders.Sum(d.name())
	if d.drive.Load().gone.Load() {
		s.Err = fmt.Errorf("%s: %w", s.Name, ErrGone)
	}
	return s
}

// Close implements Device.
func (d *Disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%s: %w", d.name(), ErrClosed)
	}
	if n := d.recorders.Open(); n > 0 {
		return fmt.Errorf("%s: %d %w: close them first", d.name(), n, ErrQueuesOpen)
	}
	d.closed = true
	return d.drive.Load().dev.Close()
}

// reserve takes a queue's share of the budget, in children: what it wants, at
// most its part among queues, at least least. It adds rec to those of the disk,
// under the same lock that Close looks at them.
func (d *Disk) reserve(want, least, queues int, rec *Recorder) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, ErrClosed
	}
	if least > d.budget {
		return 0, fmt.Errorf("%w: one request needs %d, the drive holds %d; ask for a smaller MaxTransfer",
			ErrBudget, least, d.budget)
	}
	tags := max(least, min(want, d.budget/queues))
	if left := d.budget - d.reserved; tags > left {
		if left < least {
			return 0, fmt.Errorf("%w: %d of %d are reserved and one request needs %d; open fewer queues, or say in Queues how many there will be",
				ErrBudget, d.reserved, d.budget, least)
		}
		tags = left
	}
	d.reserved += tags
	d.recorders.Add(rec)
	return tags, nil
}

func (d *Disk) release(tags int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reserved -= tags
}

// isGone finds out, after an error that a vanished drive gives, whether it is
// one. It is off the hot path.
func (d *drive) isGone() bool {
	if !d.gone.Load() && d.dev.Gone() {
		d.gone.Store(true)
	}
	return d.gone.Load()
}
