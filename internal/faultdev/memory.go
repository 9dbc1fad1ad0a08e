// SPDX-License-Identifier: Apache-2.0

package faultdev

import (
	"fmt"
	"sync"

	"pollux/poller"
)

// Memory is a device in RAM. Its methods may be called by any goroutine.
type Memory struct {
	opts  MemoryOptions
	size  int64
	block int64

	recorders poller.Recorders

	content *content

	mu       sync.Mutex
	reserved int
	queues   uint64 // made so far
	closed   bool
}

// content is what a device holds, and all that share it.
type content struct {
	mu    sync.Mutex
	bytes []byte
}

// MemoryOptions are those of NewMemory. The zero value is usable.
type MemoryOptions struct {
	// Name is that of the device; "" is memory.
	Name string
	// Budget is how many requests all queues together hold, longer ones counted
	// once for each Unit begun; 0 is 128.
	Budget int
	// Unit is the longest request that takes one of the budget, in bytes; 0 is
	// 128 KiB.
	Unit int64
	// BufAlign divides the address of every buffer; 0 is the block size.
	BufAlign int64
	// ReadOnly refuses writes.
	ReadOnly bool
	// GoneIsFinal is what the limits say.
	GoneIsFinal bool
	// Seed, unless 0, makes requests finish in random order.
	Seed uint64
	// Lateness, with a Seed, is how many polls a request may take at most; 0
	// and 1 are the next one.
	Lateness int
}

// NewMemory makes a device of size bytes, all zero. size is cut to a multiple of
// blockSize, a power of two.
func NewMemory(size, blockSize int64, opts MemoryOptions) *Memory {
	if opts.Name == "" {
		opts.Name = "memory"
	}
	if opts.Budget <= 0 {
		opts.Budget = 128
	}
	if opts.Unit <= 0 {
		opts.Unit = 128 << 10
	}
	if opts.BufAlign <= 0 {
		opts.BufAlign = blockSize
	}
	size &^= blockSize - 1
	return &Memory{opts: opts, size: size, block: blockSize, content: &content{bytes: make([]byte, size)}}
}

// Share makes another device of the same bytes: another path to them.
func (m *Memory) Share(opts MemoryOptions) *Memory {
	other := NewMemory(0, m.block, opts)
	other.size, other.content = m.size, m.content
	return other
}

// Bytes returns what the device holds. It must not be used while I/O is in
// flight.
func (m *Memory) Bytes() []byte { return m.content.bytes }

// Limits implements poller.Device.
func (m *Memory) Limits() poller.Limits {
	return poller.Limits{
		Size:        m.size,
		BlockSize:   m.block,
		BufAlign:    m.opts.BufAlign,
		MaxTransfer: int64(m.opts.Budget) * m.opts.Unit,
		QueueDepth:  m.opts.Budget,
		Unit:        m.opts.Unit,
		GoneIsFinal: m.opts.GoneIsFinal,
	}
}

// Stats implements poller.Device.
func (m *Memory) Stats() poller.Stats { return m.recorders.Sum(m.opts.Name) }

// Close implements poller.Device.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("%s: %w", m.opts.Name, poller.ErrClosed)
	}
	if n := m.recorders.Open(); n > 0 {
		return fmt.Errorf("%s: %d %w: close them first", m.opts.Name, n, poller.ErrQueuesOpen)
	}
	m.closed = true
	return nil
}

// units returns how much of the budget a request of n bytes takes.
func (m *Memory) units(n int64) int { return int((n + m.opts.Unit - 1) / m.opts.Unit) }

// reserve takes a queue's share of the budget and returns it, and of which
// queue it is.
func (m *Memory) reserve(cfg poller.QueueConfig) (share int, queue uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, 0, poller.ErrClosed
	}
	each, left := m.units(cfg.MaxTransfer), m.opts.Budget-m.reserved
	least := cfg.MinDepth * each
	if least > left {
		return 0, 0, fmt.Errorf("%w: %d of %d are reserved and %d are needed", poller.ErrBudget, m.reserved, m.opts.Budget, least)
	}
	share = min(max(min(cfg.Depth*each, m.opts.Budget/cfg.Queues), least), left)
	m.reserved += share
	m.queues++
	return share, m.queues, nil
}
