// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
)

func search(t testing.TB, where Where) *Listing {
	t.Helper()
	list, err := Search(context.Background(), where)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Patterns, paths and both together; each device once; what cannot be read is
// reported beside what can.
func TestSearch(t *testing.T) {
	dir := t.TempDir()
	paths, id := volume(t, "vol", 3)
	var at []string
	for i, path := range paths {
		at = append(at, filepath.Join(dir, fmt.Sprintf("d%d.img", i)))
		if err := os.Rename(path, at[i]); err != nil {
			t.Fatal(err)
		}
	}
	blank, fifo := filepath.Join(dir, "e.img"), filepath.Join(dir, "f.img")
	put(t, blank, make([]byte, 100<<10))
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "none")
	for _, c := range []struct {
		what    string
		devices []string
		looks   int
		unread  []string
	}{
		{"paths", at, 3, nil},
		{"a path twice", append(slices.Clone(at), at[0]), 3, nil},
		{"a pattern", []string{filepath.Join(dir, "d*.img")}, 3, nil},
		{"a class of bytes and a single one", []string{filepath.Join(dir, "[d]?.img")}, 3, nil},
		{"a pattern and what it matches", []string{filepath.Join(dir, "d*"), at[1]}, 3, nil},
		{"a pattern that matches more", []string{filepath.Join(dir, "*.img")}, 4, []string{fifo}},
		{"something that is not there", append(slices.Clone(at), missing), 3, []string{missing}},
		{"a directory", append(slices.Clone(at), dir), 3, []string{dir}},
	} {
		list := search(t, Where{Devices: c.devices})
		if len(list.Sets) != 1 || list.Sets[0].UUID != id || list.Sets[0].Standing != superblock.Whole || len(list.Looks) != c.looks {
			t.Errorf("%s: %+v", c.what, list)
		}
		var unread []string
		for _, u := range list.Unread {
			unread = append(unread, u.Path)
			if !strings.HasPrefix(u.Err.Error(), u.Path+": ") || strings.Contains(u.Err.Error(), "\n") {
				t.Errorf("%s: %v", c.what, u.Err)
			}
		}
		if !slices.Equal(unread, c.unread) {
			t.Errorf("%s: not read: %q, want %q", c.what, unread, c.unread)
		}
		for _, l := range list.Looks {
			if got, ok := list.Look(l.Path); !ok || got.Path != l.Path {
				t.Errorf("%s: %s is not found in the listing", c.what, l.Path)
			}
		}
	}
	// A fifo does not keep anybody waiting for whoever writes to it.
	if list := search(t, Where{Devices: []string{fifo}}); len(list.Unread) != 1 || !errors.Is(list.Unread[0].Err, blockdev.ErrNotDevice) {
		t.Errorf("%+v", list)
	}
	if list := search(t, Where{Devices: []string{missing}}); len(list.Unread) != 1 || !errors.Is(list.Unread[0].Err, fs.ErrNotExist) {
		t.Errorf("%+v", list)
	}
	_, err := Search(context.Background(), Where{Devices: []string{filepath.Join(dir, "x*")}})
	refused(t, err, fs.ErrNotExist, "x*", "matches nothing")
	_, err = Search(context.Background(), Where{Devices: []string{filepath.Join(dir, "[")}})
	refused(t, err, filepath.ErrBadPattern, "[")
}

// What cannot be read is named where a volume is not found, three of them.
func TestFindNamesUnread(t *testing.T) {
	dir := t.TempDir()
	var none []string
	for i := range 5 {
		none = append(none, filepath.Join(dir, fmt.Sprint(i)))
	}
	_, err := Open(context.Background(), openOptions("vol", append(none, file(t, 3*mib))...))
	refused(t, err, ErrNotFound, "volume vol: ", "on the 1 devices that were looked at; 5 could not be read: "+none[0]+": does not exist", none[2], "and 2 more")
	if strings.Contains(err.Error(), none[3]) {
		t.Errorf("names more than three: %v", err)
	}
	_, err = Open(context.Background(), openOptions("", file(t, 3*mib)))
	refused(t, err, ErrNotFound, "any volume: ")
}

// A drive that never answers costs the search its patience and no more, and the
// volume is found without it.
func TestSearchPatience(t *testing.T) {
	paths, _ := volume(t, "vol", 2)
	release := make(chan struct{})
	look := func(path string) (Look, error) {
		if strings.HasPrefix(path, "/hung/") {
			<-release
			return Look{}, errors.New("too late")
		}
		return lookAt(path)
	}
	// Long enough for those that answer, however busy the host is.
	const patience = 1500 * time.Millisecond
	where := Where{Devices: append([]string{"/hung/1", "/hung/2"}, paths...), Patience: patience, look: look}
	start := time.Now()
	list := search(t, where)
	if took := time.Since(start); took < patience || took > 20*patience {
		t.Errorf("took %v with a patience of %v", took, patience)
	}
	if len(list.Sets) != 1 || list.Sets[0].Standing != superblock.Whole || len(list.Unread) != 2 {
		t.Errorf("%+v", list)
	}
	for i, u := range list.Unread {
		if u.Path != where.Devices[i] || !errors.Is(u.Err, context.DeadlineExceeded) || !strings.Contains(u.Err.Error(), "no answer within 1.5s") {
			t.Errorf("%+v", u)
		}
	}
	// A member that hangs is missing, and the error says that something hung.
	where.Devices = []string{"/hung/1", paths[0]}
	where.Patience = patience
	_, err := Open(context.Background(), OpenOptions{Volume: "vol", Where: where})
	refused(t, err, ErrIncomplete, "member 1 is missing", "/hung/1: no answer within 1.5s: the drive hangs")

	// The caller's own deadline, or his loss of interest, ends it as well.
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	where.Patience = time.Hour
	start = time.Now()
	if list, err = Search(ctx, where); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", list, err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v after the caller had given up", took)
	}
	close(release) // they end, and nothing waits for their answers
}

// Many devices are looked at side by side, but not all at once.
func TestSearchMany(t *testing.T) {
	const devices = 3 * atOnce
	var mu sync.Mutex
	now, most := 0, 0
	look := func(path string) (Look, error) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(10 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		return Look{}, fmt.Errorf("%s: nothing there", path)
	}
	var paths []string
	for i := range devices {
		paths = append(paths, fmt.Sprintf("/dev/none%03d", i))
	}
	list := search(t, Where{Devices: paths, look: look})
	if len(list.Unread) != devices || most > atOnce || most < 2 {
		t.Errorf("%d of %d read, %d at once", len(list.Unread), devices, most)
	}
	for i, u := range list.Unread {
		if u.Path != paths[i] {
			t.Fatalf("%d is %s, want %s", i, u.Path, paths[i])
		}
	}
}

func TestInspect(t *testing.T) {
	paths, _ := volume(t, "vol", 2)
	before := stateOf(t, paths...)
	for slot, path := range paths {
		in, err := Inspect(path)
		if err != nil || in.Label.Verdict != superblock.Good || in.Label.Current.Slot != slot || len(in.Foreign) != 0 || in.Locked || in.InUse != nil {
			t.Errorf("%+v, %v", in, err)
		}
	}
	before.unchanged(t)
	blank := file(t, 3*mib)
	tool(t, "mkswap", blank)
	if in, err := Inspect(blank); err != nil || in.Label.Verdict != superblock.Blank || len(in.Foreign) != 1 || in.Foreign[0].Type != "swap" {
		t.Errorf("%+v, %v", in, err)
	}
	_, err := Inspect(t.TempDir())
	refused(t, err, blockdev.ErrNotDevice)
}
