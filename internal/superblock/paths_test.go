// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// way is a controller of the subsystem s, which has that identifier.
func way(id int) Way { return Way{Subsystem: "nqn.s", Controller: id, Known: true} }

// path is another device on which the drive of f was found.
func path(f Found, name string, w Way) Found {
	f.Path, f.Way = name, w
	return f
}

// label is what a disk shows after change has been at a copy of it.
func label(t *testing.T, d *disk, change func(d *disk)) Label {
	t.Helper()
	c := rig{d}.clone()[0]
	change(c)
	l, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestAssemblePaths has what makes one member of several devices with its superblock,
// and what makes copies of them. The device /dev/d1 is over controller 1.
func TestAssemblePaths(t *testing.T) {
	errRead := errors.New("injected: copy B cannot be read")
	for _, c := range []struct {
		what string
		// others are the further devices of member 1.
		others func(r rig, f Found) []Found
		paths  []string // of slot 1
		words  []string // of the problems, one after the other; none: the volume is whole
	}{
		{"two paths", func(_ rig, f Found) []Found { return []Found{path(f, "/dev/e", way(2))} },
			[]string{"/dev/d1", "/dev/e"}, nil},
		{"three paths, the first by name found last", func(_ rig, f Found) []Found {
			return []Found{path(f, "/dev/e", way(2)), path(f, "/dev/c", way(0))}
		}, []string{"/dev/c", "/dev/d1", "/dev/e"}, nil},
		{"controllers not known", func(_ rig, f Found) []Found {
			return []Found{path(f, "/dev/e", Way{}), path(f, "/dev/f", Way{}), path(f, "/dev/g", Way{Subsystem: "nqn.s"})}
		}, []string{"/dev/d1", "/dev/e", "/dev/f", "/dev/g"}, nil},
		{"subsystem not known", func(_ rig, f Found) []Found { return []Found{path(f, "/dev/e", Way{Controller: 2, Known: true})} },
			[]string{"/dev/d1", "/dev/e"}, nil},
		{"an identifier that is not known is not 1", func(_ rig, f Found) []Found {
			return []Found{path(f, "/dev/e", Way{Subsystem: "nqn.s", Controller: 1})}
		}, []string{"/dev/d1", "/dev/e"}, nil},

		{"another drive", func(_ rig, f Found) []Found {
			f = path(f, "/dev/e", way(2))
			f.Drive = "drive 9"
			return []Found{f}
		}, []string{"/dev/d1", "/dev/e"}, []string{"/dev/e: member 1 twice: a copy of /dev/d1 on another drive"}},
		// What has no worldwide identifier has a Drive of its own.
		{"no identifiers", func(_ rig, f Found) []Found {
			a, b := path(f, "/dev/e", Way{}), path(f, "/dev/f", Way{})
			a.Drive, b.Drive = "block device 7:0", "block device 7:1"
			return []Found{a, b}
		}, []string{"/dev/d1", "/dev/e", "/dev/f"}, []string{"/dev/e: member 1 twice: a copy of /dev/d1", "/dev/f: member 1 twice: a copy of /dev/d1"}},
		{"another subsystem", func(_ rig, f Found) []Found {
			return []Found{path(f, "/dev/e", Way{Subsystem: "nqn.t", Controller: 2, Known: true})}
		}, []string{"/dev/d1", "/dev/e"}, []string{"/dev/e: member 1 twice: it claims to be the drive that /dev/d1 is, and is reached in another NVMe subsystem"}},
		{"the same controller ID", func(_ rig, f Found) []Found { return []Found{path(f, "/dev/e", way(1))} },
			[]string{"/dev/d1", "/dev/e"}, []string{"/dev/e: member 1 twice: it claims to be the drive that /dev/d1 is, and is reached by a controller of the same ID"}},
		{"the same controller ID, subsystems not known", func(_ rig, f Found) []Found {
			return []Found{path(f, "/dev/e", Way{Controller: 1, Known: true})}
		}, []string{"/dev/d1", "/dev/e"}, []string{"of the same ID"}},
		// Each agrees with the first, and they not with each other.
		{"two of three contradict each other", func(_ rig, f Found) []Found {
			return []Found{path(f, "/dev/e", way(2)), path(f, "/dev/f", way(2))}
		}, []string{"/dev/d1", "/dev/e", "/dev/f"}, []string{"/dev/f: member 1 twice: it claims to be the drive that /dev/e is"}},
		{"a third is a copy", func(_ rig, f Found) []Found {
			third := path(f, "/dev/f", way(3))
			third.Drive = "drive 9"
			return []Found{path(f, "/dev/e", way(2)), third}
		}, []string{"/dev/d1", "/dev/e", "/dev/f"}, []string{"/dev/f: member 1 twice: a copy of /dev/d1"}},

		{"forming on one", func(r rig, f Found) []Found {
			f = path(f, "/dev/e", way(2))
			f.Label = label(t, r[1], func(d *disk) {
				rewrite(t, d, func(sb *Superblock) { sb.State, sb.Sequence = Forming, sb.Sequence-1 })
			})
			return []Found{f}
		}, []string{"/dev/d1", "/dev/e"}, []string{"/dev/e: member 1 twice: it claims to be the drive that /dev/d1 is, and shows another superblock"}},
		{"copy B lost on one", func(r rig, f Found) []Found {
			f = path(f, "/dev/e", way(2))
			f.Label = label(t, r[1], func(d *disk) { delete(d.blocks, OffsetB(d.size)) })
			return []Found{f}
		}, []string{"/dev/d1", "/dev/e"}, []string{"shows another superblock"}},
		{"copy B of an older state on one", func(r rig, f Found) []Found {
			f = path(f, "/dev/e", way(2))
			f.Label = label(t, r[1], func(d *disk) {
				sb := *f.Label.Current
				sb.State, sb.Sequence = Forming, sb.Sequence-1
				d.blocks[OffsetB(d.size)] = sb.Encode()
			})
			return []Found{f}
		}, []string{"/dev/d1", "/dev/e"}, []string{"shows another superblock"}},
		{"copy A torn on one", func(r rig, f Found) []Found {
			f = path(f, "/dev/e", way(2))
			f.Label = label(t, r[1], func(d *disk) {
				d.blocks[copyA] = slices.Clone(d.blocks[copyA])
				d.blocks[copyA][700]++
			})
			return []Found{f}
		}, []string{"/dev/d1", "/dev/e"}, []string{"shows another superblock"}},
		{"larger on one", func(r rig, f Found) []Found {
			f = path(f, "/dev/e", way(2))
			f.Label = label(t, r[1], func(d *disk) { d.size += mib })
			return []Found{f}
		}, []string{"/dev/d1", "/dev/e"}, []string{"shows another superblock"}},
		// A path that reads badly is a path.
		{"copy B not read on one", func(_ rig, f Found) []Found {
			f = path(f, "/dev/e", way(2))
			f.Label.B.Superblock, f.Label.B.Err, f.Label.Verdict = nil, errRead, NoB
			return []Found{f}
		}, []string{"/dev/d1", "/dev/e"}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := newRig(3)
			r.create(t, "vol")
			found := r.found(t)
			for i := range found {
				found[i].Way = way(1)
			}
			found = append(found, c.others(r, found[1])...)
			want := Whole
			if len(c.words) > 0 {
				want = Incomplete
			}
			for range 2 { // nothing depends on the order in which devices were found
				s := one(t, found)
				if s.Standing != want || len(s.Strays) != 0 || len(s.Problems) != len(c.words) {
					t.Errorf("%v", describe([]*Set{s}))
				}
				if OneDrive(s.Slots[1]) != (want == Whole) || !OneDrive(s.Slots[0]) || !OneDrive(nil) {
					t.Errorf("one drive: %v", !(want == Whole))
				}
				for i, p := range s.Problems {
					if i < len(c.words) && (!strings.Contains(p.String(), c.words[i]) || p.Slot != 1) {
						t.Errorf("problem %d is %q, want %q", i, p, c.words[i])
					}
				}
				for slot, want := range [][]string{{"/dev/d0"}, c.paths, {"/dev/d2"}} {
					if got := names(s.Slots[slot]); !slices.Equal(got, want) {
						t.Errorf("slot %d has %q, want %q", slot, got, want)
					}
				}
				if members := s.Members(); len(members) != 3 || members[1].Path != c.paths[0] {
					t.Errorf("members: %q", names(members))
				}
				slices.Reverse(found)
			}
		})
	}
}

