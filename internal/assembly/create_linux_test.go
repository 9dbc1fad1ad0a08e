// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
	"pollux/poller"
	"pollux/stripe"
)

// Case 2: the smallest member counts, in whole chunks, and the plan says what the
// others waste.
func TestPlan(t *testing.T) {
	paths := []string{file(t, 5*mib), file(t, 3*mib+512), file(t, 8*mib+4096)}
	for _, chunk := range []int64{0, 4 << 10, 1 << 20} {
		opts := createOptions("vol", paths...)
		opts.Chunk, opts.DryRun = chunk, true
		p := prepare(t, opts).Plan
		if len(p.Problems) != 0 || p.Size != 3*mib || p.Name != "vol" || len(p.Members) != 3 {
			t.Fatalf("chunk %d: %+v", chunk, p)
		}
		for i, waste := range []int64{2 * mib, 0, 5 * mib} {
			if m := p.Members[i]; m.Path != paths[i] || m.Data != mib || m.Waste != waste || m.NotPollable == nil || m.Replaces || len(m.Erases) != 0 {
				t.Errorf("chunk %d: member %d: %+v", chunk, i, m)
			}
		}
	}
	opts := createOptions("vol", paths[0], paths[2])
	opts.Chunk = 2 << 20
	if p := create(t, opts); p.Size != 4*mib || p.Members[0].Waste != 0 || p.Members[1].Waste != 4*mib {
		t.Errorf("%+v", p)
	}
	o := mustOpen(t, openOptions("vol", paths[2], paths[0]))
	if o.Chunk != 2<<20 || o.Members[0][0].Limits().Size != 2*mib || o.Members[1][0].Limits().Size != 6*mib {
		t.Errorf("%+v", o)
	}
}

// Creating writes the superblocks and nothing else.
func TestCreateWritesSuperblocksAlone(t *testing.T) {
	paths := files(t, 3)
	before := contents(t, paths...)
	create(t, createOptions("vol", paths...))
	for _, path := range paths {
		now, was := get(t, path), before[path]
		for _, at := range []int64{copyA, offsetB(t, path)} {
			if _, err := superblock.Decode(now[at:][:superblock.BlockSize]); err != nil {
				t.Errorf("%s at %d: %v", path, at, err)
			}
			copy(now[at:], was[at:][:superblock.BlockSize])
		}
		if !bytes.Equal(now, was) {
			t.Errorf("%s: something else than the superblocks was written", path)
		}
	}
}

