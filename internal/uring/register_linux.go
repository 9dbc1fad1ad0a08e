// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxBuffer is the most that the kernel registers as one buffer; a longer one
// is EFAULT there, which says nothing.
const maxBuffer = 1 << 30

// cloneBuffers is struct io_uring_clone_buffers.
type cloneBuffers struct {
	srcFD, flags, srcOff, dstOff, nr uint32

	_ [3]uint32
}

// filesUpdate is struct io_uring_files_update.
type filesUpdate struct {
	offset, _ uint32
	fds       *int32
}

// RegisterFiles makes fds the registered files, found in an SQE by their index.
func (r *Ring) RegisterFiles(fds []int32) error {
	return r.register(registerFiles, "io_uring_register of files", unsafe.Pointer(unsafe.SliceData(fds)), len(fds))
}

// UnregisterFiles lets go of the registered files; without any it fails with ENXIO.
// Nothing may be in flight on them, or it waits. Close alone leaves this to a work
// item of the kernel, and until that has run the files are open: their locks and an
// exclusive open's claim stay.
func (r *Ring) UnregisterFiles() error {
	for {
		if errno := r.registerOnce(unregisterFiles, nil, 0); errno == 0 {
			return nil
		} else if errno != unix.EINTR {
			return explain("io_uring_register to unregister files", errno)
		}
	}
}

// UpdateFile puts fd in the place of the registered file at index. What is in flight
// goes on with the one that was there, which stays open until it has finished. Where it
// fails there may be none at index.
func (r *Ring) UpdateFile(index int, fd int32) error {
	arg := filesUpdate{offset: uint32(index), fds: &fd}
	return r.register(registerFilesUpdate, "io_uring_register to replace a file", unsafe.Pointer(&arg), 1)
}

// RegisterMemory makes m the registered buffer 0. It is pinned and counts
// against RLIMIT_MEMLOCK until the ring is closed.
func (r *Ring) RegisterMemory(m *Memory) error {
	const call = "io_uring_register of buffers"
	if len(m.b) > maxBuffer {
		return fmt.Errorf("%s: %d bytes, and at most 1 GiB can be registered: %w", call, len(m.b), unix.EFAULT)
	}
	iov := unix.Iovec{Base: unsafe.SliceData(m.b)}
	iov.SetLen(len(m.b))
	return r.register(registerBuffers, call, unsafe.Pointer(&iov), 1)
}

// CloneMemory shares the registered buffer of src, which is accounted once.
// Linux before 6.12 answers EINVAL.
func (r *Ring) CloneMemory(src *Ring) error {
	arg := cloneBuffers{srcFD: uint32(src.descriptor())}
	return r.register(registerCloneBuffers, "io_uring_register of cloned buffers", unsafe.Pointer(&arg), 1)
}

func (r *Ring) register(op uint32, call string, arg unsafe.Pointer, n int) error {
	return explain(call, retryNoMemory(func() error {
		if errno := r.registerOnce(op, arg, n); errno != 0 {
			return errno // not as it comes: an Errno of 0 is a non-nil error
		}
		return nil
	}))
}
