// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"pollux/internal/clock"
	"pollux/poller"
)

// Handle reads and writes a device, any poller.Device, from any number of
// goroutines at once, with slices of any kind:
//
//	h, err := volume.NewHandle(dev, volume.Options{})
//	...
//	defer h.Close()
//	n, err := h.ReadAt(p, off)
//
// It is an io.ReaderAt and an io.WriterAt; with io.NewSectionReader(h, 0, h.Size())
// and io.NewOffsetWriter(h, 0) it works wherever a file does.
//
// # Many goroutines, few queues
//
// A queue belongs to one goroutine, and whoever polls keeps a CPU busy. So a handle
// has few queues (Options.Queues), makes them when they are needed, and has no
// goroutine of its own. A call that finds a queue nobody polls does so itself, for
// its own I/O and for that of all other calls that come to the queue meanwhile; these
// sleep. When its own I/O is done it returns, and one of the others takes over. So a
// lone caller has what it would have with a queue of its own, many callers share
// submissions and polls as one caller with a deep queue does, and while there is no
// I/O nothing runs.
//
// # Alignment and copies
//
// Direct I/O is done to memory of the queue's arena, so each call copies, and p may
// lie anywhere. Calls of whole blocks (Device().Limits().BlockSize) cost one copy. A
// read of any other range reads the blocks around it. A write of any other range is
// slow: it reads the blocks at its ends, changes them and writes them, and while it
// does so no other write of this handle to any of its blocks is in progress; so of two
// goroutines that write different bytes of one block neither loses any. Other handles,
// queues and processes are not kept away.
//
// A call longer than 64 KiB is cut into pieces, which are in flight together as far
// as there is room. Only a single block is written whole or not at all.
//
// # Errors
//
// An I/O that failed gives the *poller.Error of the device; errors.Is finds
// poller.ErrGone, poller.ErrReadOnly, poller.ErrRange, an errno. After Close it is
// os.ErrClosed, after Options.Timeout os.ErrDeadlineExceeded. A Flush that failed is
// remembered by the volume, and not by the handle (see Volume). A zero Handle gives
// os.ErrInvalid.
//
// # Writes that timed out
//
// A write that ended with os.ErrDeadlineExceeded may still be on its way to the drive,
// and nothing calls it back. Where it was not of whole blocks, its blocks stay closed
// to other writes of this handle until the drive has answered: these wait, or time
// out. A later write that is not of whole blocks waits for any earlier one to its
// blocks. But one of whole blocks does not wait for another: the old one may come last
// and put its bytes over those of the new one, although that has returned without
// error. Who writes a block again after a timeout and must rule that out waits until
// Close has returned without poller.ErrNotDrained.
type Handle struct {
	dev       poller.Device
	name      string // of the device, for errors
	opts      Options
	size      int64
	blockMask int64
	readOnly  bool
	flags     poller.Flags // of reads and writes
	// small and large are how long the bounce buffers are. Both are multiples of
	// the block and within the device's MaxTransfer.
	small, large int64
	short        int64 // small, or the size where that is less

	blocks blockLocks

	// lanes are made from the first on, and stay until Close; made is how many
	// there are. turn counts the calls that had to look further than for a lane
	// that nobody leads.
	lanes []atomic.Pointer[lane]
	made  atomic.Int32
	turn  atomic.Uint32
	// enough says that no further lane could be made.
	enough atomic.Bool

	mu     sync.Mutex  // held to make a lane, and by Close
	closed atomic.Bool // set under mu
}

var (
	_ io.ReaderAt = (*Handle)(nil)
	_ io.WriterAt = (*Handle)(nil)
)

// largeTransfer is the longest piece of a call in bytes: the default chunk of a
// volume, beyond which a request would be cut anyway.
const largeTransfer = 64 << 10