// Every refusal comes before the first write, in earnest as in a dry run.
func TestCreateRefuses(t *testing.T) {
	nothing := func(*testing.T, *CreateOptions) {}
	for _, c := range []struct {
		what string
		// change wrecks the three blank files of the options, or the options.
		change func(t *testing.T, o *CreateOptions)
		kind   error
		words  []string
		// forced says that Force does not help.
		forced bool
	}{
		{"a bad name", func(t *testing.T, o *CreateOptions) { o.Name = "A B" }, superblock.ErrName, nil, true},
		{"a name that is a UUID", func(t *testing.T, o *CreateOptions) { o.Name = "0f9b2a52-3f0c-4e9b-9d55-111111111111" }, superblock.ErrName, nil, true},
		{"no name", func(t *testing.T, o *CreateOptions) { o.Name = "" }, superblock.ErrName, nil, true},
		{"no devices", func(t *testing.T, o *CreateOptions) { o.Devices = nil }, stripe.ErrGeometry, []string{"0 members"}, true},
		{"too many devices", func(t *testing.T, o *CreateOptions) {
			for len(o.Devices) <= stripe.MaxMembers {
				o.Devices = append(o.Devices, o.Devices[0])
			}
		}, stripe.ErrGeometry, []string{"129 members; 1 to 128"}, true},
		{"a chunk of 2 KiB", func(t *testing.T, o *CreateOptions) { o.Chunk = 2048 }, stripe.ErrGeometry, []string{"chunk size 2048"}, true},
		{"a chunk of 96 KiB", func(t *testing.T, o *CreateOptions) { o.Chunk = 96 << 10 }, stripe.ErrGeometry, []string{"power of two"}, true},
		{"a chunk of 8 MiB", func(t *testing.T, o *CreateOptions) { o.Chunk = 8 << 20 }, nil, nil, true},
		{"a chunk below zero", func(t *testing.T, o *CreateOptions) { o.Chunk = -4096 }, stripe.ErrGeometry, nil, true},
		{"a device that is not there", func(t *testing.T, o *CreateOptions) { o.Devices[1] += ".none" }, os.ErrNotExist, []string{"does not exist"}, true},
		{"a directory", func(t *testing.T, o *CreateOptions) { o.Devices[1] = t.TempDir() }, blockdev.ErrNotDevice, nil, true},
		{"too small", func(t *testing.T, o *CreateOptions) {
			if err := os.Truncate(o.Devices[1], 3*mib-4096); err != nil {
				t.Fatal(err)
			}
		}, ErrUnfit, []string{"it has 3141632 bytes, and 3145728 are needed for a chunk of 65536"}, true},
		{"too small for the chunk", func(t *testing.T, o *CreateOptions) { o.Chunk = 4 << 20 }, ErrUnfit, []string{"and 6291456 are needed"}, true},
		{"the same path twice", func(t *testing.T, o *CreateOptions) { o.Devices[2] = o.Devices[0] }, ErrTwice, []string{"name every drive once"}, true},
		{"a symbolic link to another", func(t *testing.T, o *CreateOptions) { o.Devices[2] = link(t, o.Devices[0], os.Symlink) }, ErrTwice, []string{"it is also "}, true},
		{"a hard link to another", func(t *testing.T, o *CreateOptions) { o.Devices[2] = link(t, o.Devices[0], os.Link) }, ErrTwice, []string{"it is also "}, true},
		{"an existing name", func(t *testing.T, o *CreateOptions) {
			there, _ := volume(t, o.Name, 2)
			o.Where.Devices = append(o.Where.Devices, there...)
		}, ErrExists, []string{"choose another name"}, true},
		{"an existing name, of what is left of a volume", func(t *testing.T, o *CreateOptions) {
			there, _ := volume(t, o.Name, 2)
			o.Where.Devices = append(o.Where.Devices, there[1])
		}, ErrExists, []string{"choose another name"}, true},
		{"members of a volume", func(t *testing.T, o *CreateOptions) { create(t, createOptions("old", o.Devices...)) }, ErrMember,
			[]string{"member 0 of volume old", "pollux destroy"}, true},
		{"a member whose others are missing", func(t *testing.T, o *CreateOptions) {
			create(t, createOptions("old", file(t, most), o.Devices[2]))
		}, ErrMember, []string{"member 1 of volume old", "pollux destroy"}, true},
		{"a clone of a member", func(t *testing.T, o *CreateOptions) {
			old, _ := volume(t, "old", 2)
			put(t, o.Devices[1], get(t, old[0]))
			o.Where.Devices = append(o.Where.Devices, old...)
		}, ErrMember, []string{"member 0 of volume old"}, true},
		{"never finished, the others missing", func(t *testing.T, o *CreateOptions) {
			old, _ := volume(t, "old", 2)
			unfinish(t, old[0])
			put(t, o.Devices[1], get(t, old[0]))
		}, ErrMember, []string{"whose other members are not all here", "--force erases it"}, false},
		{"what is left of an overwritten member", func(t *testing.T, o *CreateOptions) {
			create(t, createOptions("old", o.Devices[1], file(t, most)))
			patch(t, o.Devices[1], copyA, make([]byte, 4096))
		}, ErrMember, []string{"only copy B is left", "volume old", "--force erases it"}, false},
		{"a foreign signature", func(t *testing.T, o *CreateOptions) { tool(t, "mkswap", o.Devices[2]) }, ErrForeign,
			[]string{"swap at 4086", "--force erases it"}, false},
		{"an ext4 in use by nobody", func(t *testing.T, o *CreateOptions) { tool(t, "mkfs.ext4", "-q", "-F", o.Devices[0]) }, ErrForeign,
			[]string{"ext4 at 1080", "--force erases it"}, false},
		{"not pollable", func(t *testing.T, o *CreateOptions) { o.AllowUnpolled = false }, poller.ErrNotPollable, []string{"no poll queues"}, true},
		{"nothing wrong", nothing, nil, nil, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			paths := files(t, 3)
			opts := createOptions("vol", paths...)
			opts.Devices = append([]string{}, paths...)
			opts.Where.Devices = append([]string{}, paths...)
			c.change(t, &opts)
			before := stateOf(t, paths...)
			for _, try := range []struct{ dry, force bool }{{true, false}, {false, true}, {false, false}} {
				if c.forced && !try.dry && !try.force {
					continue // nothing that Force does not overrule is allowed without
				}
				if raceOn && (try.dry || try.force != c.forced) {
					continue
				}
				opts.DryRun, opts.Force = try.dry, try.force
				creation, err := PrepareCreate(context.Background(), opts)
				if err == nil {
					err = errors.Join(creation.Plan.Problems...)
					if try.dry || err != nil {
						if commit := creation.Commit(); commit == nil {
							t.Error("committed")
						}
					}
					if err := creation.Close(); err != nil {
						t.Error(err)
					}
				}
				ok := c.what == "nothing wrong" || try.force && !c.forced
				if (err == nil) != ok {
					t.Errorf("%+v: %v", try, err)
				}
				if !ok && err != nil {
					for line := range strings.Lines(err.Error()) {
						if !strings.Contains(line, "/") && !strings.Contains(line, "olume") {
							t.Errorf("%q names no device and no volume", line)
						}
					}
					if c.kind != nil && !errors.Is(err, c.kind) {
						t.Errorf("%+v: %v, want %v", try, err, c.kind)
					}
					for _, w := range c.words {
						if !strings.Contains(err.Error(), w) {
							t.Errorf("%+v: %q does not say %q", try, err, w)
						}
					}
				}
			}
			before.unchanged(t)
		})
	}
}

