// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// with returns what is found of a volume of three members after change has been at
// the disks.
func with(t *testing.T, change func(r rig)) []Found {
	t.Helper()
	r := newRig(3)
	r.create(t, "vol")
	if change != nil {
		change(r)
	}
	return r.found(t)
}

// rewrite changes both copies of a disk.
func rewrite(t *testing.T, d *disk, change func(*Superblock)) {
	t.Helper()
	l, err := Read(d)
	if err != nil || l.Current == nil {
		t.Fatal(l, err)
	}
	sb := *l.Current
	sb.Members = slices.Clone(sb.Members)
	at := []int64{sb.offset(inA), sb.offset(inB)}
	change(&sb)
	for _, offset := range at {
		d.blocks[offset] = sb.Encode()
	}
}

// one returns the only set and checks what always holds of one.
func one(t *testing.T, found []Found) *Set {
	t.Helper()
	sets := Assemble(found)
	if len(sets) != 1 {
		t.Fatalf("%d sets: %v", len(sets), describe(sets))
	}
	checkSet(t, sets[0])
	if got := len(sets[0].Devices()); got != len(found) {
		t.Errorf("%d devices of %d: %v", got, len(found), describe(sets))
	}
	return sets[0]
}

func checkSet(t *testing.T, s *Set) {
	t.Helper()
	if len(s.Slots) != len(s.Reference.Members) || s.UUID != s.Reference.UUID {
		t.Errorf("%d slots of %d members, UUID %s of %s", len(s.Slots), len(s.Reference.Members), s.UUID, s.Reference.UUID)
	}
	if (s.Standing == Whole) != (len(s.Problems) == 0) && s.Standing != Unfinished {
		t.Errorf("%v with problems %v", s.Standing, s.Problems)
	}
	for slot, found := range s.Slots {
		for _, f := range found {
			if f.Label.Current.Slot != slot {
				t.Errorf("%s has slot %d and is at %d", f.Path, f.Label.Current.Slot, slot)
			}
		}
		if s.Standing == Whole && s.Members()[slot].Path != found[0].Path {
			t.Errorf("slot %d: %v", slot, s.Members())
		}
	}
	for _, p := range s.Problems {
		if text := p.String(); text == "" || strings.Contains(text, "\n") || p.Path != "" && !strings.HasPrefix(text, p.Path+": ") {
			t.Errorf("problem: %q", text)
		}
	}
}

// TestAssembleOrder: case 10, the same members in the same slots, however the
// devices are called and in whatever order they come.
func TestAssembleOrder(t *testing.T) {
	found := with(t, nil)
	other := newRig(2)
	other.create(t, "another")
	names := []string{"/dev/nvme1n1", "/dev/nvme0n1", "/tmp/x"}
	orders := 0
	var permute func(done, rest []Found)
	permute = func(done, rest []Found) {
		if len(rest) > 0 {
			for i, f := range rest {
				permute(append(slices.Clone(done), f), slices.Delete(slices.Clone(rest), i, i+1))
			}
			return
		}
		orders++
		for i := range done {
			done[i].Path = names[i]
		}
		sets := Assemble(append(slices.Insert(done, 1, Found{Path: "/dev/blank"}), other.found(t)...))
		if len(sets) != 2 || sets[0].Reference.Name != "another" || sets[1].Standing != Whole {
			t.Fatalf("%v", describe(sets))
		}
		checkSet(t, sets[1])
		for slot, f := range sets[1].Members() {
			if f.Drive != found[slot].Drive {
				t.Errorf("slot %d is %s, want %s", slot, f.Drive, found[slot].Drive)
			}
		}
	}
	permute(nil, found)
	if orders != 6 {
		t.Errorf("%d orders of 3 devices", orders)
	}
}

