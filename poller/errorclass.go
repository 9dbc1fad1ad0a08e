// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"os"
	"syscall"
)

// ErrorClass is what kind of error a request came back with, for those who count.
type ErrorClass uint8

const (
	// ErrorOther is everything that is nothing of the below.
	ErrorOther ErrorClass = iota
	// ErrorGone is of a drive that vanished.
	ErrorGone
	// ErrorMedium is of a drive that cannot read or write the blocks: ENODATA, EILSEQ, a
	// short transfer, and EIO, which is that or anything else.
	ErrorMedium
	// ErrorTimeout is of what was not answered in time.
	ErrorTimeout
	// ErrorTransport is of the way to the drive: ENOLINK, ENODEV, ENXIO, a path that
	// was lost.
	ErrorTransport
	// ErrorAgain is of a request that was not to wait (NoWait).
	ErrorAgain
	// ErrorRequest is of a request that was wrong in itself.
	ErrorRequest

	numErrorClasses = 7
)

// String returns the name that statistics use.
func (c ErrorClass) String() string {
	if c >= numErrorClasses {
		c = ErrorOther
	}
	return [numErrorClasses]string{"other", "gone", "medium", "timeout", "transport", "again", "request"}[c]
}

// errorsOfClass are looked through in this order.
var errorsOfClass = []struct {
	class  ErrorClass
	errors []error
}{
	{ErrorGone, []error{ErrGone}},
	{ErrorTransport, []error{ErrNotRetried, ErrPathLost, syscall.ENOLINK, syscall.ENODEV, syscall.ENXIO}},
	{ErrorTimeout, []error{syscall.ETIMEDOUT, os.ErrDeadlineExceeded, ErrNotDrained}},
	{ErrorMedium, []error{ErrShort, syscall.ENODATA, syscall.EILSEQ, syscall.EIO}},
	{ErrorAgain, []error{syscall.EAGAIN}},
	{ErrorRequest, []error{ErrRange, ErrAlignment, ErrTooLong, ErrArena, ErrOp, ErrReadOnly, syscall.EINVAL, syscall.EOPNOTSUPP}},
}

// ClassOf returns the class of an error of a request, however it is wrapped.
func ClassOf(err error) ErrorClass {
	for _, c := range errorsOfClass {
		for _, e := range c.errors {
			if errors.Is(err, e) {
				return c.class
			}
		}
	}
	return ErrorOther
}