func link(t *testing.T, path string, how func(from, to string) error) string {
	t.Helper()
	// Beside it: a hard link has to be on the same filesystem.
	to := filepath.Join(filepath.Dir(path), "link")
	if err := how(path, to); err != nil {
		t.Fatal(err)
	}
	return to
}

// All that is wrong is said at once.
func TestCreateSaysAll(t *testing.T) {
	paths := files(t, 3)
	tool(t, "mkswap", paths[0])
	create(t, createOptions("old", paths[1]))
	if err := os.Truncate(paths[2], mib); err != nil {
		t.Fatal(err)
	}
	opts := createOptions("old", paths...)
	opts.AllowUnpolled = false
	err := errors.Join(prepare(t, opts).Plan.Problems...)
	for _, kind := range []error{ErrForeign, ErrMember, ErrUnfit, ErrExists, poller.ErrNotPollable} {
		if !errors.Is(err, kind) {
			t.Errorf("%v is not among %v", kind, err)
		}
	}
}

// Forced, what wipefs knows of is gone, and not a byte more than its signatures and
// the places of the superblocks.
func TestCreateForce(t *testing.T) {
	paths := files(t, 3)
	// Blank at the ends, where random bytes could look like something.
	tool(t, "mkfs.ext4", "-q", "-F", paths[0])
	tool(t, "mkswap", paths[1])
	tool(t, "mkfs.ext4", "-q", "-F", "-E", "nodiscard", paths[2])
	patch(t, paths[2], copyA+64, []byte("_BHRfS_M")) // where copy A comes anyway
	before := contents(t, paths...)
	opts := createOptions("vol", paths...)
	opts.Force = true
	plan := create(t, opts)
	for i, path := range paths {
		if found := tool(t, "wipefs", "-n", path); found != "" {
			t.Errorf("%s: wipefs finds %s", path, found)
		}
		want := before[path]
		if len(plan.Members[i].Erases) == 0 {
			t.Errorf("%s: the plan erases nothing", path)
		}
		for _, s := range plan.Members[i].Erases {
			if !bytes.Equal(want[s.Offset:][:len(s.Magic)], s.Magic) {
				t.Errorf("%s: %v was not there", path, s)
			}
			clear(want[s.Offset:][:len(s.Magic)])
		}
		got := get(t, path)
		for _, at := range []int64{copyA, offsetB(t, path)} {
			copy(want[at:], got[at:][:superblock.BlockSize])
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: more was erased than the signatures", path)
		}
	}
	closeDisks(t, mustOpen(t, writable(openOptions("vol", paths...))))
}

