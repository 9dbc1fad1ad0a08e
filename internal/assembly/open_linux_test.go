// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
)

// Case 10: a volume is found by its name, by its UUID and by its members alone, in
// whatever order these come and whatever they are called by now.
func TestOpen(t *testing.T) {
	paths := []string{file(t, most), file(t, most+mib), file(t, most+512)}
	plan := create(t, createOptions("vol", paths...))
	blank := file(t, 3*mib)
	check := func(opts OpenOptions, members []string) {
		t.Helper()
		o, err := Open(context.Background(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer closeDisks(t, o)
		if o.Name != "vol" || o.UUID != plan.UUID || o.Chunk != 64<<10 || o.State != superblock.Active || len(o.Members) != 3 {
			t.Errorf("%+v", o.Superblock)
		}
		for slot, paths := range o.Members {
			d := paths[0]
			l := d.Limits()
			if d.Info().Path != members[slot] || l.Size != superblock.DataSize(d.Info().Size, o.Chunk) || l.ReadOnly == opts.Write {
				t.Errorf("member %d is %s, %+v; want %s", slot, d.Info().Path, l, members[slot])
			}
		}
	}
	for _, write := range []bool{false, true} {
		for _, name := range []string{"vol", plan.UUID.String(), strings.ToUpper(plan.UUID.String()), ""} {
			orders := [][]int{{2, 0, 1}}
			if name == "vol" {
				orders = [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}}
			}
			for _, order := range orders {
				opts := openOptions(name, blank)
				opts.Write = write
				for _, i := range order {
					opts.Where.Devices = append(opts.Where.Devices, paths[i])
				}
				check(opts, paths)
			}
		}
	}
	// Other names: the first is what the second was called.
	dir := t.TempDir()
	var renamed []string
	for i, path := range paths {
		renamed = append(renamed, filepath.Join(dir, []string{"nvme1n1", "nvme2n1", "nvme0n1"}[i]))
		if err := os.Rename(path, renamed[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(renamed[0], paths[1]); err != nil {
		t.Fatal(err)
	}
	renamed[0] = paths[1]
	check(openOptions("vol", renamed...), renamed)
	check(openOptions("", filepath.Join(dir, "*"), paths[1]), renamed)
	// Two names of one file are one device.
	link := filepath.Join(dir, "zlink")
	if err := os.Symlink(renamed[1], link); err != nil {
		t.Fatal(err)
	}
	check(openOptions("vol", append(renamed, link)...), renamed)
}

// Opening for reading writes nothing, whatever could be repaired; opening for
// writing writes what has to be, and nothing when all is well.
func TestOpenRepairs(t *testing.T) {
	for name, wreck := range map[string]func(paths []string){
		"good":    func([]string) {},
		"B lost":  func(p []string) { patch(t, p[1], offsetB(t, p[1]), make([]byte, superblock.BlockSize)) },
		"A torn":  func(p []string) { patch(t, p[0], copyA+512, bytes.Repeat([]byte{9}, 100)) },
		"forming": func(p []string) { unfinish(t, p[1]) },
		"all of it": func(p []string) {
			patch(t, p[0], copyA+512, bytes.Repeat([]byte{9}, 100))
			patch(t, p[1], offsetB(t, p[1]), make([]byte, superblock.BlockSize))
			unfinish(t, p[2])
		},
	} {
		t.Run(name, func(t *testing.T) {
			paths, _ := volume(t, "vol", 3)
			good := stateOf(t, paths...)
			wreck(paths)
			before := stateOf(t, paths...)
			closeDisks(t, mustOpen(t, openOptions("vol", paths...)))
			before.unchanged(t)
			closeDisks(t, mustOpen(t, writable(openOptions("vol", paths...))))
			for path, was := range good {
				if digest(t, path) != was.digest {
					t.Errorf("%s is not as it was created", path)
				}
			}
			if name == "good" {
				before.unchanged(t)
			}
		})
	}
}

// unfinish makes a member what the cut of a creation leaves beside active ones.
func unfinish(t testing.TB, path string) {
	rewrite(t, path, func(sb *superblock.Superblock) { sb.State, sb.Sequence = superblock.Forming, sb.Sequence-1 })
}

// Every refusal names what is wrong, and leaves every byte as it was: to read, to
// write, and with Force, which is about signatures alone.
func TestOpenRefuses(t *testing.T) {
	ext4 := func(t testing.TB, path string, more ...string) {
		tool(t, "mkfs.ext4", append(append([]string{"-q", "-F"}, more...), path)...)
	}
	for _, c := range []struct {
		what string
		// wreck changes the members and returns where to look.
		wreck func(t *testing.T, paths []string) []string
		kind  error
		words []string
	}{
		{"missing", func(t *testing.T, p []string) []string { return slices.Delete(p, 1, 2) }, ErrIncomplete,
			[]string{"volume vol: ", "member 1 is missing (UUID ", "connect its drive"}},
		{"missing, and one that cannot be read", func(t *testing.T, p []string) []string {
			return append(slices.Delete(p, 1, 2), filepath.Join(t.TempDir(), "none"))
		}, ErrIncomplete, []string{"member 1 is missing", "1 could not be read: ", "none: does not exist"}},
		{"only one", func(t *testing.T, p []string) []string { return p[2:] }, ErrIncomplete, []string{"member 0 is missing", "member 1 is missing"}},
		{"cloned", func(t *testing.T, p []string) []string {
			clone := file(t, most)
			put(t, clone, get(t, p[1]))
			return append(p, clone)
		}, ErrIncomplete, []string{"member 1 twice: a copy of ", "on another drive"}},
		{"cloned in place of another", func(t *testing.T, p []string) []string {
			put(t, p[2], get(t, p[1]))
			return p
		}, ErrIncomplete, []string{"member 1 twice", "member 2 is missing"}},
		{"foreign", func(t *testing.T, p []string) []string {
			other, _ := volume(t, "other", 3)
			return []string{p[0], other[1], p[2]}
		}, ErrIncomplete, []string{"member 1 is missing"}},
		{"stale", func(t *testing.T, p []string) []string {
			rewrite(t, p[1], func(sb *superblock.Superblock) { sb.Sequence-- })
			return p
		}, ErrIncomplete, []string{"its superblock is stale (sequence 1, the others have 2)"}},
		{"newer than the others", func(t *testing.T, p []string) []string {
			rewrite(t, p[1], func(sb *superblock.Superblock) { sb.Sequence++ })
			return p
		}, ErrIncomplete, []string{"its superblock is stale (sequence 2, the others have 3)"}},
		{"contradicting", func(t *testing.T, p []string) []string {
			rewrite(t, p[1], func(sb *superblock.Superblock) { sb.Members[0].Size += mib })
			return p
		}, ErrIncomplete, []string{"contradicts"}},
		{"shrunk", func(t *testing.T, p []string) []string {
			if err := os.Truncate(p[0], most-4096); err != nil {
				t.Fatal(err)
			}
			return p
		}, ErrIncomplete, []string{"has 3141632 bytes, and had 3145728"}},
		{"copy A overwritten", func(t *testing.T, p []string) []string {
			patch(t, p[0], copyA, bytes.Repeat([]byte("data"), 1024))
			return p
		}, ErrIncomplete, []string{"copy A was overwritten by something else"}},
		{"copy A overwritten with zeros", func(t *testing.T, p []string) []string {
			patch(t, p[0], copyA, make([]byte, 4096))
			return p
		}, ErrIncomplete, []string{"copy A was overwritten by something else"}},
		{"mkfs over copy A", func(t *testing.T, p []string) []string {
			// The table of inodes comes to lie on it.
			ext4(t, p[0], "-b", "1024", "-N", "1024", "-O", "^resize_inode", "-E", "nodiscard,lazy_itable_init=0")
			return p
		}, ErrIncomplete,
			[]string{"copy A was overwritten by something else"}},
		{"copies of two members", func(t *testing.T, p []string) []string {
			patch(t, p[0], offsetB(t, p[0]), get(t, p[1])[copyA:][:superblock.BlockSize])
			return p
		}, ErrIncomplete, []string{"different volumes or members"}},
		{"made by a newer version", func(t *testing.T, p []string) []string {
			for _, at := range []int64{copyA, offsetB(t, p[0])} {
				patch(t, p[0], at+8, []byte{2})
				b := get(t, p[0])[at:][:superblock.BlockSize]
				patch(t, p[0], at, crc(b))
			}
			return p
		}, ErrIncomplete, []string{"member 0 is missing"}},
		{"never finished", func(t *testing.T, p []string) []string {
			for _, path := range p {
				unfinish(t, path)
			}
			return p
		}, ErrUnfinished, []string{"create it again, or pollux destroy "}},
		{"no such volume", func(t *testing.T, p []string) []string { return []string{file(t, most)} }, ErrNotFound,
			[]string{"volume vol: no such volume on the 1 devices that were looked at"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			paths, _ := volume(t, "vol", 3)
			where := c.wreck(t, slices.Clone(paths))
			before := stateOf(t, paths...)
			for _, opts := range []OpenOptions{{}, {Write: true, Force: true}} {
				opts.Volume, opts.Where.Devices = "vol", where
				o, err := Open(context.Background(), opts)
				if err == nil {
					closeDisks(t, o)
				}
				refused(t, err, c.kind, c.words...)
			}
			before.unchanged(t)
		})
	}
}

// What another program has written beside our superblocks keeps the volume from
// being opened for writing, and nothing else.
func TestOpenForeign(t *testing.T) {
	for name, mk := range map[string][]string{
		"swap": {"mkswap"},
		"ext4": {"mkfs.ext4", "-q", "-F", "-b", "1024", "-O", "^resize_inode", "-E", "nodiscard,lazy_itable_init=1"},
	} {
		t.Run(name, func(t *testing.T) {
			paths, id := volume(t, "vol", 2)
			tool(t, mk[0], append(mk[1:], paths[1])...)
			before := stateOf(t, paths...)
			o := mustOpen(t, openOptions("vol", paths...))
			closeDisks(t, o)
			_, err := Open(context.Background(), writable(openOptions("vol", paths...)))
			refused(t, err, ErrForeign, "volume vol: "+paths[1], name+" at ", "Options.Force")
			if strings.Contains(err.Error(), paths[0]) {
				t.Errorf("blames %s too: %v", paths[0], err)
			}
			before.unchanged(t)
			opts := writable(openOptions("vol", paths...))
			opts.Force = true
			if o := mustOpen(t, opts); o.UUID != id {
				t.Errorf("%+v", o)
			}
			before.unchanged(t)
			// What looks at the device says both.
			in, err := Inspect(paths[1])
			if err != nil || in.Label.Verdict != superblock.Good || len(in.Foreign) == 0 || in.Foreign[0].Type != name || in.InUse != nil {
				t.Errorf("%+v, %v", in, err)
			}
			if !in.Locked || !in.LockedToWrite {
				t.Error("inspect does not say that it is open")
			}
		})
	}
}

// The content of a volume is no foreign signature, wherever it lies on a member.
func TestOpenIgnoresContent(t *testing.T) {
	paths := []string{file(t, 4*mib), file(t, 4*mib)}
	create(t, createOptions("vol", paths...))
	swap := file(t, most)
	tool(t, "mkswap", "-p", "4096", swap)
	// A member's data begins at 1 MiB: there as well as at a place where LUKS keeps
	// a second header, which is looked at on every device.
	patch(t, paths[0], mib, get(t, swap)[:8192])
	header := append([]byte("SKUL\xba\xbe\x00\x02"), make([]byte, 504)...)
	binary.BigEndian.PutUint64(header[256:], 2*mib)
	patch(t, paths[0], 2*mib, header)
	closeDisks(t, mustOpen(t, writable(openOptions("vol", paths...))))
	if in, err := Inspect(paths[0]); err != nil || len(in.Foreign) != 0 {
		t.Errorf("%+v, %v", in, err)
	}
	// Of no volume any more, it is what it looks like.
	destroy(t, "vol", paths...)
	opts := createOptions("new", paths...)
	opts.DryRun = true
	refused(t, errors.Join(prepare(t, opts).Plan.Problems...), ErrForeign, "crypto_LUKS at 2097152")
}

func TestOpenAmbiguous(t *testing.T) {
	first, one := volume(t, "same", 2)
	second, two := volume(t, "same", 2)
	all := slices.Concat(first, second)
	before := stateOf(t, all...)
	for _, name := range []string{"same", ""} {
		_, err := Open(context.Background(), writable(openOptions(name, all...)))
		refused(t, err, ErrAmbiguous, one.String(), two.String(), "name one by its UUID")
		_, err = PrepareDestroy(context.Background(), name, Where{Devices: all})
		refused(t, err, ErrAmbiguous, one.String(), two.String())
	}
	before.unchanged(t)
	for id, paths := range map[string][]string{one.String(): first, two.String(): second} {
		o := mustOpen(t, openOptions(id, all...))
		if o.UUID.String() != id || o.Members[0][0].Info().Path != paths[0] {
			t.Errorf("%s opens %s on %s", id, o.UUID, o.Members[0][0].Info().Path)
		}
	}
	// Each alone is not ambiguous.
	closeDisks(t, mustOpen(t, openOptions("same", first...)))
}

// Readers go together, a writer with nobody.
func TestOpenLocks(t *testing.T) {
	paths, _ := volume(t, "vol", 2)
	before := stateOf(t, paths...)
	reading := []*Opened{mustOpen(t, openOptions("vol", paths...)), mustOpen(t, openOptions("vol", paths...))}
	busy := func(opts OpenOptions) {
		t.Helper()
		_, err := Open(context.Background(), opts)
		refused(t, err, blockdev.ErrBusy, "volume vol: "+paths[0], "another pollux uses it", "fuser")
	}
	busy(writable(openOptions("vol", paths...)))
	_, err := PrepareCreate(context.Background(), createOptions("new", paths...))
	refused(t, err, blockdev.ErrBusy, paths[0])
	_, err = PrepareDestroy(context.Background(), "vol", Where{Devices: paths})
	refused(t, err, blockdev.ErrBusy, paths[0])
	before.unchanged(t)
	for _, o := range reading {
		closeDisks(t, o)
	}
	// A refusal has left no lock behind.
	writing := mustOpen(t, writable(openOptions("vol", paths...)))
	busy(openOptions("vol", paths...))
	busy(writable(openOptions("vol", paths...)))
	list, err := Search(context.Background(), Where{Devices: paths})
	if err != nil || len(list.Looks) != 2 || !list.Looks[0].Locked || !list.Looks[1].LockedToWrite {
		t.Errorf("%+v, %v", list, err)
	}
	closeDisks(t, writing)
	closeDisks(t, mustOpen(t, openOptions("vol", paths...)))
}

// Without permission to use an unpolled drive, opening says so and holds nothing.
func TestOpenNotPollable(t *testing.T) {
	paths, _ := volume(t, "vol", 2)
	before := stateOf(t, paths...)
	opts := writable(openOptions("vol", paths...))
	opts.Polling = 0
	_, err := Open(context.Background(), opts)
	if err == nil || !strings.Contains(err.Error(), "volume vol: member 0: "+paths[0]) || !strings.Contains(err.Error(), "not pollable") {
		t.Errorf("%v", err)
	}
	before.unchanged(t)
	closeDisks(t, mustOpen(t, writable(openOptions("vol", paths...))))
}