// NewHandle makes a handle of dev, which it owns from then on and closes. On error
// dev is the caller's still. The error answers to poller.ErrNotPollable where opts
// insist on polling and a part of dev cannot be polled. No queue is made yet, so that
// whoever makes queues of Device() has all of the budget until the first I/O.
func NewHandle(dev poller.Device, opts Options) (*Handle, error) {
	if dev == nil {
		return nil, errors.New("handle: NewHandle needs a device, and was given nil")
	}
	h := &Handle{dev: dev, name: dev.Stats().Name}
	var err error
	if h.opts, err = opts.withDefaults(); err != nil {
		return nil, fmt.Errorf("%s: handle: %w", h.name, err)
	}
	l := dev.Limits()
	if l.NotPollable != nil && opts.Polling == poller.PollRequired {
		return nil, fmt.Errorf("%s: %w", h.name, l.NotPollable)
	}
	if err := h.setSizes(l); err != nil {
		return nil, fmt.Errorf("%s: handle: %w", h.name, err)
	}
	h.readOnly = opts.ReadOnly || l.ReadOnly
	if opts.Polling != poller.PollNever {
		h.flags = poller.HiPri
	}
	h.lanes = make([]atomic.Pointer[lane], h.opts.Queues)
	if h.opts.Timeout > 0 {
		clock.Start()
	}
	return h, nil
}

// setSizes sets what follows from the limits of the device.
func (h *Handle) setSizes(l poller.Limits) error {
	block := l.BlockSize
	if block < 1 || block&(block-1) != 0 || l.BufAlign&(l.BufAlign-1) != 0 || l.MaxTransfer < block || l.Size < 0 {
		return fmt.Errorf("a device with blocks of %d bytes, buffers at multiples of %d and %d bytes at most in a request",
			block, l.BufAlign, l.MaxTransfer)
	}
	h.blockMask = block - 1
	h.size = l.Size &^ h.blockMask
	longest := l.MaxTransfer &^ h.blockMask
	// A page, so that the drive needs one segment for it.
	h.small = min(max(int64(os.Getpagesize()), block), longest)
	h.short = min(h.small, h.size)
	h.large = min(max(largeTransfer, h.small), longest)
	if room := int64(poller.MaxArena); int64(h.opts.Depth) > room/(h.slot(l.BufAlign, h.small)+h.slot(l.BufAlign, h.large)/largeShare+1) {
		return fmt.Errorf("a Depth of %d: the buffers of a queue would exceed %d bytes; ask for less", h.opts.Depth, room)
	}
	return nil
}

// Size returns the size of the device in bytes, which does not change.
func (h *Handle) Size() int64 { return h.size }

// Device returns the device, for its Limits and Stats, and for queues of one's own.
// These take from the budget that the handle's queues come from, and have to be
// closed before the handle is.
func (h *Handle) Device() poller.Device { return h.dev }

// ReadAt reads len(p) bytes from offset off, as io.ReaderAt demands: n is less than
// len(p) only with an error, io.EOF where the device ends. p holds the first n bytes
// then. Any goroutine may call it.
func (h *Handle) ReadAt(p []byte, off int64) (n int, err error) {
	if size := int64(len(p)); uint64(size-1) < uint64(h.short) && (off|size)&h.blockMask == 0 && uint64(off) <= uint64(h.size-size) {
		return h.readShort(p, off)
	}
	return h.readAny(p, off)
}

// readShort is ReadAt of whole blocks, all of them on the device, that fit into a
// short buffer.
func (h *Handle) readShort(p []byte, off int64) (int, error) {
	l, err := h.pick(true)
	if err != nil {
		return 0, h.errorOf(poller.Read, off, err)
	}
	ok, err := l.readShort(p, off, h.flags, h.deadline())
	if !ok {
		return h.readAny(p, off)
	}
	if err != nil {
		return 0, h.ofHandle(poller.Read, off, err)
	}
	return len(p), nil
}

