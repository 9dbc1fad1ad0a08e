// SPDX-License-Identifier: Apache-2.0

//go:build linux && !giouring

package uring

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Backend names the implementation behind Ring.
const Backend = "pollux"

// Missing lists what this backend cannot do, each with its reason.
func Missing() []string { return nil }

// Numbers of io_uring_enter(2).
const (
	enterGetEvents = 1 << 0
	enterExtArg    = 1 << 3

	sqCQOverflow = 1 << 1
)

// Ring is one io_uring. It is not safe for use by two goroutines at once.
//
// Names as in the kernel's headers: k marks what lives in memory shared with
// the kernel, the rest is private.
type Ring struct {
	fd         uintptr
	enterFlags uintptr

	sqes    []SQE
	sqMask  uint32
	sqTail  uint32
	pending uint32 // filled and not yet taken by the kernel
	ksqTail *uint32
	ksqFlag *uint32

	cqes    []CQE
	cqMask  uint32
	cqHead  uint32
	kcqHead *uint32
	kcqTail *uint32

	// arg and ts are the timeout of a sleeping enter. They are here because
	// arg holds the address of ts as a number: the heap does not move, a stack
	// does.
	arg getEventsArg
	ts  unix.Timespec

	setupFlags     uint32
	rings, entries []byte
}

// getEventsArg is struct io_uring_getevents_arg.
type getEventsArg struct {
	sigmask   uint64
	sigmaskSz uint32
	_         uint32
	ts        uint64
}

var _ [unsafe.Sizeof(getEventsArg{})]struct{} = [24]struct{}{}

// New makes a ring. The error is ErrForbidden or ErrMemlock where it is one of
// those.
func New(cfg Config) (*Ring, error) {
	p := newParams(cfg)
	p.flags |= setupNoSQArray
	var fd uintptr
	setup := func() error {
		asked := p
		r1, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(cfg.entries()), uintptr(unsafe.Pointer(&asked)), 0)
		if errno != 0 {
			return errno
		}
		fd, p = r1, asked
		return nil
	}
	err := retryNoMemory(setup)
	if err == unix.EINVAL {
		p.flags &^= setupNoSQArray // Linux before 6.6
		err = retryNoMemory(setup)
	}
	if err != nil {
		return nil, explain("io_uring_setup", err)
	}
	r := &Ring{fd: fd, setupFlags: p.flags}
	if cfg.IOPoll {
		r.enterFlags = enterGetEvents
	}
	if err := r.mmap(&p); err != nil {
		_ = unix.Close(int(fd))
		return nil, err
	}
	return r, nil
}

// mmap maps the rings and sets up the private side.
func (r *Ring) mmap(p *params) (err error) {
	const offRings, offSQEs = 0, 0x10000000
	prot, flags := unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE
	// Both rings are one mapping since Linux 5.4 (IORING_FEAT_SINGLE_MMAP).
	size := max(p.sq.array+p.sqEntries*4, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(CQE{})))
	if r.rings, err = unix.Mmap(int(r.fd), offRings, int(size), prot, flags); err != nil {
		return explain("mmap of the rings", err)
	}
	if r.entries, err = unix.Mmap(int(r.fd), offSQEs, int(p.sqEntries)*int(unsafe.Sizeof(SQE{})), prot, flags); err != nil {
		_ = unix.Munmap(r.rings)
		return explain("mmap of the submission entries", err)
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.rings[off])) }
	r.sqes = unsafe.Slice((*SQE)(unsafe.Pointer(&r.entries[0])), p.sqEntries)
	r.sqMask = p.sqEntries - 1
	r.ksqTail, r.ksqFlag = word(p.sq.tail), word(p.sq.flags)
	r.cqes = unsafe.Slice((*CQE)(unsafe.Pointer(&r.rings[p.cq.cqes])), p.cqEntries)
	r.cqMask = p.cqEntries - 1
	r.kcqHead, r.kcqTail = word(p.cq.head), word(p.cq.tail)
	if p.flags&setupNoSQArray == 0 {
		// Entries are used in order, so the indirection is the identity.
		array := unsafe.Slice(word(p.sq.array), p.sqEntries)
		for i := range array {
			array[i] = uint32(i)
		}
	}
	return nil
}

