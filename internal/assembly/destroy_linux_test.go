// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"pollux/internal/superblock"
)

func destroy(t testing.TB, name string, paths ...string) {
	t.Helper()
	d, err := PrepareDestroy(context.Background(), name, Where{Devices: paths})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Commit(), d.Close()); err != nil {
		t.Fatal(err)
	}
}

// After destroying nothing of ours is left, and not a byte of the data is changed.
// What is left of a volume can be destroyed too (case 16), and created over again.
func TestDestroy(t *testing.T) {
	for _, c := range []struct {
		what  string
		wreck func(t *testing.T, paths []string)
		// there are the members that are looked at, gone those that are destroyed.
		there, gone []int
	}{
		{"whole", nil, []int{0, 1, 2}, []int{0, 1, 2}},
		{"one missing", nil, []int{0, 2}, []int{0, 2}},
		{"one left", nil, []int{1}, []int{1}},
		{"never finished", func(t *testing.T, p []string) {
			for _, path := range p {
				unfinish(t, path)
			}
		}, []int{0, 1, 2}, []int{0, 1, 2}},
		{"never finished, one missing", func(t *testing.T, p []string) {
			for _, path := range p {
				unfinish(t, path)
			}
		}, []int{1, 2}, []int{1, 2}},
		{"one overwritten", func(t *testing.T, p []string) { patch(t, p[1], copyA, make([]byte, 4096)) }, []int{0, 1, 2}, []int{0, 1, 2}},
		{"one stale", func(t *testing.T, p []string) {
			rewrite(t, p[1], func(sb *superblock.Superblock) { sb.Sequence-- })
		}, []int{0, 1, 2}, []int{0, 2}},
		{"copies lost", func(t *testing.T, p []string) {
			patch(t, p[0], offsetB(t, p[0]), make([]byte, 4096))
			patch(t, p[2], copyA+600, []byte{1})
		}, []int{0, 1, 2}, []int{0, 1, 2}},
	} {
		t.Run(c.what, func(t *testing.T) {
			paths := files(t, 3)
			clean := contents(t, paths...)
			create(t, createOptions("vol", paths...))
			if c.wreck != nil {
				c.wreck(t, paths)
			}
			before := stateOf(t, paths...)
			var there, gone []string
			for _, i := range c.there {
				there = append(there, paths[i])
			}
			for _, i := range c.gone {
				gone = append(gone, paths[i])
			}
			// Planning and preparing write nothing.
			set, problems, err := PlanDestroy(context.Background(), "vol", Where{Devices: there})
			if err != nil || len(problems) != 0 || set.Reference.Name != "vol" {
				t.Errorf("%+v, %v, %v", set, problems, err)
			}
			d, err := PrepareDestroy(context.Background(), "vol", Where{Devices: there})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			before.unchanged(t)
			destroy(t, "vol", there...)
			for _, path := range paths {
				if !slices.Contains(gone, path) {
					if digest(t, path) != before[path].digest {
						t.Errorf("%s was not to be touched", path)
					}
					continue
				}
				want := clean[path]
				for _, at := range []int64{copyA, offsetB(t, path)} {
					clear(want[at:][:superblock.BlockSize])
				}
				if !bytes.Equal(get(t, path), want) {
					t.Errorf("%s: more, or less, than the superblocks is gone", path)
				}
			}
			if raceOn {
				return
			}
			create(t, createOptions("vol", gone...))
			closeDisks(t, mustOpen(t, writable(openOptions("vol", gone...))))
		})
	}
}

func TestDestroyRefuses(t *testing.T) {
	paths := []string{file(t, 4*mib), file(t, 4*mib)}
	id := create(t, createOptions("vol", paths...)).UUID
	clone := file(t, 4*mib)
	put(t, clone, get(t, paths[1]))
	before := stateOf(t, paths...)
	_, err := PrepareDestroy(context.Background(), "vol", Where{Devices: append(paths, clone)})
	refused(t, err, ErrIncomplete, "volume vol: ", "member 1 is both ", "disconnect one")
	_, err = PrepareDestroy(context.Background(), "other", Where{Devices: paths})
	refused(t, err, ErrNotFound, "volume other")
	before.unchanged(t)
	// While somebody has it open.
	o := mustOpen(t, openOptions("vol", paths...))
	_, problems, err := PlanDestroy(context.Background(), id.String(), Where{Devices: paths})
	if err != nil || len(problems) != 2 || !strings.Contains(problems[0].Error(), "another pollux uses it") {
		t.Errorf("%v, %v", problems, err)
	}
	closeDisks(t, o)
	// What has shrunk is left alone, and the cure named is one that works.
	for _, path := range paths {
		if err := os.Truncate(path, 3*mib); err != nil {
			t.Fatal(err)
		}
	}
	before = stateOf(t, paths...)
	_, err = PrepareDestroy(context.Background(), "vol", Where{Devices: paths})
	refused(t, err, ErrIncomplete, "nothing of it is left but on "+paths[0]+", "+paths[1]+", which", "erasing by hand")
	before.unchanged(t)
	for _, path := range paths {
		patch(t, path, 0, make([]byte, mib)) // what the error says to do
	}
	opts := createOptions("vol", paths...)
	opts.Force = true
	create(t, opts)
}
