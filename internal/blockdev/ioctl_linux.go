// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ioctlUint64 makes an ioctl that stores 64 bits, for which the oldest x/sys
// that pollux builds with has no wrapper.
func ioctlUint64(fd int, request uint) (uint64, error) {
	var value uint64
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(unsafe.Pointer(&value))); errno != 0 {
		return 0, errno
	}
	return value, nil
}
