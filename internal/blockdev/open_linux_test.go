// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// scratch makes a file of size bytes where direct I/O works.
func scratch(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scratch")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustOpen(t *testing.T, path string, mode Mode) *Device {
	t.Helper()
	d, err := Open(path, mode)
	if errors.Is(err, ErrNoDirectIO) {
		t.Skipf("needs a TMPDIR with direct I/O: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return d
}

// readWrite moves one block each way, with memory aligned as Info demands.
func readWrite(t *testing.T, d *Device) {
	t.Helper()
	in := d.Info()
	b := make([]byte, 2*max(in.BlockSize, in.BufAlign))
	align := in.BufAlign
	skip := (align - int64(uintptr(unsafe.Pointer(&b[0])))%align) % align
	b = b[skip : skip+in.BlockSize]
	if n, err := unix.Pread(d.FD(), b, 0); n != len(b) || err != nil {
		t.Errorf("read: %d, %v", n, err)
	}
	if n, err := unix.Pwrite(d.FD(), b, in.Size-in.BlockSize); n != len(b) || err != nil {
		t.Errorf("write: %d, %v", n, err)
	}
}

func TestOpenFile(t *testing.T) {
	path := scratch(t, 1<<20+100)
	d := mustOpen(t, path, Mode{Write: true, Exclusive: true})
	in := d.Info()
	if in.Path != path || in.Block || in.Name != "" || in.Driver != DriverFile || in.LimitsKnown || in.PollQueues || in.ReadOnly {
		t.Errorf("%+v", in)
	}
	if in.BlockSize < 512 || in.BlockSize&(in.BlockSize-1) != 0 || in.Size != 1<<20 {
		t.Errorf("block %d, size %d", in.BlockSize, in.Size)
	}
	readWrite(t, d)
	flags, err := unix.FcntlInt(uintptr(d.FD()), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_DIRECT == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	if flags, err := unix.FcntlInt(uintptr(d.FD()), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("not closed on exec: %#x, %v", flags, err)
	}

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	same, other := mustOpen(t, link, Mode{}), mustOpen(t, scratch(t, 1<<20), Mode{})
	if same.ID() != d.ID() || !Overlaps(same, d) || other.ID() == d.ID() || Overlaps(other, d) {
		t.Errorf("%v, %v, %v", d.ID(), same.ID(), other.ID())
	}
	if _, err := unix.Pwrite(same.FD(), make([]byte, 4096), 0); !errors.Is(err, unix.EBADF) {
		t.Errorf("writing to a device opened for reading: %v", err)
	}

	if d.Gone() {
		t.Error("gone while open")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	if d.FD() != -1 || d.Gone() {
		t.Error("FD or Gone after Close")
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fi\nfo"), filepath.Join(dir, "socket")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(socket, unix.S_IFSOCK|0o600, 0); err != nil {
		t.Fatal(err)
	}
	before := openFDs(t)
	for _, c := range []struct {
		path  string
		is    error
		words string
	}{
		{dir, ErrNotDevice, "is a directory; give a block device"},
		{"/dev/null", ErrNotDevice, "is a character device"},
		{fifo, ErrNotDevice, `fi\nfo": is a fifo`},
		{socket, ErrNotDevice, "is a socket"},
		{filepath.Join(dir, "missing"), fs.ErrNotExist, "does not exist"},
		{"", fs.ErrNotExist, "does not exist"},
		{"/proc/version", ErrNoDirectIO, "no direct I/O"},
	} {
		for _, mode := range []Mode{{}, {Exclusive: true}} {
			d, err := Open(c.path, mode)
			var e *Error
			if d != nil || !errors.As(err, &e) || e.Path != c.path || !errors.Is(err, c.is) {
				t.Errorf("%q: %v", c.path, err)
				continue
			}
			if text := err.Error(); !strings.Contains(text, c.words) || strings.Contains(text, "\n") {
				t.Errorf("%q: %s", c.path, text)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); err == nil {
		t.Error("Open created a file")
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if os.Getuid() != 0 {
		path := scratch(t, 1<<20)
		if err := os.Chmod(path, 0o400); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, Mode{Write: true}); !errors.Is(err, fs.ErrPermission) {
			t.Error(err)
		}
	}
}

func openFDs(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}

// loop attaches path to a loop device, with more arguments for losetup.
func loop(t *testing.T, path string, args ...string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to attach a loop device")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("needs loop devices: %v", err)
	}
	out, err := exec.Command("losetup", append(args, "--show", "-f", path)...).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup: %v: %s", err, out)
	}
	dev := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", dev).CombinedOutput(); err != nil && !strings.Contains(string(out), "No such device") {
			t.Errorf("losetup -d: %v: %s", err, out)
		}
	})
	return dev
}

func TestOpenLoop(t *testing.T) {
	backing := scratch(t, 64<<20)
	path := loop(t, backing, "--direct-io=on")
	d := mustOpen(t, path, Mode{Write: true, Exclusive: true})
	in := d.Info()
	if !in.Block || in.Name != filepath.Base(path) || in.Disk != in.Name || in.Major != 7 || in.Size != 64<<20 || in.Driver != DriverLoop ||
		!in.LimitsKnown || !in.PollKnown || in.PollQueues || in.NrRequests == 0 || in.ReadOnly || in.BlockSize < 512 {
		t.Errorf("%+v", in)
	}
	readWrite(t, d)
	if d.Gone() {
		t.Error("gone while attached")
	}

	_, err := Open(path, Mode{Exclusive: true})
	if !errors.Is(err, ErrBusy) || !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), path+": busy: held by another program") {
		t.Errorf("second exclusive open: %v", err)
	}
	if looking := mustOpen(t, path, Mode{}); looking.ID() != d.ID() || !Overlaps(looking, d) {
		t.Errorf("%v, %v", looking.ID(), d.ID())
	}

	// A drive that vanished leaves an open node of size 0.
	if err := os.Truncate(backing, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetInt(d.FD(), unix.LOOP_SET_CAPACITY, 0); err != nil {
		t.Fatal(err)
	}
	if !d.Gone() {
		t.Error("not gone with size 0")
	}
	if _, err := Open(path, Mode{}); !errors.Is(err, ErrGone) {
		t.Errorf("open with size 0: %v", err)
	}
}

func TestOpenLoopReadOnly(t *testing.T) {
	path := loop(t, scratch(t, 1<<20), "-r")
	if in := mustOpen(t, path, Mode{}).Info(); !in.ReadOnly {
		t.Errorf("%+v", in)
	}
	if _, err := Open(path, Mode{Write: true}); !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "blockdev --setrw") {
		t.Error(err)
	}
}

func TestOpenMounted(t *testing.T) {
	path := loop(t, scratch(t, 64<<20))
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skipf("needs mkfs.ext4: %v", err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", path).CombinedOutput(); err != nil {
		t.Fatalf("mkfs: %v: %s", err, out)
	}
	dir := filepath.Join(t.TempDir(), "a mount")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(path, dir, "ext4", 0, ""); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	_, err := Open(path, Mode{Write: true, Exclusive: true})
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "busy: mounted on "+dir+"; umount ") {
		t.Error(err)
	}
}