// Close unmaps and closes the ring, which must not be used any more: a second
// Close is os.ErrClosed, everything else panics. It does not wait for I/O:
// drain first.
func (r *Ring) Close() error {
	if r.rings == nil {
		return errClosed
	}
	_ = unix.Munmap(r.entries)
	_ = unix.Munmap(r.rings)
	fd := r.fd
	*r = Ring{fd: ^uintptr(0)} // the number may soon be another file's
	return unix.Close(int(fd))
}

// SetupFlags returns the IORING_SETUP_ flags that the kernel granted.
func (r *Ring) SetupFlags() uint32 { return r.setupFlags }

// Entries returns the sizes that the kernel gave the two rings.
func (r *Ring) Entries() (sq, cq uint32) { return r.sqMask + 1, r.cqMask + 1 }

// SQE returns the next entry to fill, or nil when the submission ring is full
// until the next Enter.
func (r *Ring) SQE() *SQE {
	if r.pending > r.sqMask {
		return nil
	}
	sqe := &r.sqes[r.sqTail&r.sqMask]
	r.sqTail++
	r.pending++
	return sqe
}

// Pending returns how many entries the kernel has not yet taken.
func (r *Ring) Pending() uint32 { return r.pending }

// Enter hands the pending entries over and, on an IOPOLL ring, lets the kernel
// look for completions. It never sleeps. The kernel may take fewer entries than
// are pending, and then has not looked for completions: the rest goes with the
// next call.
func (r *Ring) Enter() error {
	// A plain store is enough: without SQPOLL the kernel reads the tail in the
	// system call below, on this thread.
	*r.ksqTail = r.sqTail
	n, _, errno := syscall.RawSyscall6(unix.SYS_IO_URING_ENTER, r.fd, uintptr(r.pending), 0, r.enterFlags, 0, 0)
	if errno != 0 {
		return enterError(errno)
	}
	r.pending -= uint32(n)
	return nil
}

// EnterWait hands the pending entries over and sleeps until n completions are
// ready or timeout has passed; a negative timeout does not end. It may return
// early with a nil error, as after a signal: look at Ready. On an IOPOLL ring
// the kernel spins instead of sleeping and heeds no timeout.
func (r *Ring) EnterWait(n uint32, timeout time.Duration) error {
	*r.ksqTail = r.sqTail
	flags, arg, size := uintptr(enterGetEvents), unsafe.Pointer(nil), uintptr(0)
	if timeout >= 0 {
		r.ts = unix.NsecToTimespec(int64(timeout))
		r.arg.ts = uint64(uintptr(unsafe.Pointer(&r.ts)))
		flags, arg, size = flags|enterExtArg, unsafe.Pointer(&r.arg), unsafe.Sizeof(r.arg)
	}
	taken, _, errno := syscall.Syscall6(unix.SYS_IO_URING_ENTER, r.fd, uintptr(r.pending), uintptr(n), flags, uintptr(arg), size)
	if errno != 0 {
		return enterError(errno)
	}
	r.pending -= uint32(taken)
	return nil
}

// Ready returns how many completions can be read.
func (r *Ring) Ready() uint32 {
	// Acquire: pairs with the kernel's release store of the tail, so that the
	// entries before it are seen whole.
	return atomic.LoadUint32(r.kcqTail) - r.cqHead
}

// CQE returns the i-th ready completion; it is valid until Advance passes it.
func (r *Ring) CQE(i uint32) *CQE { return &r.cqes[(r.cqHead+i)&r.cqMask] }

// Advance gives the first n ready completions back to the kernel.
func (r *Ring) Advance(n uint32) {
	r.cqHead += n
	// Release: pairs with the kernel's acquire load of the head, so that it
	// does not overwrite an entry that is still being read here.
	atomic.StoreUint32(r.kcqHead, r.cqHead)
}

// Overflowed says that the kernel keeps completions aside for which the
// completion ring had no room. Once the ring is empty, Flush brings them.
func (r *Ring) Overflowed() bool { return atomic.LoadUint32(r.ksqFlag)&sqCQOverflow != 0 }

// Flush makes the kernel move completions that it kept aside into the ring. It
// never sleeps.
func (r *Ring) Flush() error {
	_, _, errno := syscall.RawSyscall6(unix.SYS_IO_URING_ENTER, r.fd, 0, 0, enterGetEvents, 0, 0)
	if errno != 0 {
		return enterError(errno)
	}
	return nil
}

func (r *Ring) registerOnce(op uint32, arg unsafe.Pointer, n int) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, r.fd, uintptr(op), uintptr(arg), uintptr(n), 0, 0)
	return errno
}

func (r *Ring) descriptor() int { return int(r.fd) }