// TestAssemble has what may be wrong with a volume, and what may be and is none.
func TestAssemble(t *testing.T) {
	for _, c := range []struct {
		what   string
		disks  func(r rig)
		found  func(f []Found) []Found
		want   Standing
		strays int
		// words are in the problem of this number.
		words []string
	}{
		{"as it should be", nil, nil, Whole, 0, nil},
		{"copy B lost", func(r rig) { delete(r[1].blocks, OffsetB(r[1].size)) }, nil, Whole, 0, nil},
		{"copy A torn", func(r rig) { clear(r[1].blocks[copyA][600:]); r[1].blocks[copyA][700] = 1 }, nil, Whole, 0, nil},
		{"all copies B lost", func(r rig) {
			for _, d := range r {
				delete(d.blocks, OffsetB(d.size))
			}
		}, nil, Whole, 0, nil},
		{"forming beside active", func(r rig) {
			for _, d := range r[:2] {
				rewrite(t, d, func(sb *Superblock) { sb.State, sb.Sequence = Forming, sb.Sequence-1 })
			}
		}, nil, Whole, 0, nil},
		{"a destruction that was cut", func(r rig) {
			rewrite(t, r[2], func(sb *Superblock) { sb.State = Forming })
		}, nil, Whole, 0, nil},
		{"all forming", func(r rig) {
			for _, d := range r {
				rewrite(t, d, func(sb *Superblock) { sb.State = Forming })
			}
		}, nil, Unfinished, 0, nil},
		{"all forming, one missing", func(r rig) {
			for _, d := range r {
				rewrite(t, d, func(sb *Superblock) { sb.State = Forming })
			}
		}, func(f []Found) []Found { return f[:2] }, Unfinished, 0, nil},

		{"missing", nil, func(f []Found) []Found { return slices.Delete(f, 1, 2) }, Incomplete, 0,
			[]string{"member 1 is missing (UUID ", ", 9437184 bytes); connect its drive"}},
		{"all but one missing", nil, func(f []Found) []Found { return f[1:2] }, Incomplete, 0, []string{"member 0 is missing"}},
		{"two paths of one drive", nil, func(f []Found) []Found {
			again := f[1]
			again.Path = "/dev/other"
			return append(f, again)
		}, Whole, 0, nil},
		{"a clone", nil, func(f []Found) []Found {
			again := f[1]
			again.Path, again.Drive = "/dev/clone", "drive 9"
			return append(f, again)
		}, Incomplete, 0, []string{"member 1 twice: a copy of /dev/clone on another drive"}},
		{"a clone in place of a member", nil, func(f []Found) []Found {
			f[2].Label, f[2].Drive = f[1].Label, "drive 9"
			return f
		}, Incomplete, 0, []string{"member 1 twice", "/dev/d1"}},
		{"stale", func(r rig) {
			rewrite(t, r[1], func(sb *Superblock) { sb.Sequence-- })
		}, nil, Incomplete, 1, []string{"/dev/d1: its superblock is stale (sequence 1, the others have 2)"}},
		{"two stale", func(r rig) {
			rewrite(t, r[1], func(sb *Superblock) { sb.Sequence++ })
		}, nil, Incomplete, 2, []string{"/dev/d0: its superblock is stale (sequence 2, the others have 3)"}},
		{"forming of another creation", func(r rig) {
			rewrite(t, r[0], func(sb *Superblock) { sb.Sequence = 9 })
			rewrite(t, r[1], func(sb *Superblock) { sb.Sequence = 9 })
			rewrite(t, r[2], func(sb *Superblock) { sb.State, sb.Sequence = Forming, 7 })
		}, nil, Incomplete, 1, []string{"/dev/d2: its superblock is stale (forming, sequence 7, the others have 9)"}},
		{"forming, newer than active", func(r rig) {
			rewrite(t, r[2], func(sb *Superblock) { sb.State, sb.Sequence = Forming, 3 })
		}, nil, Incomplete, 1, []string{"/dev/d2: its superblock is stale (forming, sequence 3, the others have 2)"}},
		{"forming of two creations", func(r rig) {
			for i, d := range r {
				rewrite(t, d, func(sb *Superblock) { sb.State, sb.Sequence = Forming, uint64(3*i+1) })
			}
		}, nil, Unfinished, 2, []string{"/dev/d0: its superblock is stale"}},
		{"another name", func(r rig) {
			rewrite(t, r[1], func(sb *Superblock) { sb.Name = "other" })
		}, nil, Incomplete, 1, []string{"contradicts"}},
		{"another chunk", func(r rig) {
			rewrite(t, r[1], func(sb *Superblock) { sb.Chunk, sb.DataSize = 4096, DataSize(sb.Own().Size, 4096) })
		}, nil, Incomplete, 1, []string{"contradicts"}},
		{"another time", func(r rig) {
			rewrite(t, r[1], func(sb *Superblock) { sb.Created = sb.Created.Add(1) })
		}, nil, Incomplete, 1, []string{"contradicts"}},
		{"another size in the table", func(r rig) {
			rewrite(t, r[1], func(sb *Superblock) { sb.Members[2].Size += mib })
		}, nil, Incomplete, 1, []string{"contradicts"}},
		{"another member in the table", func(r rig) {
			rewrite(t, r[1], func(sb *Superblock) { sb.Members[0].UUID[3]++ })
		}, nil, Incomplete, 1, []string{"contradicts"}},
		{"a longer table", func(r rig) {
			rewrite(t, r[2], func(sb *Superblock) {
				sb.Members = append(sb.Members, Member{UUID: sb.UUID, Size: 8 * mib})
			})
		}, nil, Incomplete, 1, []string{"contradicts"}},
		{"another block", nil, func(f []Found) []Found { f[0].BlockSize = 4096; return f }, Incomplete, 1,
			[]string{"/dev/d0: its logical block is 4096 bytes, and was 512"}},
		{"a smaller block", func(r rig) {
			rewrite(t, r[0], func(sb *Superblock) { sb.BlockSize = 4096 })
		}, nil, Incomplete, 1, []string{"/dev/d0: its logical block is 512 bytes, and was 4096"}},
		{"copy A overwritten", func(r rig) { delete(r[1].blocks, copyA) }, nil, Incomplete, 1,
			[]string{"/dev/d1: copy A was overwritten by something else", "pollux inspect"}},
		{"both copies overwritten", func(r rig) { clear(r[1].blocks) }, func(f []Found) []Found { return slices.Delete(f, 1, 2) },
			Incomplete, 0, []string{"member 1 is missing"}},
		{"shrunk", func(r rig) { r[2].size -= mib }, nil, Incomplete, 1, []string{"/dev/d2: has 9437184 bytes, and had 10485760"}},
		{"shrunk by a block", func(r rig) { r[2].size -= BlockSize }, nil, Incomplete, 1, []string{"restore its size"}},
		{"all of it shrunk", func(r rig) {
			for _, d := range r {
				d.size -= mib
			}
		}, nil, Incomplete, 3, []string{"/dev/d0: has 7340032 bytes"}},
		{"copies of two members", func(r rig) { r[1].blocks[OffsetB(r[1].size)] = r[0].blocks[copyA] }, nil, Incomplete, 1,
			[]string{"/dev/d1: the two copies are of different volumes or members"}},
		{"copy A invalid", func(r rig) { r[1].blocks[copyA][atLayout]++; seal(r[1].blocks[copyA]) }, nil, Incomplete, 1,
			[]string{"/dev/d1: superblock of pollux, and no copy of it is valid"}},
		{"copy A newer", func(r rig) { r[1].blocks[copyA][atMajor]++; seal(r[1].blocks[copyA]) }, nil, Incomplete, 1,
			[]string{"/dev/d1: made by a newer pollux"}},
		{"copy B newer", func(r rig) {
			b := r[1].blocks[OffsetB(r[1].size)]
			b[atFeatures]++
			seal(b)
		}, nil, Incomplete, 1, []string{"/dev/d1: made by a newer pollux"}},
		{"forming, and one overwritten that was active", func(r rig) {
			for _, d := range r {
				rewrite(t, d, func(sb *Superblock) { sb.State = Forming })
			}
			rewrite(t, r[1], func(sb *Superblock) { sb.State = Active })
			delete(r[1].blocks, copyA)
		}, nil, Incomplete, 1, []string{"/dev/d1: copy A was overwritten"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			found := with(t, c.disks)
			if c.found != nil {
				found = c.found(found)
			}
			s := one(t, found)
			if s.Standing != c.want || s.Active() != (c.want != Unfinished) || len(s.Strays) != c.strays {
				t.Errorf("%v", describe([]*Set{s}))
			}
			var texts []string
			for _, p := range s.Problems {
				texts = append(texts, p.String())
			}
			all := strings.Join(texts, "\n")
			if (len(c.words) == 0) != (all == "") {
				t.Errorf("problems: %s", all)
			}
			for _, w := range c.words {
				if !strings.Contains(all, w) {
					t.Errorf("problems do not say %q: %s", w, all)
				}
			}
			// Nothing depends on the order in which devices were found.
			slices.Reverse(found)
			if again := one(t, found); strings.Join(describe([]*Set{again}), "") != strings.Join(describe([]*Set{s}), "") {
				t.Errorf("the other way round: %v\nwas %v", describe([]*Set{again}), describe([]*Set{s}))
			}
		})
	}
}

