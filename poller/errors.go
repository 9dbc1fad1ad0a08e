// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"fmt"
	"os"

	"pollux/internal/uring"
)

// What may be wrong with a request. These come in Request.Err.
var (
	ErrRange     = errors.New("outside the device")
	ErrAlignment = errors.New("not aligned for direct I/O")
	ErrTooLong   = errors.New("longer than the queue's MaxTransfer")
	ErrArena     = errors.New("buffer outside the queue's arena: the device would write into memory that Go may free")
	ErrOp        = errors.New("operation not supported")
	ErrReadOnly  = errors.New("device is open read-only")
)

// What a device may answer besides an errno. These come in Request.Err.
var (
	// ErrGone says that the drive vanished: removed, or lost to its bus.
	ErrGone = errors.New("drive is gone")
	// ErrShort says that a drive moved fewer bytes than asked.
	ErrShort = errors.New("short transfer")
	// ErrNotRetried says that a path to the drive failed, and that the request was
	// not sent again over another one, as the drive might then do it twice: the
	// second time after something newer. It may or may not have been done.
	ErrNotRetried = errors.New("path failed, not sent again over another")
	// ErrPathLost comes with a Flush, once: a path to the drive was lost that had
	// taken writes since the last one. What the drive still has of them is durable
	// now, as another path did flush; what was lost with the path nobody can tell.
	ErrPathLost = errors.New("path was lost that had taken writes since the last flush; another one did flush")
	// ErrNotDrained says that a request had not finished when Close gave up on
	// it. Its memory is kept, as the device may still write to it.
	ErrNotDrained = errors.New("still in flight when the queue was closed")
)

// What may be wrong with a queue or a device.
var (
	// ErrClosed is os.ErrClosed.
	ErrClosed = os.ErrClosed
	// ErrConcurrent says that two goroutines used one queue at once. It is
	// noticed only in programs built with the invariants tag.
	ErrConcurrent = errors.New("two goroutines use one queue at once: make a queue for each")
	// ErrQueuesOpen says that a device cannot be closed yet.
	ErrQueuesOpen = errors.New("queues are still open")
	// ErrBudget says that all requests that a drive holds are reserved by other
	// queues. Say in QueueConfig.Queues of how many queues each is one.
	ErrBudget = errors.New("no request of the drive's budget is left for another queue")
	// ErrNotPollable says that a drive has no poll queues, or does not use them.
	ErrNotPollable = errors.New("not pollable")
	// ErrKernelTooOld says that the kernel is older than Linux 6.1.
	ErrKernelTooOld = errors.New("kernel is too old: pollux needs Linux 6.1 or newer")
	// ErrNotAllowed says that the host forbids io_uring to this process.
	ErrNotAllowed = uring.ErrForbidden
)

// Error says which operation failed, where, and why. A stacked device wraps the
// error of the member that failed, so that errors.Is and errors.As reach the
// cause at any depth.
type Error struct {
	Op Op
	// Member is the slot of the member that failed, -1 on a disk.
	Member int
	// Path is the name of the device that the request was for.
	Path string
	// Offset is that of the request on this device, in bytes. On a disk that is a
	// part of a device it counts from the start of the device.
	Offset int64
	Err    error
}

// Error implements the error interface.
func (e *Error) Error() string {
	where := fmt.Sprintf("%s: %s", e.Path, e.Op)
	if e.Op != Flush {
		where += fmt.Sprintf(" at %d", e.Offset)
	}
	if e.Member >= 0 {
		where += fmt.Sprintf(": member %d", e.Member)
	}
	return where + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
