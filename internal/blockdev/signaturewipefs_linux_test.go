// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What wipefs finds is the measure of what Signatures finds: here is how the
// two are compared.

// packages says which Debian package has a tool.
var packages = map[string]string{
	"wipefs": "util-linux", "mkswap": "util-linux", "sfdisk": "fdisk", "losetup": "mount",
	"mkfs.ext2": "e2fsprogs", "mkfs.ext3": "e2fsprogs", "mkfs.ext4": "e2fsprogs", "mke2fs": "e2fsprogs",
	"mkfs.xfs": "xfsprogs", "mkfs.btrfs": "btrfs-progs", "mkfs.vfat": "dosfstools", "mkfs.exfat": "exfatprogs",
	"mkfs.ntfs": "ntfs-3g", "mkfs.f2fs": "f2fs-tools", "cryptsetup": "cryptsetup-bin",
	"veritysetup": "cryptsetup-bin", "pvcreate": "lvm2", "make-bcache": "bcache-tools",
	"mkfs.nilfs2": "nilfs-tools", "mkreiserfs": "reiserfsprogs", "mkfs.jfs": "jfsutils",
	"mkfs.ocfs2": "ocfs2-tools", "mkfs.gfs2": "gfs2-utils", "mksquashfs": "squashfs-tools",
	"mkfs.erofs": "erofs-utils", "mkfs.udf": "udftools", "xorriso": "xorriso",
}

// tool returns the path of a program. Administrators' programs may be outside
// the PATH of others.
func tool(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Fatalf("no %s: install the Debian package %s", name, packages[name])
	return ""
}

// run runs a tool, with a limit of time, and returns what it printed.
func run(t testing.TB, stdin, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool(t, name), args...)
	cmd.Stdin = strings.NewReader(stdin)
	// Fixed identifiers and times where a tool lets itself be told.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SOURCE_DATE_EPOCH=1700000000", "E2FSPROGS_FAKE_TIME=1700000000",
		"PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// blankFile makes a sparse file.
func blankFile(t testing.TB, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	blank(t, path, size)
	return path
}

func blank(t testing.TB, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
}

// wipefs returns what wipefs finds, as "type at offset, length bytes", sorted as
// Signatures sorts.
func wipefs(t testing.TB, path string) []string {
	t.Helper()
	return wipefsAll(t, []string{path})[filepath.Base(path)]
}

// wipefsAll asks for many files at once, as processes cost more than looking.
// The result is by the last part of the path, which is all that wipefs tells.
func wipefsAll(t testing.TB, paths []string) map[string][]string {
	t.Helper()
	out := run(t, "", "wipefs", append([]string{"--no-act", "--json", "--output", "DEVICE,OFFSET,TYPE,LENGTH"}, paths...)...)
	type signature struct {
		Device, Offset, Type string
		Length               int
	}
	var list struct{ Signatures []signature }
	if strings.TrimSpace(out) != "" { // nothing at all is printed for an empty file
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatalf("wipefs printed %q: %v", out, err)
		}
	}
	offset := func(s signature) int64 {
		off, err := strconv.ParseInt(s.Offset, 0, 64)
		if err != nil {
			t.Fatalf("wipefs printed the offset %q: %v", s.Offset, err)
		}
		return off
	}
	slices.SortFunc(list.Signatures, func(a, b signature) int {
		return cmp.Or(cmp.Compare(offset(a), offset(b)), strings.Compare(a.Type, b.Type))
	})
	found := map[string][]string{}
	for _, s := range list.Signatures {
		found[s.Device] = append(found[s.Device], fmt.Sprintf("%s at %d, %d bytes", s.Type, offset(s), s.Length))
	}
	return found
}

// ours returns what Signatures finds, in the words of wipefs above.
func ours(t testing.TB, path string) ([]Signature, []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Seek(0, 2)
	if err != nil {
		t.Fatal(err)
	}
	list, err := Signatures(f, size)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, s := range list {
		found = append(found, fmt.Sprintf("%v, %d bytes", s, len(s.Magic)))
		got := make([]byte, len(s.Magic))
		if _, err := f.ReadAt(got, s.Offset); err != nil || !bytes.Equal(got, s.Magic) {
			t.Errorf("%v: magic %x, the device has %x (%v)", s, s.Magic, got, err)
		}
	}
	return list, found
}

// agree fails the test unless wipefs and Signatures find the same in the file,
// of the types in want (separated by blanks; "" for none) and of each of them.
// Then it erases all of that, once, and both must find nothing.
func agree(t *testing.T, path, want string) {
	t.Helper()
	list := same(t, path, want, wipefs(t, path))
	if len(list) == 0 {
		return
	}
	eraseFile(t, path, list)
	clean(t, path, list, wipefs(t, path))
}

// same is the first half of agree, theirs being what wipefs finds.
func same(t *testing.T, path, want string, theirs []string) []Signature {
	t.Helper()
	list, found := ours(t, path)
	if !slices.Equal(theirs, common(found, theirs)) {
		t.Errorf("wipefs finds %q,\nwe find %q\n(held against %s)", theirs, found, strings.TrimSpace(run(t, "", "wipefs", "--version")))
	}
	var types []string
	for _, s := range list {
		types = append(types, s.Type)
	}
	slices.Sort(types)
	types = slices.Compact(types)
	wanted := strings.Fields(want)
	slices.Sort(wanted)
	if !slices.Equal(types, wanted) {
		t.Errorf("we find %v, the image was made to have %v", types, wanted)
	}
	return list
}

// clean is the second half, after list was erased.
func clean(t *testing.T, path string, list []Signature, theirs []string) {
	t.Helper()
	if len(theirs) != 0 {
		t.Errorf("wipefs finds %q after %v were erased", theirs, list)
	}
	if rest, _ := ours(t, path); len(rest) != 0 {
		t.Errorf("we find %v after %v were erased", rest, list)
	}
}

// common leaves out of found what a wipefs that is older than the table
// cannot find.
func common(found, theirs []string) []string {
	return slices.DeleteFunc(slices.Clone(found), func(s string) bool {
		return strings.HasPrefix(s, "bcachefs ") && !slices.Contains(theirs, s) // known since 2.39
	})
}

func eraseFile(t testing.TB, path string, list []Signature) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range list {
		if _, err := f.WriteAt(make([]byte, len(s.Magic)), s.Offset); err != nil {
			t.Fatal(err)
		}
	}
}
