// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"time"
)

// Device is anything that has queues: a disk, a volume, a multipath. Whoever
// holds one does not ask whether it is stacked. All methods may be called by
// any goroutine.
type Device interface {
	// Limits says what the device can do. It does not change while the device
	// is open.
	Limits() Limits
	// NewQueue makes a queue for one goroutine and reserves its share of every
	// member's budget, once. It fails with ErrBudget when not even one largest
	// request is left, and with ErrNotAllowed when the host forbids io_uring.
	NewQueue(QueueConfig) (Queue, error)
	// Stats returns the counters of the device since it was opened, summed over
	// its queues, open and closed, and those of what it is stacked on.
	Stats() Stats
	// Close gives the device back. While queues are open it fails with
	// ErrQueuesOpen, says how many, and leaves the device open.
	Close() error
}

// Queue is one goroutine's submission context on a device. It is not safe for
// use by two goroutines at once, but may move from one to another. Built with
// the invariants tag, simultaneous use is reported as ErrConcurrent.
type Queue interface {
	// Limits says what this queue was granted.
	Limits() Limits
	// Submit accepts a prefix of reqs, returns its length, and starts nothing.
	// Fewer than len(reqs) means that the queue is full for the next request;
	// it takes a request whole or not at all, and an empty queue takes any
	// request of at most Limits().MaxTransfer. A request that is wrong in
	// itself is accepted too and comes back with Err. An accepted request and
	// its Buf belong to the queue until Poll, Wait or Close has given it back.
	// The error is about the queue: ErrClosed, ErrConcurrent, or a broken ring.
	Submit(reqs []*Request) (int, error)
	// Poll starts what was submitted, reaps what has finished into done, and
	// returns how many. It never sleeps. Every accepted request comes back
	// exactly once; what done has no room for comes with the next call.
	Poll(done []*Request) (int, error)
	// Wait is Poll until min requests, at most what is outstanding and what
	// done holds, were reaped, or timeout has passed; expiry is no error. A
	// timeout of 0 does not sleep, a negative one waits without end. While
	// polled I/O is out it spins, yielding to other goroutines; with only plain
	// I/O out it sleeps in the kernel.
	Wait(min int, done []*Request, timeout time.Duration) (int, error)
	// Stats returns the counters of this queue alone: no name, and no members. It
	// may be called by any goroutine at any time, and after Close, which is when it
	// has counted everything.
	Stats() Stats
	// Close drains the queue, at most QueueConfig.CloseTimeout long. Requests
	// still out get their results set before it returns. What did not finish in
	// time gets ErrNotDrained, is counted in Close's error, and the memory that
	// the device may still write to is never reused.
	Close() error
}

// Limits describes a device, or what a queue of it was granted. Sizes are
// bytes.
type Limits struct {
	// Size is the capacity. Offsets run from 0 to Size.
	Size int64
	// BlockSize divides every Offset and every len(Buf).
	BlockSize int64
	// BufAlign divides the address of every Buf.
	BufAlign int64
	// MaxTransfer is the longest Buf that one request may have.
	MaxTransfer int64
	// QueueDepth is, for a device, its budget of I/O in flight over all
	// queues, of which a request takes one for each Unit begun; for a queue, how
	// many requests of MaxTransfer it holds at least.
	QueueDepth int
	// Unit is the longest request that takes one of a device's budget. It is 0
	// on a queue.
	Unit int64
	// ReadOnly says that writes are refused.
	ReadOnly bool
	// NotPollable is nil when HiPri requests are polled. Otherwise it says
	// which drive is not and why, and errors.Is(NotPollable, ErrNotPollable).
	NotPollable error
	// GoneIsFinal says that a drive which is gone (ErrGone) does nothing more of what
	// was sent to it. That holds on PCI Express, where the controller is reset with its
	// link. Behind a network the target goes on with what has reached it.
	GoneIsFinal bool
	// FixedBuffers says that the arena is registered with every ring of the
	// queue. It is false on a device.
	FixedBuffers bool
	// Arena is the memory that requests of this queue must use. It is nil on a
	// device.
	Arena *Arena
}

// QueueConfig asks for a queue. The zero value is usable.
type QueueConfig struct {
	// Depth is how many requests should fit at once; 0 means 32.
	Depth int
	// MinDepth is how many must fit at least, or NewQueue fails with ErrBudget;
	// 0 means 1. A stacked device asks its members for as many as one of its
	// own requests may need.
	MinDepth int
	// MaxTransfer is the longest request in bytes; 0 means 128 KiB.
	MaxTransfer int64
	// Queues is of how many queues this will be one: none gets more than its
	// share of a member's budget. 0 means 1.
	Queues int
	// Arena holds the buffers of the queue's requests. nil makes one of Depth
	// times MaxTransfer bytes that is closed with the queue; Limits().Arena
	// gives access to it.
	Arena *Arena
	// NoFixedBuffers keeps the arena from being registered with the rings. I/O
	// costs more then, as its pages are pinned each time; it is for comparisons, and
	// for those who have little locked memory (RLIMIT_MEMLOCK).
	NoFixedBuffers bool
	// CloseTimeout bounds Close; 0 means 10 s.
	CloseTimeout time.Duration
	// Waker, where there is one, lets other goroutines end a Wait of this queue
	// early. It heeds that of the root, and no other.
	Waker *Waker
	// Tree ties together the queues of one stack. Callers leave it nil; the
	// root's NewQueue makes it (MakeQueue) and every layer hands it down.
	Tree *Tree
}

const (
	defaultDepth        = 32
	maxDepth            = 1 << 20 // far above any drive's budget, far below an overflow
	defaultMaxTransfer  = 128 << 10
	defaultCloseTimeout = 10 * time.Second
)

// withDefaults returns c with every zero replaced by its meaning.
func (c QueueConfig) withDefaults() QueueConfig {
	if c.Depth <= 0 {
		c.Depth = defaultDepth
	}
	c.MinDepth = min(max(c.MinDepth, 1), maxDepth)
	c.Depth = min(max(c.Depth, c.MinDepth), maxDepth)
	c.MaxTransfer = min(c.MaxTransfer, MaxArena) // a Buf lies in an arena
	if c.MaxTransfer <= 0 {
		c.MaxTransfer = defaultMaxTransfer
	}
	if c.Queues <= 0 {
		c.Queues = 1
	}
	if c.CloseTimeout <= 0 {
		c.CloseTimeout = defaultCloseTimeout
	}
	return c
}
