// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// defaultFileBlock is used for files on kernels or filesystems that do not tell
// what direct I/O needs: no filesystem in use asks for more on a drive whose
// blocks pollux accepts.
const defaultFileBlock = 4096

// Open opens a block device or a regular file for direct I/O. It creates
// nothing, opens nothing of another kind (which could block, or have effects: a
// watchdog, a tape), and its errors are of type *Error.
func Open(path string, mode Mode) (*Device, error) { return machine.open(path, mode) }

func (h host) open(path string, mode Mode) (_ *Device, err error) {
	pathFD, err := openRetry(path, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return nil, h.openError(Info{Path: path}, mode, err)
	}
	defer closeFD(pathFD)
	var st unix.Stat_t
	if err := unix.Fstat(pathFD, &st); err != nil {
		return nil, h.openError(Info{Path: path}, mode, err)
	}
	in := Info{Path: path, Dev: st.Dev, Ino: st.Ino}
	flags := unix.O_DIRECT | unix.O_CLOEXEC
	switch kind := st.Mode & unix.S_IFMT; kind {
	case unix.S_IFREG:
		in.Driver = DriverFile
	case unix.S_IFBLK:
		in.Block = true
		in.Major, in.Minor = unix.Major(st.Rdev), unix.Minor(st.Rdev)
		if mode.Exclusive {
			flags |= unix.O_EXCL
		}
	default:
		return nil, &Error{Path: path, Kind: ErrNotDevice, Cause: "is a " + kindName(kind),
			Cure: "give a block device or a regular file"}
	}
	if mode.Write {
		flags |= unix.O_RDWR
	}
	// The second open goes through the first descriptor, not the path, so
	// that it meets the very inode whose type was just checked.
	fd, err := openRetry(fmt.Sprintf("/proc/self/fd/%d", pathFD), flags)
	if err != nil {
		return nil, h.openError(in, mode, err)
	}
	d := &Device{fd: fd, info: in, write: mode.Write}
	defer func() {
		if err != nil {
			closeFD(fd)
		}
	}()
	if in.Block {
		err = h.probeBlock(fd, &d.info)
	} else {
		err = probeFile(fd, &d.info)
	}
	if err == nil && mode.Write && d.info.ReadOnly {
		// Most drivers let such an open pass and refuse the first write.
		err = h.openError(in, mode, unix.EROFS)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// openRetry repeats an open that one of the Go runtime's signals interrupted.
func openRetry(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// closeFD closes a descriptor that was used for nothing but looking, so that
// there is no write whose error the close could report.
func closeFD(fd int) { _ = unix.Close(fd) }

func kindName(kind uint32) string {
	switch kind {
	case unix.S_IFDIR:
		return "directory"
	case unix.S_IFCHR:
		return "character device"
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	default:
		return fmt.Sprintf("file of an unknown kind (mode %#o)", kind)
	}
}

// openError says in words what the kernel meant by errno.
func (h host) openError(in Info, mode Mode, errno error) error {
	e := &Error{Path: in.Path, Cause: "cannot open: " + errno.Error(), Err: errno}
	is := func(errnos ...error) bool {
		for _, target := range errnos {
			if errors.Is(errno, target) {
				return true
			}
		}
		return false
	}
	if in.Block {
		h.describe(&in)
	}
	switch {
	case is(unix.EBUSY):
		e.Kind = ErrBusy
		e.Cause, e.Cure = h.whoHolds(in)
	case is(unix.EROFS), mode.Write && is(unix.EACCES, unix.EPERM) && h.markedReadOnly(in):
		e.Kind, e.Cause, e.Cure = ErrReadOnly, "is read-only", "open it for reading only"
		if in.Block {
			e.Cure = "open it for reading only, or allow writes with blockdev --setrw " + printable(in.Path)
		}
	case is(unix.EACCES, unix.EPERM):
		e.Cure = "run as root, or as a user who may access it (block devices often belong to the group disk)"
	case is(unix.EINVAL) && in.Driver == DriverFile:
		e.Kind, e.Cause, e.Cure = ErrNoDirectIO, "its filesystem has no direct I/O", "use a file on ext4, xfs or btrfs, or a block device"
	case is(unix.ENXIO, unix.ENODEV, unix.ENOMEDIUM):
		e.Kind, e.Cause, e.Cure = ErrGone, "there is no drive behind this device node", "check that the drive is connected and its driver is loaded"
	case is(unix.ENOENT):
		e.Cause, e.Cure = "does not exist", "check the path"
		if in.Dev != 0 {
			e.Cause, e.Cure = "cannot be opened without /proc", "mount proc on /proc"
		}
	}
	return e
}

func (h host) probeBlock(fd int, in *Info) error {
	size, err := ioctlUint64(fd, unix.BLKGETSIZE64)
	if err != nil {
		return h.openError(*in, Mode{}, err)
	}
	if size == 0 {
		return &Error{Path: in.Path, Kind: ErrGone, Cause: "its size is 0: there is no drive or medium behind it",
			Cure: "check that the drive is connected (a loop device: that it is attached)"}
	}
	in.Size = int64(min(size, math.MaxInt64))
	block, err := unix.IoctlGetUint32(fd, unix.BLKSSZGET)
	if err != nil {
		return h.openError(*in, Mode{}, err)
	}
	in.BlockSize = int64(block)
	readOnly, err := unix.IoctlGetUint32(fd, unix.BLKROGET)
	if err != nil {
		return h.openError(*in, Mode{}, err)
	}
	in.ReadOnly = readOnly != 0
	h.describe(in)
	return nil
}

func probeFile(fd int, in *Info) error {
	var stx unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_SIZE|unix.STATX_DIOALIGN, &stx); err != nil {
		return &Error{Path: in.Path, Cause: "cannot ask for its size: " + err.Error(), Err: err}
	}
	in.BlockSize, in.BufAlign = defaultFileBlock, defaultFileBlock
	if stx.Mask&unix.STATX_DIOALIGN != 0 {
		// statx(2): zero means that this file cannot do direct I/O, although
		// it could be opened for it.
		if stx.Dio_offset_align == 0 || stx.Dio_mem_align == 0 {
			return &Error{Path: in.Path, Kind: ErrNoDirectIO, Cause: "its filesystem does no direct I/O on this file",
				Cure: "use a file that is neither encrypted nor compressed, or a block device"}
		}
		in.BlockSize, in.BufAlign = int64(stx.Dio_offset_align), int64(stx.Dio_mem_align)
	}
	size := int64(min(stx.Size, math.MaxInt64))
	in.Size = size - size%in.BlockSize
	return nil
}

// Close closes the descriptor and gives up the claim of an exclusive open. A
// second Close fails with an error that matches os.ErrClosed.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fd < 0 {
		return &Error{Path: d.info.Path, Cause: "was closed before", Err: os.ErrClosed}
	}
	fd := d.fd
	d.fd = -1
	// close(2): after EINTR the descriptor is free, and must not be closed again.
	if err := unix.Close(fd); err != nil && !errors.Is(err, unix.EINTR) {
		return &Error{Path: d.info.Path, Cause: "cannot close: " + err.Error(), Err: err}
	}
	return nil
}

// Gone says whether the drive has vanished since it was opened: the kernel
// gives its size as 0 or not at all, or sysfs has no such device any more. It
// makes system calls and belongs off the path of I/O. A file is gone when it
// cannot be asked; a closed Device is not gone.
func (d *Device) Gone() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return false
	}
	if !d.info.Block {
		var st unix.Stat_t
		return unix.Fstat(d.fd, &st) != nil
	}
	size, err := ioctlUint64(d.fd, unix.BLKGETSIZE64)
	return err != nil || size == 0 || machine.vanished(d.info.Major, d.info.Minor)
}
