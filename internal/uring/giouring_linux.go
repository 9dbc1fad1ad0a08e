// SPDX-License-Identifier: Apache-2.0

//go:build linux && giouring

package uring

import (
	"syscall"
	"time"
	"unsafe"

	"github.com/pawelgaczynski/giouring"
	"golang.org/x/sys/unix"
)

// Backend names the implementation behind Ring.
const Backend = "giouring"

// Missing lists what this backend cannot do, each with its reason.
func Missing() []string {
	return []string{
		"NO_SQARRAY: giouring fills the index array that this flag abolishes, and would write over the heads and tails of the ring",
	}
}

// giouring's structures have the kernel's layout, as ours have. So one can be
// taken for the other, Params as well, whose fields it keeps to itself.
var (
	_ [unsafe.Sizeof(SQE{})]struct{}    = [unsafe.Sizeof(giouring.SubmissionQueueEntry{})]struct{}{}
	_ [unsafe.Sizeof(CQE{})]struct{}    = [unsafe.Sizeof(giouring.CompletionQueueEvent{})]struct{}{}
	_ [unsafe.Sizeof(params{})]struct{} = [unsafe.Sizeof(giouring.Params{})]struct{}{}
)

// Ring is one io_uring. It is not safe for use by two goroutines at once.
type Ring struct {
	g *giouring.Ring

	// peeked[passed:seen] are the ready completions from the oldest on.
	// giouring hands them out in batches and reads the ring for each.
	peeked       []*giouring.CompletionQueueEvent
	passed, seen uint32

	// ts is the timeout of a sleeping enter. It is here because giouring gives
	// its address to the kernel as a number: the heap does not move, a stack
	// does.
	ts syscall.Timespec

	setupFlags, sqEntries uint32
}

// New makes a ring. The error is ErrForbidden or ErrMemlock where it is one of
// those.
func New(cfg Config) (*Ring, error) {
	r := &Ring{}
	var p params
	err := retryNoMemory(func() error {
		p = newParams(cfg)
		r.g = giouring.NewRing() // one that failed keeps what it had mapped
		return r.g.QueueInitParams(cfg.entries(), (*giouring.Params)(unsafe.Pointer(&p)))
	})
	if err != nil {
		return nil, explain("io_uring_setup", err)
	}
	r.peeked = make([]*giouring.CompletionQueueEvent, p.cqEntries)
	r.setupFlags, r.sqEntries = p.flags, p.sqEntries
	return r, nil
}

// Close unmaps and closes the ring, which must not be used any more: a second
// Close is os.ErrClosed, everything else panics. It does not wait for I/O:
// drain first.
func (r *Ring) Close() error {
	if r.g == nil {
		return errClosed
	}
	r.g.QueueExit()
	*r = Ring{} // no pointer may be left to what is unmapped
	return nil
}

// SetupFlags returns the IORING_SETUP_ flags that the kernel granted.
func (r *Ring) SetupFlags() uint32 { return r.setupFlags }

// Entries returns the sizes that the kernel gave the two rings.
func (r *Ring) Entries() (sq, cq uint32) { return r.sqEntries, uint32(len(r.peeked)) }

// SQE returns the next entry to fill, or nil when the submission ring is full
// until the next Enter.
func (r *Ring) SQE() *SQE { return (*SQE)(unsafe.Pointer(r.g.GetSQE())) }

// Pending returns how many entries the kernel has not yet taken.
func (r *Ring) Pending() uint32 { return r.g.SQReady() }

// Enter hands the pending entries over and, on an IOPOLL ring, lets the kernel
// look for completions. It never sleeps. The kernel may take fewer entries than
// are pending, and then has not looked for completions: the rest goes with the
// next call.
func (r *Ring) Enter() error {
	if _, err := r.g.Submit(); err != nil {
		return enterError(err)
	}
	return nil
}

// EnterWait hands the pending entries over and sleeps until n completions are
// ready or timeout has passed; a negative timeout does not end. It may return
// early with a nil error, as after a signal: look at Ready. On an IOPOLL ring
// the kernel spins instead of sleeping and heeds no timeout.
func (r *Ring) EnterWait(n uint32, timeout time.Duration) (err error) {
	if timeout < 0 {
		_, err = r.g.SubmitAndWait(n)
	} else {
		r.ts = syscall.NsecToTimespec(int64(timeout))
		_, err = r.g.SubmitAndWaitTimeout(n, &r.ts, nil)
	}
	if err != nil {
		return enterError(err)
	}
	return nil
}

// Ready returns how many completions can be read.
func (r *Ring) Ready() uint32 { return r.g.CQReady() }

// CQE returns the i-th ready completion; it is valid until Advance passes it.
func (r *Ring) CQE(i uint32) *CQE {
	if r.passed+i >= r.seen {
		// No longer than what is ready: PeekBatchCQE fills the whole slice.
		r.passed, r.seen = 0, r.g.PeekBatchCQE(r.peeked[:r.g.CQReady()])
	}
	return (*CQE)(unsafe.Pointer(r.peeked[r.passed+i]))
}

// Advance gives the first n ready completions back to the kernel.
func (r *Ring) Advance(n uint32) {
	r.g.CQAdvance(n)
	if r.passed += n; r.passed >= r.seen {
		r.passed, r.seen = 0, 0
	}
}

// Overflowed says that the kernel keeps completions aside for which the
// completion ring had no room. Once the ring is empty, Flush brings them.
func (r *Ring) Overflowed() bool { return r.g.CQHasOverflow() }

// Flush makes the kernel move completions that it kept aside into the ring. It
// never sleeps.
func (r *Ring) Flush() error {
	if _, err := r.g.GetEvents(); err != nil {
		return enterError(err)
	}
	return nil
}

func (r *Ring) registerOnce(op uint32, arg unsafe.Pointer, n int) unix.Errno {
	// Not RegisterFiles: it hands the kernel []int where int32 are read, and
	// drops the errno.
	_, errno := r.g.Register(r.g.RingFd(), op, arg, uint32(n))
	return errno
}

func (r *Ring) descriptor() int { return r.g.RingFd() }
