// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Lock takes the advisory lock that says that pollux uses the device: shared with
// other readers, or alone where the device was opened for writing. It never waits.
// The error answers to ErrBusy when another open of the device has a lock that
// does not go with this one. Close gives the lock up, and so does the end of the
// process.
//
// It is a lock of the open file description (F_OFD_SETLK of fcntl(2)), on the
// inode: it works on files, where O_EXCL says nothing, and it tells readers from
// writers. It does not reach through two nodes of one block device, such as those
// of a container that has a /dev of its own; O_EXCL does.
func (d *Device) Lock() error {
	kind := int16(unix.F_RDLCK)
	if d.write {
		kind = unix.F_WRLCK
	}
	lock := unix.Flock_t{Type: kind}
	err := d.fcntlLock(unix.F_OFD_SETLK, &lock)
	if err == nil {
		return nil
	}
	e := &Error{Path: d.info.Path, Cause: "cannot lock: " + err.Error(), Err: err}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		e.Kind, e.Cause = ErrBusy, "busy: another pollux uses it"
		e.Cure = "find it with fuser -v " + printable(d.info.Path) + " and stop it"
	}
	return e
}

// Locked says whether some other open of the device has a lock, and whether that
// is for writing. It takes none.
func (d *Device) Locked() (locked, write bool, err error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := d.fcntlLock(unix.F_OFD_GETLK, &lock); err != nil {
		return false, false, &Error{Path: d.info.Path, Cause: "cannot ask for locks: " + err.Error(), Err: err}
	}
	return lock.Type != unix.F_UNLCK, lock.Type == unix.F_WRLCK, nil
}

func (d *Device) fcntlLock(cmd int, lock *unix.Flock_t) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for {
		if err := unix.FcntlFlock(uintptr(d.fd), cmd, lock); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// diskLockPatience is how long LockDisk waits for udev, which locks a disk for as
// long as it takes to look at it. Tests have less of it.
var diskLockPatience = 5 * time.Second

// LockDisk keeps udev and other partitioning tools off the whole disk that the
// device is on, until release is called or the process ends. It is systemd's
// protocol for block devices: an flock(2) on the node of the whole disk. Whoever
// may open a partition only, or has no node of the disk, goes without. On a file
// there is nothing to keep off. The error answers to ErrBusy.
func (d *Device) LockDisk() (release func(), err error) {
	if !d.info.Block || d.info.Disk == "" {
		return func() {}, nil
	}
	fd, err := machine.openDisk(d.info)
	if err != nil {
		return func() {}, nil
	}
	for deadline := time.Now().Add(diskLockPatience); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return func() { closeFD(fd) }, nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			closeFD(fd)
			return nil, &Error{Path: d.info.Path, Cause: "cannot lock the disk against udev: " + err.Error(), Err: err}
		case time.Now().After(deadline):
			closeFD(fd)
			return nil, &Error{Path: d.info.Path, Kind: ErrBusy, Err: err,
				Cause: "busy: another program has had the disk locked for " + diskLockPatience.String(),
				Cure:  "see who has /dev/" + d.info.Disk + " open (fuser -v) and let it finish"}
		}
	}
}

// openDisk opens the node of the whole disk for reading, which takes no lock and
// triggers nothing when it is closed.
func (h host) openDisk(in Info) (int, error) {
	fd, err := openRetry(devNode(in.Disk), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		closeFD(fd)
		return -1, err
	}
	dir, err := h.blockDir(in.Major, in.Minor)
	if err == nil {
		want := text(wholeDisk(dir), "dev")
		if got := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev)); st.Mode&unix.S_IFMT != unix.S_IFBLK || got != want {
			err = fmt.Errorf("%s is not block device %s", devNode(in.Disk), want)
		}
	}
	if err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// devNode returns where the node of a device is. Sysfs has ! in names where the
// path below /dev has a slash.
func devNode(name string) string {
	b := []byte(name)
	for i := range b {
		if b[i] == '!' {
			b[i] = '/'
		}
	}
	return filepath.Join("/dev", string(b))
}
