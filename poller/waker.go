// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"pollux/internal/uring"
)

// Waker ends the Wait of a queue early, so that its owner looks at what other
// goroutines have for it. It is given to the queue in QueueConfig.Waker, serves
// that one queue, and is closed after it.
//
// It is like a semaphore of one: a Wake while nobody waits makes the next Wait
// return at once, and two before that are as good as one. A Wait may also return
// early for a Wake that its owner has already acted upon. So whoever hands work
// over puts it where the owner looks and then wakes; the owner, after each Wait,
// looks there.
//
// How no wake is lost: state is the only thing that both sides decide by, and
// they change it by read-modify-write alone.
//
//	Wake   swaps in woken. If that replaced sleeping, it raises the event too.
//	Wait   before it sleeps changes idle to sleeping. If it finds woken instead, it
//	       does not sleep. The event has been armed in the ring by then, or is
//	       armed by the same system call that sleeps.
//	       Awake again, for whatever reason, it changes sleeping back to idle.
//	       Before it returns it changes woken, if that is what it finds, to idle,
//	       and only its owner looks for work after that.
//
// So the two sides cannot miss each other: of the swap and the change to sleeping
// one is first. If it is the swap, Wait sees woken; if it is the change, Wake sees
// sleeping. The event itself may come late, when Wait has woken up for another
// reason and gone to sleep again: then the sleep is cut short, state says that
// nobody woke it, and it goes on sleeping.
type Waker struct {
	state atomic.Uint32

	// mu keeps Close from giving away the descriptor that a late Wake writes
	// to. It is taken only where there is a system call to make anyway.
	mu     sync.Mutex
	event  *uring.Event
	closed bool
}

// What a Waker's state says.
const (
	wakerIdle     = iota // its owner does not sleep
	wakerWoken           // and is to return from Wait
	wakerSleeping        // it sleeps in the kernel, or is about to
)

// wakeData is the user_data of the entry that waits for the event. No leaf has
// it: that would take 2^32 slots.
const wakeData = ^uint64(0)

// NewWaker makes a Waker. The error is the system's: no descriptor is left, or
// this is no Linux (errors.ErrUnsupported).
func NewWaker() (*Waker, error) {
	event, err := uring.NewEvent()
	if err != nil {
		return nil, fmt.Errorf("waker: %w", err)
	}
	return &Waker{event: event}, nil
}

// Wake makes the Wait that is in progress, or else the next one, return. Any
// goroutine may call it, at any time, also after Close, when it does nothing. It
// makes a system call only when the queue's owner sleeps in the kernel.
func (w *Waker) Wake() {
	// Most often somebody has done so already. Their wake does for ours: it was
	// not taken yet, so the owner has not looked for work since ours was put
	// there.
	if w.state.Load() == wakerWoken || w.state.Swap(wakerWoken) != wakerSleeping {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		// It fails for a bad descriptor alone, which this is not.
		_ = w.event.Raise()
	}
}

// Close gives the descriptor back. The queue must be closed before. A second
// Close is ErrClosed.
func (w *Waker) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return fmt.Errorf("waker: %w", ErrClosed)
	}
	w.closed = true
	return w.event.Close()
}

// take reports whether Wait was woken, once. It costs a load in each turn of a
// spin.
func (w *Waker) take() bool {
	return w.state.Load() == wakerWoken && w.state.CompareAndSwap(wakerWoken, wakerIdle)
}

// sleepPlain starts what is pending on the plain ring and sleeps until one
// completion is there, the tree is woken, or timeout has passed. It waits for one,
// however many are wanted: the event is a completion as well, and the kernel only
// counts.
func (t *Tree) sleepPlain(timeout time.Duration) error {
	if !t.wakerArmed {
		if err := t.armWaker(); err != nil {
			return err
		}
		if !t.wakerArmed {
			// Nothing would end the sleep. So it spins this once.
			runtime.Gosched()
			return nil
		}
	}
	if !t.waker.state.CompareAndSwap(wakerIdle, wakerSleeping) {
		if t.plain.Pending() != 0 {
			return t.plain.Enter()
		}
		return nil
	}
	err := t.plain.EnterWait(1, timeout)
	// Unless it is woken, which wait will see.
	t.waker.state.CompareAndSwap(wakerSleeping, wakerIdle)
	return err
}

// armWaker fills the entry that waits for the event, if the ring has one. It goes to
// the kernel with the enter that sleeps, and stays armed over sleeps that end otherwise.
func (t *Tree) armWaker() error {
	sqe := t.plain.SQE()
	if sqe == nil {
		// The ring is full of what is pending.
		if err := t.plain.Enter(); err != nil {
			return err
		}
		if sqe = t.plain.SQE(); sqe == nil {
			return nil // the kernel was short of memory
		}
	}
	*sqe = uring.SQE{Opcode: uring.OpPollAdd, FD: t.waker.event.FD(), OpFlags: uring.PollIn, UserData: wakeData}
	t.wakerArmed = true
	return nil
}

// wakerFired takes the completion of the entry that armWaker has made.
func (t *Tree) wakerFired(cqe *uring.CQE) {
	t.wakerArmed = false
	if cqe.Res < 0 {
		t.broken = fmt.Errorf("waiting for the waker: %w: result %d", errRing, cqe.Res)
		return
	}
	if err := t.waker.event.Drain(); err != nil {
		t.broken = err
	}
}
