// SPDX-License-Identifier: Apache-2.0

package poller

import "fmt"

// Op is what a request does.
type Op uint8

const (
	// Read fills Buf from Offset.
	Read Op = iota
	// Write stores Buf at Offset.
	Write
	// Flush makes every write whose completion was returned before it was
	// submitted, by any queue of the device, survive a power cut. Offset and
	// Buf are not used.
	Flush

	numOps = 3
)

// String returns the name that statistics and errors use.
func (op Op) String() string {
	switch op {
	case Read:
		return "read"
	case Write:
		return "write"
	case Flush:
		return "flush"
	}
	return fmt.Sprintf("op(%d)", uint8(op))
}

// Flags are wishes of one request.
type Flags uint8

const (
	// HiPri asks that the request be polled. Where that cannot be (a Flush, or
	// a drive that was allowed to be plain) it is sent plain and counted.
	HiPri Flags = 1 << iota
	// FUA makes a Write durable before it completes (RWF_DSYNC).
	FUA
	// NoWait fails the request with EAGAIN where starting it would block
	// (RWF_NOWAIT).
	NoWait
)

// Priority is an I/O priority as ioprio_set(2) encodes it: the class in the
// upper three bits, the level in the lower thirteen. 0 means that of the
// calling thread.
type Priority uint16

// PriorityClass is an I/O scheduling class with the numbers of ioprio_set(2).
type PriorityClass uint8

// The classes of ioprio_set(2).
const (
	PriorityNone PriorityClass = iota
	PriorityRealtime
	PriorityBestEffort
	PriorityIdle
)

// NewPriority makes a Priority; level 0 is the highest, 7 the lowest.
func NewPriority(class PriorityClass, level int) (Priority, error) {
	if class > PriorityIdle || level < 0 || level > 7 {
		return 0, fmt.Errorf("priority class %d level %d: classes are 0 to 3, levels 0 to 7", class, level)
	}
	return Priority(class)<<13 | Priority(level), nil
}

// Request is one I/O. Its owner fills it in, gives it to Submit, and does not
// touch it until it comes back; then N, Err and Polled are the results, and it
// may be used again.
type Request struct {
	Op       Op
	Flags    Flags
	Priority Priority
	// Offset is in bytes from the start of the device. While the request is out
	// a stacked device may change it to that on its member, as the kernel's
	// stacked drivers do with a bio; it comes back as it was.
	Offset int64
	// Buf lies in the queue's arena. Its length is that of the I/O; a length of
	// 0 completes at once with N 0.
	Buf []byte

	// N is len(Buf) when Err is nil, otherwise 0: there is no partial success.
	N int
	// Err is nil or an *Error.
	Err error
	// Polled says that every part of the I/O went through an IOPOLL ring.
	Polled bool

	// Tag is the owner's; nothing here reads it.
	Tag uint64

	origin int64  // Offset as the root was given it
	start  int64  // when the root was given it, by the tree's clock
	left   int32  // parts still out, of the leaf that holds the request
	layer  uint16 // the Layer that made it, 0 for the application
}
