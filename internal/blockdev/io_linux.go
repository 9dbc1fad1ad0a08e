// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Size returns the capacity in bytes, as it was when the device was opened.
func (d *Device) Size() int64 { return d.info.Size }

// ReadAt reads for those who look at a device, not for I/O at speed: any offset
// and length, by direct I/O through memory of its own, so that what another
// descriptor has written since is seen. It returns io.EOF at the end of the
// device. Any goroutine may call it.
func (d *Device) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, d.ioError("read", off, os.ErrInvalid)
	}
	var atEnd error
	if left := max(0, d.info.Size-off); int64(len(p)) > left {
		p, atEnd = p[:left], io.EOF
	}
	if len(p) == 0 {
		return 0, atEnd
	}
	from := off &^ (d.info.BlockSize - 1)
	span := off + int64(len(p)) - from
	buf := d.alignedBuffer(span + -span&(d.info.BlockSize-1))
	if err := d.transfer("read", unix.Pread, buf, from); err != nil {
		return 0, err
	}
	copy(p, buf[off-from:])
	return len(p), atEnd
}

// WriteAt writes whole blocks, by direct I/O through memory of its own: off and
// len(p) are multiples of Info.BlockSize. It is not durable before Sync. Any
// goroutine may call it.
func (d *Device) WriteAt(p []byte, off int64) (int, error) {
	if n := int64(len(p)); off < 0 || (off|n)&(d.info.BlockSize-1) != 0 || n > d.info.Size || off > d.info.Size-n {
		return 0, d.ioError("write", off, os.ErrInvalid)
	}
	buf := d.alignedBuffer(int64(len(p)))
	copy(buf, p)
	if err := d.transfer("write", unix.Pwrite, buf, off); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Sync makes every earlier write to the device survive a power cut, also those
// that went through other descriptors.
func (d *Device) Sync() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for {
		err := unix.Fsync(d.fd)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &Error{Path: d.info.Path, Cause: "cannot sync: " + err.Error(), Cure: kernelKnows, Err: err}
		}
	}
}

// transfer moves all of buf; a drive that moves less has failed.
func (d *Device) transfer(verb string, call func(int, []byte, int64) (int, error), buf []byte, off int64) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for {
		n, err := call(d.fd, buf, off)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return d.ioError(verb, off, err)
		case n != len(buf):
			return d.ioError(verb, off, fmt.Errorf("%d bytes of %d: %w", n, len(buf), io.ErrUnexpectedEOF))
		default:
			return nil
		}
	}
}

const kernelKnows = "dmesg has what the kernel says about the drive"

func (d *Device) ioError(verb string, off int64, err error) error {
	return &Error{Path: d.info.Path, Cause: fmt.Sprintf("cannot %s at %d: %v", verb, off, err), Cure: kernelKnows, Err: err}
}

// alignedBuffer returns n bytes that direct I/O to any device takes.
func (d *Device) alignedBuffer(n int64) []byte {
	align := max(d.info.BufAlign, d.info.BlockSize)
	b := make([]byte, n+align)
	skip := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (align - 1)
	return b[skip : skip+n : skip+n]
}

// RereadPartitions tells the kernel that the partition table may have changed. It
// keeps the partitions that it knows when one of them is in use, and those of a
// file are nobody's business.
func (d *Device) RereadPartitions() {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.info.Block && !d.info.partition() {
		_ = unix.IoctlSetInt(d.fd, unix.BLKRRPART, 0)
	}
}
