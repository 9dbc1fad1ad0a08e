// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
	"pollux/poller"
)

const (
	mib = 1 << 20
	// copyA is where the first superblock of a member lies.
	copyA = 64 << 10
	// most is the size of most members here.
	most = 3 * mib
)

// file makes a sparse file with random bytes wherever something could be written by
// mistake: around the superblocks, at both ends, and beside the data. The test is
// skipped where its filesystem has no direct I/O.
func file(t testing.TB, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	put(t, path, nil)
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(size), 1))
	noise := make([]byte, 16<<10)
	for _, at := range []int64{0, copyA - 4096, mib - 4096, (size/mib-1)*mib - 4096, (size/mib-1)*mib + copyA - 4096, size - 8192} {
		for i := 0; i < len(noise); i += 8 {
			binary.LittleEndian.PutUint64(noise[i:], rng.Uint64())
		}
		patch(t, path, at, noise[:min(int64(len(noise)), size-at)])
	}
	dev, err := blockdev.Open(path, blockdev.Mode{})
	if errors.Is(err, blockdev.ErrNoDirectIO) {
		t.Skipf("%v: set TMPDIR", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func files(t testing.TB, n int) (paths []string) {
	for range n {
		paths = append(paths, file(t, most))
	}
	return paths
}

func put(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// patch changes a file in place.
func patch(t testing.TB, path string, offset int64, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteAt(content, offset); err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// state is what files were: a digest of every byte, and when they were last written.
type state map[string]struct {
	digest  [sha256.Size]byte
	written time.Time
}

func stateOf(t testing.TB, paths ...string) state {
	t.Helper()
	s := state{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		was := s[path]
		was.digest, was.written = digest(t, path), info.ModTime()
		s[path] = was
	}
	return s
}

// digest maps the file, as copies of its bytes are dear under the race detector.
func digest(t testing.TB, path string) [sha256.Size]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(b); err != nil {
			t.Error(err)
		}
	}()
	return sha256.Sum256(b)
}

// unchanged fails unless nobody has written to the files, not even the same bytes.
func (s state) unchanged(t testing.TB) {
	t.Helper()
	for path, was := range s {
		if now := stateOf(t, path)[path]; now != was {
			t.Errorf("%s was written to: same bytes %v, at %v and %v", path, now.digest == was.digest, was.written, now.written)
		}
	}
}

// contents reads files, for tests in which they change.
func contents(t testing.TB, paths ...string) map[string][]byte {
	t.Helper()
	m := map[string][]byte{}
	for _, path := range paths {
		m[path] = get(t, path)
	}
	return m
}

func createOptions(name string, paths ...string) CreateOptions {
	return CreateOptions{Name: name, Devices: paths, AllowUnpolled: true, Where: Where{Devices: paths}}
}

// prepare is PrepareCreate of what can be looked at.
func prepare(t testing.TB, opts CreateOptions) *Creation {
	t.Helper()
	c, err := PrepareCreate(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	return c
}

// create makes a volume and returns its plan.
func create(t testing.TB, opts CreateOptions) Plan {
	t.Helper()
	c := prepare(t, opts)
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return c.Plan
}

// volume makes one of n files.
func volume(t testing.TB, name string, n int) (paths []string, id uuid.UUID) {
	t.Helper()
	paths = files(t, n)
	return paths, create(t, createOptions(name, paths...)).UUID
}

func openOptions(name string, paths ...string) OpenOptions {
	return OpenOptions{Volume: name, Where: Where{Devices: paths}, Polling: poller.PollIfPossible}
}

func writable(o OpenOptions) OpenOptions {
	o.Write = true
	return o
}

// mustOpen opens a volume that must open, and closes it at the end of the test.
func mustOpen(t testing.TB, opts OpenOptions) *Opened {
	t.Helper()
	o, err := Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeDisks(t, o) })
	return o
}

func closeDisks(t testing.TB, o *Opened) {
	t.Helper()
	for _, d := range slices.Concat(o.Members...) {
		if err := d.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	}
}

// refused checks an error: of its kind, one line, with these words.
func refused(t testing.TB, err error, kind error, words ...string) {
	t.Helper()
	if err == nil || !errors.Is(err, kind) {
		t.Errorf("%v, want %v", err, kind)
		return
	}
	text := err.Error()
	if strings.Contains(text, "\n") {
		t.Errorf("more than a line: %s", text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// offsetB is where copy B of a member lies.
func offsetB(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return superblock.OffsetB(info.Size())
}

// rewrite changes both superblocks of a member.
func rewrite(t testing.TB, path string, change func(*superblock.Superblock)) {
	t.Helper()
	for _, offset := range []int64{copyA, offsetB(t, path)} {
		sb, err := superblock.Decode(get(t, path)[offset:][:superblock.BlockSize])
		if err != nil {
			t.Fatal(err)
		}
		change(sb)
		patch(t, path, offset, sb.Encode())
	}
}

// packages says which Debian package has a tool.
var packages = map[string]string{"mkfs.ext4": "e2fsprogs", "mkswap": "util-linux", "wipefs": "util-linux", "losetup": "mount", "addpart": "util-linux",
	"delpart": "util-linux", "mount": "mount", "umount": "mount", "blockdev": "util-linux"}

// tool runs a program and returns what it printed.
func tool(t testing.TB, name string, args ...string) string {
	t.Helper()
	path := name
	for _, dir := range []string{"", "/usr/sbin", "/sbin"} {
		if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			path = p
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s (Debian package %s)", name, strings.Join(args, " "), err, out, packages[name])
	}
	return strings.TrimSpace(string(out))
}

// loop attaches a file to a loop device.
func loop(t testing.TB, path string, args ...string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to attach a loop device")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("needs root of a machine with loop devices: %v", err)
	}
	dev := tool(t, "losetup", append(args, "--direct-io=on", "--show", "-f", path)...)
	t.Cleanup(func() { tool(t, "losetup", "-d", dev) })
	return dev
}

// crc returns a superblock that was changed, with the right checksum.
func crc(b []byte) []byte {
	b = bytes.Clone(b)
	copy(b[12:16], make([]byte, 4))
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return b
}
