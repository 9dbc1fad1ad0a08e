// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"pollux/multipath"
	"pollux/poller"
)

// Options are those of a Handle. The zero value reads and writes, insists on
// polling, and waits as long as it takes. NewHandle, which is given a device, does
// not look at the first five.
type Options struct {
	// Volume is the name or the UUID of the volume to open. It may be "" where
	// Devices have no more than one.
	Volume string
	// Devices are where to look for the members: paths of block devices and files,
	// and shell patterns. Without any, all block devices are looked at, and no file.
	Devices []string
	// Force opens for writing although a member has the signature of something else
	// on it, such as that of a filesystem. Nothing of it is wiped.
	Force bool
	// Patience is how long looking for the members may take; 0 means 10 s. A drive
	// that has not answered by then is taken for missing.
	Patience time.Duration
	// Paths says how members are used that were found over several paths. Their Name
	// is of no use here.
	Paths multipath.Options

	// ReadOnly makes writes and Flush fail with poller.ErrReadOnly. A device that
	// is read-only itself does the same to its handle.
	ReadOnly bool
	// Polling says whether I/O is to be polled (HiPri). With PollRequired a device
	// of which any part cannot be polled is refused with poller.ErrNotPollable;
	// PollIfPossible polls what can be; PollNever sends everything plain.
	Polling poller.Polling
	// Timeout is how long one call may take, waiting for a buffer or for another
	// write of the same block included; 0 is without end. A call that takes longer
	// fails with an error that answers to os.ErrDeadlineExceeded. Its I/O may still
	// happen after that; the caller's slice is not touched any more. A write of
	// whole blocks that happens so late may replace what a later one has written
	// there (see Handle).
	Timeout time.Duration
	// Queues is how many queues there may be at most, each with a ring and a
	// goroutine that polls for all while there is I/O; 0 means half of GOMAXPROCS,
	// at least 1 and at most 8. More than 1024 are refused.
	Queues int
	// Depth is how many requests each queue may have in flight; 0 means 256. What
	// the device grants may be less, and then requests wait. Refused is a Depth
	// whose buffers, a page and 8 KiB for each, would exceed poller.MaxArena.
	Depth int
	// CloseTimeout is how long Close waits for calls in progress; 0 means 10 s.
	CloseTimeout time.Duration
}

const (
	defaultHandleDepth  = 256
	defaultHandleQueues = 8
	maxHandleQueues     = 1024
	defaultCloseTimeout = 10 * time.Second
)

// maxHandleDepth is what the buffers of a lane allow at most, where blocks and the
// alignment of buffers take no more than a page.
func maxHandleDepth() int64 {
	return poller.MaxArena / (int64(os.Getpagesize()) + largeTransfer/largeShare + 1)
}

// withDefaults returns o with every zero replaced by its meaning, or says what is
// wrong with it.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Queues < 0 || o.Queues > maxHandleQueues:
		return o, fmt.Errorf("option Queues is %d, must be from 0 to %d", o.Queues, maxHandleQueues)
	case o.Depth < 0:
		return o, fmt.Errorf("option Depth is %d, must not be negative", o.Depth)
	case int64(o.Depth) > maxHandleDepth():
		return o, fmt.Errorf("option Depth is %d, must not be more than %d: the buffers of a queue would exceed %d bytes",
			o.Depth, maxHandleDepth(), int64(poller.MaxArena))
	case o.Timeout < 0:
		return o, fmt.Errorf("option Timeout is %v, must not be negative; 0 is none", o.Timeout)
	case o.Polling > poller.PollNever:
		return o, fmt.Errorf("option Polling is %d, which is none of the modes", o.Polling)
	}
	if o.Queues == 0 {
		o.Queues = min(max(runtime.GOMAXPROCS(0)/2, 1), defaultHandleQueues)
	}
	if o.Depth == 0 {
		o.Depth = defaultHandleDepth
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = defaultCloseTimeout
	}
	return o, nil
}