// What was never finished is replaced without force, and its sequence exceeded.
func TestCreateReplaces(t *testing.T) {
	paths, old := volume(t, "vol", 2)
	for _, path := range paths {
		rewrite(t, path, func(sb *superblock.Superblock) { sb.State, sb.Sequence = superblock.Forming, 40 })
	}
	plan := create(t, createOptions("vol", paths[1], paths[0]))
	if plan.UUID == old || !plan.Members[0].Replaces || !plan.Members[1].Replaces {
		t.Errorf("%+v", plan)
	}
	if o := mustOpen(t, openOptions("vol", paths...)); o.UUID != plan.UUID || o.Sequence != 42 || o.Members[0][0].Info().Path != paths[1] {
		t.Errorf("%+v", o)
	}
}

// A dry run opens nothing for writing and locks nothing: others may do both beside
// it. It never commits.
func TestCreateDryRun(t *testing.T) {
	paths := files(t, 2)
	before := stateOf(t, paths...)
	for _, path := range paths {
		if err := os.Chmod(path, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	opts := createOptions("vol", paths...)
	opts.DryRun = true
	c := prepare(t, opts)
	for _, path := range paths {
		if n := descriptors(t, path, "00", "02"); n[0] != 1 || n[1] != 0 {
			t.Errorf("%s: %d descriptors to read and %d to write", path, n[0], n[1])
		}
		d, err := blockdev.Open(path, blockdev.Mode{})
		if err != nil {
			t.Fatal(err)
		}
		if locked, _, err := d.Locked(); locked || err != nil {
			t.Errorf("%s: locked: %v", path, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := c.Commit(); err == nil || !strings.Contains(err.Error(), "dry run") {
		t.Errorf("committed: %v", err)
	}
	before.unchanged(t)
	// In earnest it is the other way round.
	for _, path := range paths {
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	create := prepare(t, createOptions("vol", paths...))
	for _, path := range paths {
		if n := descriptors(t, path, "02"); n[0] != 1 {
			t.Errorf("%s: %d descriptors to write", path, n[0])
		}
	}
	// The dry run beside it says that it would be refused.
	if err := errors.Join(prepare(t, opts).Plan.Problems...); !errors.Is(err, blockdev.ErrBusy) || !strings.Contains(err.Error(), paths[1]) {
		t.Errorf("a dry run beside a creation: %v", err)
	}
	before.unchanged(t)
	if err := create.Close(); err != nil {
		t.Error(err)
	}
	before.unchanged(t)
}

// descriptors counts those that this process has of a file, by how they end in
// /proc: the access mode is in the last digits of its flags.
func descriptors(t *testing.T, path string, modes ...string) []int {
	t.Helper()
	counts := make([]int, len(modes))
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(links) == 0 {
		t.Fatal(links, err)
	}
	for _, l := range links {
		if to, err := os.Readlink(l); err != nil || to != path {
			continue
		}
		text, err := os.ReadFile(strings.Replace(l, "/fd/", "/fdinfo/", 1))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if flags, ok := strings.CutPrefix(line, "flags:"); ok {
				var bits int
				if _, err := fmt.Sscanf(strings.TrimSpace(flags), "%o", &bits); err != nil {
					t.Fatal(err)
				}
				for i, mode := range modes {
					if mode == fmt.Sprintf("%02o", bits&3) {
						counts[i]++
					}
				}
			}
		}
	}
	return counts
}

// A device that fails when the first block is to be saved: nothing is written to
// the others.
func TestCreateFails(t *testing.T) {
	paths := files(t, 3)
	c := prepare(t, createOptions("vol", paths...))
	if err := os.Truncate(paths[2], mib); err != nil {
		t.Fatal(err)
	}
	before := stateOf(t, paths...)
	err := c.Commit()
	if err == nil || !strings.Contains(err.Error(), "volume vol: not created: "+paths[2]+": cannot read at ") {
		t.Errorf("%v", err)
	}
	before.unchanged(t)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	// And lets go of all of them.
	create(t, createOptions("vol", paths[:2]...))
}
