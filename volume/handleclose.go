// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Close refuses new calls with os.ErrClosed, waits for those in progress for at most
// Options.CloseTimeout, then makes them return an error that answers to
// poller.ErrNotDrained, and closes the queues and the device. Its error joins what
// went wrong: how many requests did not come back, and that queues of Device() are
// open, in which case the device stays open. Any goroutine may call it; a second Close
// is os.ErrClosed.
func (h *Handle) Close() error {
	if h.dev == nil {
		return fmt.Errorf("closing a Handle that neither Open nor NewHandle has made: %w", os.ErrInvalid)
	}
	h.mu.Lock()
	already := h.closed.Swap(true)
	h.mu.Unlock()
	if already {
		return fmt.Errorf("%s: %w", h.name, errHandleClosed)
	}
	// No lane is made from here on. They are closed side by side, so that one that
	// hangs takes no time from the others.
	errs := make([]error, h.made.Load(), h.made.Load()+1)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			if err := h.lanes[i].Load().shut(h.opts.CloseTimeout); err != nil {
				errs[i] = fmt.Errorf("%s: %w", h.name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, h.dev.Close())...)
}

// shut closes the lane when all calls have left and all I/O is back, or when timeout
// has passed.
func (l *lane) shut(timeout time.Duration) error {
	me := &party{wake: make(chan bool, 1), asleep: true}
	l.mu.Lock()
	l.closing, l.closer = true, me
	for _, list := range []*parties{&l.blocked, &l.small.waiters, &l.large.waiters} {
		for p := list.first; p != nil; {
			next := p.next
			if !p.begun {
				list.remove(p)
				l.settleOne(p, refused)
			}
			p = next
		}
	}
	l.checkCloser()
	// I/O that calls have left behind needs somebody to poll for it.
	lead := me.fate == pending && l.leader == nil && l.out > 0
	if lead {
		l.appoint(me)
	} else {
		l.mu.Unlock()
	}
	stop := time.AfterFunc(timeout, l.stop)
	l.await(me, lead)
	stop.Stop()
	return l.close()
}

// stop makes all calls return, with what they have.
func (l *lane) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.leader != nil {
		// It does the rest. It may be about to look, and then does without this.
		if l.inWait {
			l.inWait = false
			l.waker.Wake()
		}
		return
	}
	l.abandonAll(given)
	l.checkCloser()
}