// Devices of another volume make a set of their own, which is no reason for this
// one to be less whole; and a member swapped for one of another volume is missing.
func TestAssembleForeignMember(t *testing.T) {
	a, b := newRig(2), newRig(2)
	one, two := a.create(t, "same"), b.create(t, "same")
	rename := func(f []Found, prefix string) []Found {
		for i := range f {
			f[i].Path, f[i].Drive = prefix+f[i].Path, prefix+f[i].Drive
		}
		return f
	}
	found := append(rename(a.found(t), "a"), rename(b.found(t), "b")...)
	sets := Assemble(found)
	if len(sets) != 2 || sets[0].Standing != Whole || sets[1].Standing != Whole || sets[0].UUID.String() >= sets[1].UUID.String() {
		t.Fatalf("two volumes of one name: %v", describe(sets))
	}
	ids := map[uuid.UUID]bool{sets[0].UUID: true, sets[1].UUID: true}
	if !maps.Equal(ids, map[uuid.UUID]bool{one.UUID: true, two.UUID: true}) {
		t.Errorf("UUIDs %v, want %v and %v", ids, one.UUID, two.UUID)
	}
	sets = Assemble([]Found{found[0], found[3]})
	if len(sets) != 2 {
		t.Fatalf("one member of each: %v", describe(sets))
	}
	for _, s := range sets {
		checkSet(t, s)
		if s.Standing != Incomplete || len(s.Problems) != 1 || !strings.Contains(s.Problems[0].Text, "is missing") {
			t.Errorf("one member of each: %v", describe(sets))
		}
	}
	if sets := Assemble(nil); len(sets) != 0 {
		t.Errorf("of nothing: %v", describe(sets))
	}
}