func TestCopiesAgree(t *testing.T) {
	first, second := sample(), sample()
	second.Sequence++
	copies := map[string]Copy{
		"first":       {Superblock: &first},
		"second":      {Superblock: &second},
		"none":        {Err: ErrNone},
		"damaged":     {Err: fmt.Errorf("at 5: %w", ErrDamaged)},
		"unsupported": {Err: ErrUnsupported},
		"invalid":     {Err: ErrInvalid},
		"not read":    {Err: errors.New("input/output error")},
	}
	for a, one := range copies {
		for b, other := range copies {
			if want := a == b || a == "not read" || b == "not read"; one.agrees(other) != want {
				t.Errorf("%s and %s agree: %v", a, b, !want)
			}
		}
	}
	again := sample()
	if !copies["first"].agrees(Copy{Offset: 7, Superblock: &again}) {
		t.Error("two that were read of the same bytes do not agree")
	}
	// Where the copy that counts was not read, the other one is not the member as it is.
	unread := Copy{Err: errors.New("input/output error")}
	whole := Label{A: copies["first"], B: copies["second"], Current: &second}
	if half := (Label{A: copies["first"], B: unread, Current: &first}); whole.agrees(half) || half.agrees(whole) {
		t.Error("an older superblock agrees with that which counts")
	}
	if half := (Label{A: copies["first"], B: unread, Current: &second}); !whole.agrees(half) || !half.agrees(whole) {
		t.Error("a copy that was not read disagrees")
	}
}

