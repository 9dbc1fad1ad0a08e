// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Event is an eventfd(2): a counter that one side raises and that a ring can wait
// for with OpPollAdd. It is not safe to Close it beside other calls.
type Event struct{ fd int }

// NewEvent makes an event that was not raised.
func NewEvent() (*Event, error) {
	// Neither side may sleep in it: the reader would sleep where nobody can
	// submit any more, the writer where the counter is full, which is as good
	// as raised.
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &Event{fd}, nil
}

// FD returns the descriptor, which stays the event's.
func (e *Event) FD() int32 { return int32(e.fd) }

// Raise makes the event readable until the next Drain.
func (e *Event) Raise() error {
	one := [8]byte{1: 1} // not 0 in either byte order
	for {
		_, err := unix.Write(e.fd, one[:])
		switch {
		case err == nil, errors.Is(err, unix.EAGAIN):
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("eventfd: %w", err)
		}
	}
}

// Drain makes the event unreadable until the next Raise.
func (e *Event) Drain() error {
	var count [8]byte
	for {
		_, err := unix.Read(e.fd, count[:])
		switch {
		case err == nil, errors.Is(err, unix.EAGAIN):
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("eventfd: %w", err)
		}
	}
}

var errEventClosed = fmt.Errorf("eventfd: %w", os.ErrClosed)

// Close gives the descriptor back. A second Close is os.ErrClosed.
func (e *Event) Close() error {
	if e.fd < 0 {
		return errEventClosed
	}
	fd := e.fd
	e.fd = -1
	return unix.Close(fd)
}