// readAny is ReadAt of anything.
func (h *Handle) readAny(p []byte, off int64) (n int, err error) {
	switch {
	case h.dev == nil:
		return 0, h.notMade(poller.Read)
	case off < 0:
		return 0, h.rangeError(poller.Read, len(p), off)
	case h.closed.Load():
		return 0, h.errorOf(poller.Read, off, errHandleClosed)
	case len(p) == 0:
		return 0, nil
	case off >= h.size:
		return 0, io.EOF
	}
	whole := p
	if left := h.size - off; int64(len(p)) > left {
		p = p[:left]
	}
	c := h.newCall(poller.Read)
	n, err = c.transfer(p, off, nil)
	c.leave()
	if err == nil && len(p) < len(whole) {
		err = io.EOF
	}
	return n, err
}

// WriteAt writes p at offset off, as io.WriterAt demands: n is less than len(p) only
// with an error, and then the first n bytes are written for certain and others may
// be. What does not fit into the device is refused with poller.ErrRange, and nothing
// is written. It is not durable before Flush. Any goroutine may call it; of two
// writes of the same bytes at once each block holds one or the other.
func (h *Handle) WriteAt(p []byte, off int64) (n int, err error) {
	switch {
	case h.dev == nil:
		return 0, h.notMade(poller.Write)
	case h.readOnly:
		return 0, h.errorOf(poller.Write, off, poller.ErrReadOnly)
	case off < 0 || off > h.size || int64(len(p)) > h.size-off:
		return 0, h.rangeError(poller.Write, len(p), off)
	case h.closed.Load():
		return 0, h.errorOf(poller.Write, off, errHandleClosed)
	case len(p) == 0:
		return 0, nil
	}
	c := h.newCall(poller.Write)
	if (off|int64(len(p)))&h.blockMask != 0 {
		n, err = c.writeAcross(p, off)
	} else {
		n, err = c.transfer(p, off, nil)
	}
	c.leave()
	return n, err
}

// Flush makes every write durable that had returned, by any goroutine, before it was
// called. Any goroutine may call it.
func (h *Handle) Flush() error {
	switch {
	case h.dev == nil:
		return h.notMade(poller.Flush)
	case h.readOnly:
		return h.errorOf(poller.Flush, 0, poller.ErrReadOnly)
	case h.closed.Load():
		return h.errorOf(poller.Flush, 0, errHandleClosed)
	}
	c := h.newCall(poller.Flush)
	err := c.flush()
	c.leave()
	return err
}

// newCall begins a call.
func (h *Handle) newCall(op poller.Op) call {
	return call{h: h, op: op, deadline: h.deadline()}
}

// deadline returns when a call that begins now has to end, 0 for never.
func (h *Handle) deadline() int64 {
	if h.opts.Timeout == 0 {
		return 0
	}
	if at := clock.Now() + int64(h.opts.Timeout); at > 0 {
		return at
	}
	return math.MaxInt64
}

// ofHandle returns the error of a request as it is, and any other as one of the
// handle.
func (h *Handle) ofHandle(op poller.Op, off int64, err error) error {
	if typed := (*poller.Error)(nil); errors.As(err, &typed) {
		return err
	}
	return h.errorOf(op, off, err)
}

func (h *Handle) errorOf(op poller.Op, off int64, err error) error {
	return &poller.Error{Op: op, Member: -1, Path: h.name, Offset: off, Err: err}
}

func (h *Handle) rangeError(op poller.Op, n int, off int64) error {
	return h.errorOf(op, off, fmt.Errorf("%w: %d bytes at %d of %d", poller.ErrRange, n, off, h.size))
}

// notMade is the error of a zero Handle. It answers to os.ErrInvalid.
func (*Handle) notMade(what fmt.Stringer) error {
	return fmt.Errorf("%v of a Handle that neither Open nor NewHandle has made: %w", what, os.ErrInvalid)
}

// errHandleClosed answers to os.ErrClosed.
var errHandleClosed = fmt.Errorf("the handle is closed: %w", os.ErrClosed)
