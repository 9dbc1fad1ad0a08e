// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary is its own other process: with this variable in its environment
// it does what its standard input says, a line each: "read PATH" and "write PATH"
// open and lock a device, "close" gives it up. It answers with a line.
const lockVariable = "POLLUX_TEST_LOCK"

func init() {
	if os.Getenv(lockVariable) == "" {
		return
	}
	var d *Device
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, path, _ := strings.Cut(lines.Text(), " ")
		var err error
		if verb == "close" {
			err = d.Close()
		} else if d, err = Open(path, Mode{Write: verb == "write"}); err == nil {
			err = d.Lock()
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("done")
	}
	os.Exit(0)
}

// process is another process that locks devices.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), lockVariable+"=1")
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	return p
}

// tell returns what the process answers.
func (p *process) tell(words ...string) string {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, strings.Join(words, " ")); err != nil {
		p.t.Fatal(err)
	}
	said, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(said)
}

// end ends the process, with whatever it has locked.
func (p *process) end() {
	if p.cmd.ProcessState == nil {
		_ = p.in.Close()
		if err := p.cmd.Wait(); err != nil {
			p.t.Error(err)
		}
	}
}

// A lock for reading goes with others for reading, one for writing with none,
// between descriptors and between processes, on files as on block devices.
func TestLock(t *testing.T) {
	t.Run("file", func(t *testing.T) { testLock(t, scratch(t, 1<<20)) })
	t.Run("loop", func(t *testing.T) { testLock(t, loop(t, scratch(t, 1<<20))) })
}

func testLock(t *testing.T, path string) {
	look, other := mustOpen(t, path, Mode{}), newProcess(t)
	state := func(locked, write bool) {
		t.Helper()
		if l, w, err := look.Locked(); l != locked || w != write || err != nil {
			t.Errorf("locked %v, to write %v, %v; want %v, %v", l, w, err, locked, write)
		}
	}
	modes := []string{"read", "write"}
	for _, held := range modes {
		for _, wanted := range modes {
			both := held == "read" && wanted == "read"
			state(false, false)
			// Two descriptors of one process.
			first := mustOpen(t, path, Mode{Write: held == "write"})
			if err := first.Lock(); err != nil {
				t.Fatal(err)
			}
			state(true, held == "write")
			second := mustOpen(t, path, Mode{Write: wanted == "write"})
			err := second.Lock()
			if (err == nil) != both || err != nil && (!errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), path+": busy: another pollux uses it; ")) {
				t.Errorf("%s against %s in one process: %v", wanted, held, err)
			}
			// A second lock of the same descriptor is the first one.
			if err := first.Lock(); err != nil && held == "write" {
				t.Errorf("locked again: %v", err)
			}
			// Whoever has the lock sees that of others only.
			if l, w, err := first.Locked(); l != both || w || err != nil {
				t.Errorf("the holder sees locked %v, to write %v, %v", l, w, err)
			}
			// Closing a descriptor that was looked through keeps the lock, which that
			// of POSIX would not.
			if err := mustOpen(t, path, Mode{}).Close(); err != nil {
				t.Error(err)
			}
			state(true, held == "write")
			if err := second.Close(); err != nil {
				t.Error(err)
			}
			// Another process against this one.
			if said := other.tell(wanted, path); (said == "done") != both || !both && !strings.Contains(said, "another pollux uses it") {
				t.Errorf("%s in another process against %s: %s", wanted, held, said)
			}
			other.tell("close")
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			// And this one against it.
			if said := other.tell(held, path); said != "done" {
				t.Errorf("%s in another process: %s", held, said)
			}
			state(true, held == "write")
			third := mustOpen(t, path, Mode{Write: wanted == "write"})
			if err := third.Lock(); (err == nil) != both || err != nil && !errors.Is(err, ErrBusy) {
				t.Errorf("%s against %s in another process: %v", wanted, held, err)
			}
			other.tell("close")
			if err := third.Lock(); err != nil {
				t.Errorf("%s when the other process has closed it: %v", wanted, err)
			}
			if err := third.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	// A process that ends leaves no lock behind.
	if said := other.tell("write", path); said != "done" {
		t.Errorf("write in another process: %s", said)
	}
	state(true, true)
	other.end()
	state(false, false)
}

// The whole disk is locked as udev's protocol wants it, and whoever has it locked
// is waited for.
func TestLockDisk(t *testing.T) {
	path := loop(t, scratch(t, 1<<20))
	d := mustOpen(t, path, Mode{Write: true, Exclusive: true})
	if d.Info().Disk != filepath.Base(path) {
		t.Skipf("needs a sysfs that knows %s", path)
	}
	udev, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(udev)
	flock := func(how int) error { return unix.Flock(udev, how|unix.LOCK_NB) }

	release, err := d.LockDisk()
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []int{unix.LOCK_EX, unix.LOCK_SH} {
		if err := flock(how); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("flock beside LockDisk: %v", err)
		}
	}
	release()

	// Freed in time: udev looks at a new disk for a moment, under a shared lock.
	if err := flock(unix.LOCK_SH); err != nil {
		t.Fatalf("after release: %v", err)
	}
	const moment = 300 * time.Millisecond
	freed := make(chan error, 1)
	time.AfterFunc(moment, func() { freed <- flock(unix.LOCK_UN) })
	start := time.Now()
	release, err = d.LockDisk()
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < moment/2 {
		t.Errorf("locked after %v beside another lock", took)
	}
	if err := <-freed; err != nil {
		t.Error(err)
	}
	release()

	// Never freed: an error that says so, after the time that it says.
	if err := flock(unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	defer func(patience time.Duration) { diskLockPatience = patience }(diskLockPatience)
	diskLockPatience = moment
	start = time.Now()
	_, err = d.LockDisk()
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), path+": busy: another program has had the disk locked for 300ms; ") ||
		!strings.Contains(err.Error(), "fuser") {
		t.Errorf("a disk that stays locked: %v", err)
	}
	if took := time.Since(start); took < moment || took > 20*moment {
		t.Errorf("gave up after %v", took)
	}
}

// A file has no disk that udev would look at.
func TestLockDiskOfFile(t *testing.T) {
	d := mustOpen(t, scratch(t, 1<<20), Mode{Write: true})
	for range 2 { // not exclusive, nor held
		release, err := d.LockDisk()
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
}