// TestCreatable is what may be created over: all that is no volume.
func TestCreatable(t *testing.T) {
	formingAll := func(r rig) {
		for _, d := range r {
			rewrite(t, d, func(sb *Superblock) { sb.State = Forming })
		}
	}
	for _, c := range []struct {
		what  string
		disks func(r rig)
		found func(f []Found) []Found
		// words are in the reason against the first device found; "" is no reason.
		words string
		inUse bool
	}{
		{"a member", nil, nil, "member 0 of volume vol (UUID ", true},
		{"a member whose others are missing", nil, func(f []Found) []Found { return f[:1] }, "pollux destroy", true},
		{"a clone of a member", nil, func(f []Found) []Found {
			again := f[0]
			again.Path, again.Drive = "/dev/clone", "drive 9"
			return append([]Found{again}, f...)
		}, "member 0 of volume vol", true},
		{"a stale member", func(r rig) { rewrite(t, r[0], func(sb *Superblock) { sb.Sequence-- }) }, nil, "member 0 of volume vol", true},
		{"a member that shrank", func(r rig) { r[0].size -= mib }, nil, "member 0 of volume vol", true},
		{"a member without copy B", func(r rig) { delete(r[0].blocks, OffsetB(r[0].size)) }, nil, "member 0 of volume vol", true},
		{"a forming member of a volume", func(r rig) {
			rewrite(t, r[0], func(sb *Superblock) { sb.State, sb.Sequence = Forming, 1 })
		}, nil, "member 0 of volume vol", true},
		// Its copy B went bad before its promotion was completed: it is a member of a
		// whole volume all the same.
		{"a forming member of a volume, without copy B", func(r rig) {
			rewrite(t, r[0], func(sb *Superblock) { sb.State, sb.Sequence = Forming, 1 })
			delete(r[0].blocks, OffsetB(r[0].size))
		}, nil, "member 0 of volume vol", true},
		{"blank", func(r rig) { clear(r[0].blocks) }, nil, "", false},
		{"never finished", formingAll, nil, "", false},
		{"never finished, the others missing", formingAll, func(f []Found) []Found { return f[:1] },
			"whose other members are not all here", false},
		{"never finished, without copy B, the others missing", func(r rig) {
			formingAll(r)
			delete(r[0].blocks, OffsetB(r[0].size))
		}, func(f []Found) []Found { return f[:1] }, "", false},
		{"the first write of a creation", func(r rig) {
			delete(r[0].blocks, OffsetB(r[0].size))
			r[0].blocks[copyA][999]++
		}, nil, "", false},
		{"copy A overwritten", func(r rig) { delete(r[0].blocks, copyA) }, nil, "only copy B is left", false},
		{"copies of two members", func(r rig) { r[0].blocks[OffsetB(r[0].size)] = r[1].blocks[copyA] }, nil, "member 0 of volume vol", true},
		{"both copies damaged", func(r rig) {
			r[0].blocks[copyA][999]++
			r[0].blocks[OffsetB(r[0].size)][999]++
		}, nil, "no copy of it is valid", false},
		{"newer", func(r rig) {
			for _, b := range r[0].blocks {
				b[atMajor]++
				seal(b)
			}
		}, nil, "made by a newer pollux", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			found := with(t, c.disks)
			if c.found != nil {
				found = c.found(found)
			}
			reason, inUse := Creatable(found[0], Assemble(found))
			if inUse != c.inUse || (reason == "") != (c.words == "") || !strings.Contains(reason, c.words) {
				t.Errorf("%q, in use %v; want %q, %v", reason, inUse, c.words, c.inUse)
			}
		})
	}
	// A device of a set that is not among those given is not assumed to be free.
	if reason, inUse := Creatable(with(t, nil)[0], nil); reason == "" || inUse {
		t.Errorf("without sets: %q, %v", reason, inUse)
	}
}
