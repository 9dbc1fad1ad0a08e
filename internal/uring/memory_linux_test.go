// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMemory(t *testing.T) {
	page := unix.Getpagesize()
	for _, n := range []int{1, page, page + 1, 1 << 20, 2 << 20, 2<<20 + 1, 5 << 20} {
		m := newMemory(t, n)
		b := m.Bytes()
		if len(b) < n || len(b)%page != 0 || !m.Huge() && len(b) >= n+page {
			t.Errorf("NewMemory(%d) has %d bytes", n, len(b))
		}
		if p, ok := m.Addr(b); !ok || p%uintptr(page) != 0 {
			t.Errorf("NewMemory(%d) is at %#x, inside of itself: %v", n, p, ok)
		}
		if b[0] != 0 || b[len(b)-1] != 0 {
			t.Error("not zero")
		}
		b[0], b[len(b)-1] = 1, 1
	}
	for _, n := range []int{0, -1, 1<<40 + 1} {
		if _, err := NewMemory(n); err == nil {
			t.Errorf("NewMemory(%d) did not fail", n)
		}
	}
}

func TestMemoryAddr(t *testing.T) {
	// The memory is the middle of a mapping, so that its neighbours exist.
	const size = 4096
	all := newMemory(t, 3*size).Bytes()
	base := uintptr(unsafe.Pointer(&all[0]))
	m := &Memory{b: all[size : 2*size : 2*size], base: base + size}
	for _, tt := range []struct {
		name     string
		from, to int
		inside   bool
	}{
		{"all", size, 2 * size, true},
		{"first byte", size, size + 1, true},
		{"last byte", 2*size - 1, 2 * size, true},
		{"all but the ends", size + 1, 2*size - 1, true},
		{"byte before", size - 1, size, false},
		{"byte behind", 2 * size, 2*size + 1, false},
		{"straddles the beginning", size - 1, size + 1, false},
		{"straddles the end", 2*size - 1, 2*size + 1, false},
		{"as long, a byte early", size - 1, 2*size - 1, false},
		{"as long, a byte late", size + 1, 2*size + 1, false},
		{"longer, same beginning", size, 2*size + 1, false},
		{"longer, same end", size - 1, 2 * size, false},
		{"longer, all around", 0, 3 * size, false},
		{"before", 0, size, false},
		{"behind", 2 * size, 3 * size, false},
	} {
		p, inside := m.Addr(all[tt.from:tt.to])
		if inside != tt.inside {
			t.Errorf("%s: inside = %v", tt.name, inside)
		}
		if p != base+uintptr(tt.from) {
			t.Errorf("%s: address %#x, want %#x", tt.name, p, base+uintptr(tt.from))
		}
	}
	if _, inside := m.Addr(make([]byte, 16)); inside {
		t.Error("the Go heap is inside")
	}
}

func TestMemoryAddrAfterClose(t *testing.T) {
	m, err := NewMemory(4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, inside := m.Addr(make([]byte, 16)); inside || m.Bytes() != nil {
		t.Error("a closed memory holds something")
	}
	if m.Close() == nil {
		t.Error("the second Close is no error")
	}
}

func TestRegisterTooLong(t *testing.T) {
	const size = maxBuffer + 4096
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	r := newRing(t, Config{})
	if err := r.RegisterMemory(&Memory{b: b, base: address(b)}); !errors.Is(err, unix.EFAULT) {
		t.Fatal(err)
	}
	iov := unix.Iovec{Base: &b[0], Len: size}
	if errno := r.registerOnce(registerBuffers, unsafe.Pointer(&iov), 1); errno != unix.EFAULT {
		t.Fatalf("the kernel takes more than %d bytes by now: %v", maxBuffer, errno)
	}
}

func TestCloneMemory(t *testing.T) {
	const size = 8192
	fd := directFile(t, size)
	m := newMemory(t, 2*size)
	want := m.Bytes()[:size]
	for i := range want {
		want[i] = byte(i * 7)
	}
	if _, err := unix.Pwrite(fd, want, 0); err != nil {
		t.Fatal(err)
	}
	src, dst := newRing(t, Config{}), newRing(t, Config{})
	if err := src.RegisterMemory(m); err != nil {
		t.Fatal(err)
	}
	err := dst.CloneMemory(src)
	if !kernelAtLeast(t, 6, 12) {
		if !errors.Is(err, unix.EINVAL) {
			t.Fatalf("before Linux 6.12: %v, want EINVAL", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	// It outlives the ring that it came from.
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	got := m.Bytes()[size:]
	push(t, dst, SQE{Opcode: OpReadFixed, FD: int32(fd), Addr: mustAddr(t, m, got), Len: size})
	if cqe := await(t, dst, 1)[0]; cqe.Res != size || !bytes.Equal(got, want) {
		t.Fatalf("result %d", cqe.Res)
	}
	if err := dst.CloneMemory(newRing(t, Config{})); err == nil {
		t.Error("cloned from a ring that has nothing registered")
	}
}
