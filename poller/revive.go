// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"pollux/internal/blockdev"
)

// revival is what Revive keeps from call to call.
type revival struct {
	mu sync.Mutex
	// hung is a read that the drive has not answered yet, and of which drive.
	hung   *probeRead
	hungOn *drive
}

// Revive finds out whether the drive works, still or again: nil says that a read of
// its first block has just succeeded, polled if I/O to the disk is. A drive that was gone
// and has come back (OpenOptions.Reopen) takes the old one's place, and open queues
// use it from their next Submit; what was in flight has failed by then.
//
// The error says what speaks against it. It answers to ErrGone where the drive is not
// there. It takes as long as a drive takes to answer, or 5 s at most. Any goroutine may
// call it, but none that does I/O.
func (d *Disk) Revive() error {
	d.reviving.mu.Lock()
	defer d.reviving.mu.Unlock()
	now := d.drive.Load()
	if !now.isGone() {
		if err := d.tryRead(now); err != nil {
			return fmt.Errorf("%s: %w", d.name(), err)
		}
		return nil
	}
	if d.opts.Reopen == nil {
		return fmt.Errorf("%s: %w", d.name(), ErrGone)
	}
	dev, err := d.opts.Reopen()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", d.name(), ErrGone, err)
	}
	next := &drive{dev: dev}
	if err = d.takes(dev.Info()); err == nil {
		err = d.tryRead(next)
	}
	if err == nil {
		err = d.replace(next)
	}
	if err != nil {
		path := dev.Info().Path
		_ = dev.Close()
		return fmt.Errorf("%s, which was %s: %w", path, d.name(), err)
	}
	return nil
}

// takes says why a drive cannot take the place of the one that was opened first: queues
// go by what that could do.
func (d *Disk) takes(in blockdev.Info) error {
	caps := capsOf(in, int64(pageMask)+1)
	caps.start += d.base
	budget := in.NrRequests
	if budget <= 0 {
		budget = unknownBudget
	}
	switch old := d.info; {
	case in.BlockSize != old.BlockSize || in.Size < d.base+d.size:
		return fmt.Errorf("%w: it has %d bytes in blocks of %d, and had %d in blocks of %d; open the volume again",
			ErrRange, in.Size, in.BlockSize, old.Size, old.BlockSize)
	case in.BufAlign > old.BufAlign || caps.aligned < d.caps.aligned || caps.anywhere < d.caps.anywhere ||
		caps.boundary != d.caps.boundary || caps.start != d.caps.start || budget < d.budget:
		return fmt.Errorf("its queue takes less than it did (nr_requests, max_sectors_kb, max_segments); open the volume again")
	case d.notPollable == nil && !in.PollQueues:
		return fmt.Errorf("%w: %s", ErrNotPollable, blockdev.PollCure(in))
	case d.opts.Write && in.ReadOnly:
		return fmt.Errorf("%w: the device is set read-only (blockdev --setrw)", ErrReadOnly)
	}
	return nil
}

// tryRead reads a block. A drive that has not answered the last time is not asked again
// before it has: each try would keep a ring and memory.
func (d *Disk) tryRead(on *drive) error {
	r := &d.reviving
	read := r.hung
	if read == nil || r.hungOn != on {
		var err error
		if read, err = startRead(on.dev, d.notPollable == nil); err != nil {
			return err
		}
	}
	r.hung, r.hungOn = nil, nil
	err := read.wait(probePatience)
	if errors.Is(err, errHung) {
		r.hung, r.hungOn = read, on
	}
	return err
}

// replace makes next the drive, unless the disk has been closed meanwhile.
func (d *Disk) replace(next *drive) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	old := d.drive.Swap(next)
	// Rings that have not been told yet keep the file open, nothing more.
	_ = old.dev.Close()
	return nil
}

// attach registers another drive with every ring in the place of the old one.
func (q *diskQueue) attach(now *drive) error {
	fd := int32(now.dev.FD())
	if err := q.tree.plain.UpdateFile(int(q.index), fd); err != nil {
		return fmt.Errorf("%s: %w", q.disk.name(), err)
	}
	if q.polled != nil {
		if err := q.polled.UpdateFile(0, fd); err != nil {
			return fmt.Errorf("%s: %w", q.disk.name(), err)
		}
	}
	if q.tree.solo != nil {
		if err := q.tree.solo.UpdateFile(int(q.index), fd); err != nil {
			return fmt.Errorf("%s: %w", q.disk.name(), err)
		}
	}
	if q.polledOut+q.plainOut > 0 {
		// Of the old drive, which was gone; nobody has looked at what became of them.
		for i := range q.slots {
			q.slots[i].before = q.slots[i].userData
		}
		for i := q.free; int(i) < len(q.slots); i = q.slots[i].next {
			q.slots[i].before = noUserData
		}
	}
	q.drive = now
	return nil
}

// noUserData is no child's: leaves and slots are fewer.
const noUserData = math.MaxUint64

// isGone says that the drive that a child went to is gone.
func (q *diskQueue) isGone(s *slot) bool {
	return s.before == s.userData || q.drive.isGone()
}