func names(found []Found) (paths []string) {
	for _, f := range found {
		paths = append(paths, f.Path)
	}
	return paths
}

// Paths make nothing whole that is not: one member over two is not two members.
func TestAssemblePathsOfIncomplete(t *testing.T) {
	found := with(t, nil)
	for i := range found {
		found[i].Way = way(1)
	}
	s := one(t, []Found{found[0], found[1], path(found[1], "/dev/e", way(2))})
	if s.Standing != Incomplete || len(s.Problems) != 1 || !strings.Contains(s.Problems[0].Text, "member 2 is missing") {
		t.Errorf("%v", describe([]*Set{s}))
	}
	// A path to what cannot be a member is no better.
	stale := with(t, func(r rig) { rewrite(t, r[1], func(sb *Superblock) { sb.Sequence-- }) })
	again := path(stale[1], "/dev/e", way(2))
	if s := one(t, append(stale, again)); s.Standing != Incomplete || len(s.Strays) != 2 || len(s.Slots[1]) != 0 {
		t.Errorf("%v", describe([]*Set{s}))
	}
	// Of a creation that was cut, two paths are two ways to what is in the way.
	forming := with(t, func(r rig) {
		for _, d := range r {
			rewrite(t, d, func(sb *Superblock) { sb.State = Forming })
		}
	})
	again = path(forming[1], "/dev/e", way(2))
	if s := one(t, append(forming, again)); s.Standing != Unfinished || len(s.Problems) != 0 || len(s.Slots[1]) != 2 {
		t.Errorf("%v", describe([]*Set{s}))
	}
}

// All members over two paths each, however the nodes are called.
func TestAssemblePathsOfAll(t *testing.T) {
	var found []Found
	for i, f := range with(t, nil) {
		found = append(found, path(f, fmt.Sprint("/dev/a", i), way(1)), path(f, fmt.Sprint("/dev/b", 2-i), way(2)))
	}
	s := one(t, found)
	if s.Standing != Whole || len(s.Devices()) != 6 {
		t.Errorf("%v", describe([]*Set{s}))
	}
	for slot, f := range s.Members() {
		if want := fmt.Sprint("/dev/a", slot); f.Path != want || len(s.Slots[slot]) != 2 {
			t.Errorf("member %d is %q, want %s first", slot, names(s.Slots[slot]), want)
		}
	}
}

// A path to a member is the member, also for who would create over it.
func TestCreatableOverPath(t *testing.T) {
	found := with(t, nil)
	for i := range found {
		found[i].Way = way(1)
	}
	again := path(found[1], "/dev/e", way(2))
	if reason, inUse := Creatable(again, Assemble(append(found, again))); !inUse || !strings.Contains(reason, "member 1 of volume vol") {
		t.Errorf("%q, in use %v", reason, inUse)
	}
}
