// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"fmt"
	"sync"

	"pollux/internal/uring"
)

// MaxArena is the largest arena in bytes: what the kernel takes as one
// registered buffer.
const MaxArena = 1 << 30

// Arena is memory for the buffers of I/O: outside the Go heap, page aligned, on
// huge pages where the host has them. One arena may serve several queues; who
// uses which part of it is up to the caller.
type Arena struct {
	mem *uring.Memory

	mu     sync.Mutex
	queues int
	lost   int // requests that may still write here
}

// NewArena makes an arena of at least n bytes, at most MaxArena.
func NewArena(n int64) (*Arena, error) {
	if n <= 0 || n > MaxArena {
		return nil, fmt.Errorf("arena of %d bytes: the size must be from 1 to %d; use fewer or shorter requests", n, MaxArena)
	}
	mem, err := uring.NewMemory(int(n))
	if err != nil {
		return nil, fmt.Errorf("arena of %d bytes: %w", n, err)
	}
	return &Arena{mem: mem}, nil
}

// Bytes returns the whole arena, nil when it is closed. Slices of it are the
// buffers of requests.
func (a *Arena) Bytes() []byte {
	if a.mem == nil {
		return nil
	}
	return a.mem.Bytes()
}

// Fault says what is wrong with buf as the buffer of a request to a device whose
// BufAlign is align, nil if nothing is.
func (a *Arena) Fault(buf []byte, align int64) error {
	if len(buf) == 0 {
		return nil
	}
	if a.mem == nil {
		return ErrArena
	}
	addr, ok := a.mem.Addr(buf)
	if !ok {
		return ErrArena
	}
	if off := int64(addr) & (align - 1); off != 0 {
		return fmt.Errorf("%w: the buffer begins %d bytes off a multiple of %d", ErrAlignment, off, align)
	}
	return nil
}

// Close gives the memory back. It refuses while a queue uses the arena, and for
// ever when a queue was closed with requests in flight.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.mem == nil:
		return fmt.Errorf("arena: %w", ErrClosed)
	case a.queues > 0:
		return fmt.Errorf("arena: %d %w: close them first", a.queues, ErrQueuesOpen)
	case a.lost > 0:
		return fmt.Errorf("arena: %d requests %w: the memory is kept", a.lost, ErrNotDrained)
	}
	err := a.mem.Close()
	a.mem = nil
	return err
}

// use counts a queue that will do I/O to the arena.
func (a *Arena) use() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mem == nil {
		return fmt.Errorf("arena: %w", ErrClosed)
	}
	a.queues++
	return nil
}

// release ends a use; lost requests were not drained.
func (a *Arena) release(lost int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queues--
	a.lost += lost
}
