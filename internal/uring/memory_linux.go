// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is a mapping outside the Go heap: the device writes into it while no
// Go pointer says so, and it must neither be freed nor counted as garbage.
type Memory struct {
	b    []byte
	base uintptr
	huge bool
}

// hugePage is the size that transparent huge pages need the mapping to be
// aligned to, on amd64 and on arm64 with 4 KiB pages.
const hugePage = 2 << 20

// NewMemory maps n bytes, page aligned, resident, and on huge pages where the
// host has them. n is rounded up to whole pages.
func NewMemory(n int) (*Memory, error) {
	page := unix.Getpagesize()
	if n <= 0 || int64(n) > 1<<40 {
		return nil, fmt.Errorf("memory of %d bytes: the size must be positive and at most 1 TiB", n)
	}
	n = (n + page - 1) / page * page
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if n >= hugePage {
		if b := mapHuge((n+hugePage-1)/hugePage*hugePage, prot, flags); b != nil {
			return &Memory{b: b, base: address(b), huge: true}, nil
		}
	}
	b, err := unix.Mmap(-1, 0, n, prot, flags)
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes of I/O memory: %w", n, err)
	}
	// Both are wishes: without them the memory is the same, in small pages and
	// faulted in when it is registered.
	if n >= hugePage {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
	_ = unix.Madvise(b, unix.MADV_POPULATE_WRITE)
	return &Memory{b: b, base: address(b)}, nil
}

// mapHuge maps n bytes of explicit huge pages, or returns nil.
func mapHuge(n, prot, flags int) []byte {
	// The size is named because the host's default may be another one, which
	// would round the mapping up to more than munmap is later told.
	b, err := unix.Mmap(-1, 0, n, prot, flags|unix.MAP_HUGETLB|unix.MAP_HUGE_2MB)
	if err != nil {
		return nil
	}
	// A cgroup may hold back pages that the mapping has reserved. Asked for
	// here that is an error, found out at the first access it is SIGBUS.
	if unix.Madvise(b, unix.MADV_POPULATE_WRITE) != nil {
		_ = unix.Munmap(b)
		return nil
	}
	return b
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Close unmaps the memory. Every ring that has it registered must be closed
// before, and nothing in flight on it.
func (m *Memory) Close() error {
	b := m.b
	m.b, m.base = nil, 0
	return unix.Munmap(b)
}

// Bytes returns the whole mapping.
func (m *Memory) Bytes() []byte { return m.b }

// Huge says that the mapping is made of explicit huge pages.
func (m *Memory) Huge() bool { return m.huge }

// Addr returns the address of b for an SQE, and whether b, which must not be
// empty, lies within m.
func (m *Memory) Addr(b []byte) (uintptr, bool) {
	p := address(b)
	return p, len(b) <= len(m.b) && p-m.base <= uintptr(len(m.b)-len(b))
}
