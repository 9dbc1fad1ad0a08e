// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// scribbled is a rig with something in every place where a creation could write by
// mistake.
func scribbled(n int) rig {
	r := newRig(n)
	for _, d := range r {
		for at := int64(0); at < d.size; at += 16 << 10 {
			if at != copyA && at != OffsetB(d.size) {
				d.blocks[at] = bytes.Repeat([]byte{byte(at >> 14), byte(d.index) | 1}, BlockSize/2)
			}
		}
	}
	return r
}

// same fails unless the disks are as they were but at the offsets given.
func same(t *testing.T, before, after rig, but ...int64) {
	t.Helper()
	for i, d := range after {
		offsets := slices.Collect(maps.Keys(d.blocks))
		for offset := range before[i].blocks {
			offsets = append(offsets, offset)
		}
		for _, offset := range offsets {
			if !slices.Contains(but, offset) && !bytes.Equal(d.block(offset), before[i].block(offset)) {
				t.Errorf("disk %d is not as it was at %d", i, offset)
			}
		}
	}
}

func copiesOf(r rig) (offsets []int64) {
	for _, d := range r {
		offsets = append(offsets, copyA, OffsetB(d.size))
	}
	return offsets
}

func TestCreateWritesCopiesAlone(t *testing.T) {
	r := scribbled(3)
	before := r.clone()
	s := r.create(t, "vol")
	same(t, before, r, copiesOf(r)...)
	for i, f := range s.Members() {
		l := f.Label
		if f.Path != r.found(t)[i].Path || l.A.Superblock.State != Active || l.B.Superblock.State != Active ||
			l.A.Superblock.Sequence != 2 || l.B.Superblock.Sequence != 2 {
			t.Errorf("slot %d: %+v", i, l)
		}
	}
	if err := Destroy(r.targets(s), true, s.Reference.Sequence); err != nil {
		t.Fatal(err)
	}
	same(t, before, r)
}

// TestCreateErasesOldPlaces: on devices that have grown, copy B of the old volume
// is not where that of the new one comes.
func TestCreateErasesOldPlaces(t *testing.T) {
	unfinished := func(r rig) {
		r.create(t, "old")
		for _, d := range r {
			rewrite(t, d, func(sb *Superblock) { sb.State, sb.Sequence = Forming, 41 })
		}
	}
	grown := scribbled(2)
	unfinished(grown)
	var old []int64
	for _, d := range grown {
		old = append(old, OffsetB(d.size))
		d.size += 5 * mib
		d.blocks[OffsetB(d.size)] = bytes.Repeat([]byte{7}, BlockSize)
	}
	foreign := Block{Offset: 128 << 10, Data: bytes.Repeat([]byte{0xee}, BlockSize)}
	create := func(r rig) (int64, error) {
		members, sequence := r.newMembers(t, "new")
		members[1].Erase = []Block{foreign}
		return int64(sequence), Create(members, sequence)
	}

	r := grown.clone()
	j, err := r.record(&journal{}, func() error { _, err := create(r); return err })
	if err != nil {
		t.Fatal(err)
	}
	if s := r.whole(t); s.Reference.Name != "new" || s.Reference.Sequence != 43 {
		t.Errorf("%+v", s.Reference)
	}
	for i, d := range r {
		if !bytes.Equal(d.block(old[i]), make([]byte, BlockSize)) {
			t.Errorf("disk %d: the old copy B is still there", i)
		}
	}
	same(t, grown, r, append(append(copiesOf(r), old...), foreign.Offset)...)
	if !bytes.Equal(r[1].block(foreign.Offset), foreign.Data) || bytes.Equal(r[0].block(foreign.Offset), foreign.Data) {
		t.Error("what was to be erased is not what was erased")
	}
	// Copies B go first, and are gone for good before a copy A goes.
	var order []string
	for _, o := range j.ops[2:10] { // behind the syncs of what may have been left
		switch {
		case o.block == nil:
			order = append(order, "sync")
		case o.offset == copyA:
			order = append(order, "A")
		case slices.Contains(old, o.offset):
			order = append(order, "B")
		}
	}
	if got := strings.Join(order, " "); got != "B B sync sync A A sync sync" {
		t.Errorf("erased in the order %s", got)
	}

	// Cut anywhere, there is no volume or a whole one, and no trace of the old one
	// that would say otherwise.
	wholes := 0
	states := cuts(grown, j.ops, nil, func(state string, cut rig) {
		whole, wrong := cut.verdict(t)
		if wrong != "" {
			t.Errorf("%s: %s", state, wrong)
		}
		if whole {
			wholes++
		}
	})
	if wholes == 0 || wholes == states {
		t.Errorf("%d of %d states are whole", wholes, states)
	}

	// Failed anywhere, all of it is as it was: old copies and signatures too.
	for at := 1; ; at++ {
		r := grown.clone()
		j, err := r.record(&journal{failAt: at}, func() error { _, err := create(r); return err })
		if j.failed < 0 {
			if err != nil || at < 15 {
				t.Fatalf("%d operations, %v", at, err)
			}
			break
		}
		if !errors.Is(err, errIO) {
			t.Fatalf("operation %d: %v", at, err)
		}
		same(t, grown, r)
	}
}

// forgetful takes every write and keeps none from the given one on.
type forgetful struct {
	*disk
	keeps int
}

func (d *forgetful) WriteAt(p []byte, off int64) (int, error) {
	if d.keeps--; d.keeps < 0 {
		return len(p), nil
	}
	return d.disk.WriteAt(p, off)
}

func TestCreateNotKept(t *testing.T) {
	for keeps := range 2 {
		r := scribbled(3)
		before := r.clone()
		members, sequence := r.newMembers(t, "vol")
		members[2].Device = &forgetful{r[2], keeps}
		err := Create(members, sequence)
		if !errors.Is(err, ErrNotKept) || !strings.Contains(err.Error(), "member 2") {
			t.Fatalf("a device that keeps %d writes: %v", keeps, err)
		}
		if keeps == 0 {
			same(t, before, r)
		} else {
			same(t, before[:2], r[:2])
		}
	}
}

// A device that cannot be read is found before anything is written.
func TestCreateUnreadable(t *testing.T) {
	r := scribbled(2)
	before := r.clone()
	members, sequence := r.newMembers(t, "vol")
	members[1].Device = badDisk{r[1], []int64{OffsetB(r[1].size)}}
	j, err := r.record(&journal{}, func() error { return Create(members, sequence) })
	if !errors.Is(err, errIO) || len(j.ops) != 0 {
		t.Errorf("%v after %d operations", err, len(j.ops))
	}
	same(t, before, r)
}

// TestDestroyWhatIsLeft: of an incomplete volume what is there is destroyed, in
// whatever state, and nothing else is touched.
func TestDestroyWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		what  string
		wreck func(r rig)
		gone  []int // disks that are not there
		left  []int // disks that are destroyed
		state Standing
	}{
		{"one missing", nil, []int{1}, []int{0, 2}, Incomplete},
		{"two missing", nil, []int{0, 2}, []int{1}, Incomplete},
		{"one overwritten", func(r rig) { delete(r[1].blocks, copyA) }, nil, []int{0, 2}, Incomplete},
		{"one stale", func(r rig) { rewrite(t, r[1], func(sb *Superblock) { sb.Sequence-- }) }, nil, []int{0, 2}, Incomplete},
		{"one without copy B", func(r rig) { delete(r[2].blocks, OffsetB(r[2].size)) }, []int{0}, []int{1, 2}, Incomplete},
		{"one with copy A torn", func(r rig) { r[2].blocks[copyA][999]++ }, []int{0}, []int{1, 2}, Incomplete},
		{"never finished", func(r rig) {
			for _, d := range r {
				rewrite(t, d, func(sb *Superblock) { sb.State = Forming })
			}
		}, []int{0}, []int{1, 2}, Unfinished},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := scribbled(3)
			clean := r.clone()
			r.create(t, "vol")
			if c.wreck != nil {
				c.wreck(r)
			}
			before := r.clone()
			var found []Found
			for i, f := range r.found(t) {
				if !slices.Contains(c.gone, i) {
					found = append(found, f)
				}
			}
			s := one(t, found)
			if s.Standing != c.state {
				t.Fatalf("%v", describe([]*Set{s}))
			}
			if err := Destroy(r.targets(s), s.Active(), s.Reference.Sequence); err != nil {
				t.Fatal(err)
			}
			for i := range r {
				if slices.Contains(c.left, i) {
					same(t, clean[i:i+1], r[i:i+1])
				} else {
					same(t, before[i:i+1], r[i:i+1])
				}
			}
		})
	}
}

// TestDestroyFails: an operation that fails leaves a volume, or what can be
// destroyed again; never anything that needs force.
func TestDestroyFails(t *testing.T) {
	for at := 1; ; at++ {
		r := newRig(3)
		s := r.create(t, "vol")
		j, err := r.record(&journal{failAt: at}, func() error { return Destroy(r.targets(s), true, s.Reference.Sequence) })
		if j.failed < 0 {
			if err != nil || at != 28 { // 3 syncs, 4 sweeps of 3 writes and 3 syncs
				t.Fatalf("%d operations, %v", at, err)
			}
			return
		}
		if !errors.Is(err, errIO) {
			t.Fatalf("operation %d: %v", at, err)
		}
		if _, wrong := r.verdict(t); wrong != "" {
			t.Errorf("operation %d failed: %s", at, wrong)
		}
	}
}

// TestRepairOfGood: nothing is written and nothing synced where all is well.
func TestRepairOfGood(t *testing.T) {
	r := scribbled(3)
	s := r.create(t, "vol")
	before := r.clone()
	var changed bool
	j, err := r.record(&journal{}, func() (err error) {
		changed, err = Repair(r.targets(s), s.Reference.Sequence)
		return err
	})
	if changed || err != nil || j.count != 0 {
		t.Errorf("%v, %v, %d writes and syncs", changed, err, j.count)
	}
	same(t, before, r)
}

// TestRepair: what is bad is written, on that member alone, and made durable.
func TestRepair(t *testing.T) {
	rng := random(t)
	for range 60 {
		r := scribbled(3)
		r.create(t, "vol")
		good := r.clone()
		wrecked := 0
		for _, d := range r {
			d := d
			for _, wreck := range []func(){
				func() { delete(d.blocks, OffsetB(d.size)) },
				func() { d.blocks[OffsetB(d.size)] = bytes.Repeat([]byte{0xa5}, BlockSize) },
				func() { b := bytes.Clone(d.blocks[copyA]); b[100+rng.IntN(300)] ^= 4; d.blocks[copyA] = b },
				func() {
					rewrite(t, d, func(sb *Superblock) { sb.State, sb.Sequence = Forming, sb.Sequence-1 })
				},
			}[rng.IntN(4):][:rng.IntN(2)] {
				if d.index != 0 || rng.IntN(2) == 0 {
					wreck()
					wrecked++
				}
			}
		}
		if !anyActive(t, r) {
			continue
		}
		s := r.whole(t)
		before := r.clone()
		j, err := r.record(&journal{}, func() error {
			changed, err := Repair(r.targets(s), s.Reference.Sequence)
			if changed != (wrecked > 0) {
				t.Errorf("%d members wrecked, changed: %v", wrecked, changed)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, good, r)
		durable := map[int]bool{}
		for _, o := range slices.Backward(j.ops) {
			if o.block == nil {
				durable[o.disk] = true
				continue
			}
			if !durable[o.disk] {
				t.Errorf("disk %d is not synced after a write at %d", o.disk, o.offset)
			}
			if bytes.Equal(before[o.disk].block(o.offset), o.block) {
				t.Errorf("disk %d: a good copy is written at %d", o.disk, o.offset)
			}
		}
	}
}

func anyActive(t *testing.T, r rig) bool {
	for _, f := range r.found(t) {
		if f.Label.Current.State == Active {
			return true
		}
	}
	return false
}

// TestModelCutTwice cuts what is done about a cut: the next creation, a destruction
// of what was never finished, and a destruction of what turned out whole.
func TestModelCutTwice(t *testing.T) {
	runs := map[string]func(r rig, name string) error{
		"create": func(r rig, name string) error {
			members, sequence := r.newMembers(t, name)
			return Create(members, sequence)
		},
		"destroy": func(r rig, _ string) error {
			for _, s := range Assemble(r.found(t)) {
				if s.Standing == Whole {
					if _, err := Repair(r.targets(s), s.Reference.Sequence); err != nil {
						return err
					}
				}
				if err := Destroy(r.targets(s), s.Active(), s.Reference.Sequence); err != nil {
					return err
				}
			}
			return nil
		},
	}
	seen := map[string]bool{}
	for first, run := range runs {
		r := newRig(2)
		if first == "destroy" {
			r.create(t, "vol")
		}
		before := r.clone()
		j, err := r.record(&journal{}, func() error { return run(r, "vol") })
		if err != nil {
			t.Fatal(err)
		}
		once, twice := 0, 0
		cuts(before, j.ops, nil, func(state string, cut rig) {
			once++
			whole, _ := cut.verdict(t)
			for second, run := range runs {
				if whole && second == "create" {
					continue // refused
				}
				after := cut.clone()
				j, err := after.record(&journal{}, func() error { return run(after, "next") })
				if err != nil {
					t.Fatal(err)
				}
				twice += cuts(cut, j.ops, nil, func(inner string, cut rig) {
					if seen[inner] {
						return
					}
					seen[inner] = true
					if _, wrong := cut.verdict(t); wrong != "" {
						t.Errorf("%s cut to %s, %s cut to %s: %s", first, state, second, inner, wrong)
					}
				})
			}
		})
		t.Logf("%s: %d states of one cut, %d of a second one", first, once, twice)
	}
	t.Logf("%d different ones, 0 neither", len(seen))
}

// TestHistories runs random creations and destructions that are cut at random, one
// after the other: there is always no volume or a whole one, and force is never
// needed.
func TestHistories(t *testing.T) {
	rng := random(t)
	volumes, none := 0, 0
	for range 60 {
		r := newRig(1 + rng.IntN(4))
		for range 12 {
			before := r.clone()
			j, err := r.record(&journal{}, func() error { return step(t, rng, r) })
			if err != nil {
				t.Fatal(err)
			}
			r = randomCut(rng, before, j.ops)
			whole, wrong := r.verdict(t)
			if wrong != "" {
				t.Fatal(wrong, r.key())
			}
			if whole {
				volumes++
			} else {
				none++
			}
		}
	}
	if volumes < 20 || none < 20 {
		t.Errorf("%d times a volume, %d times none", volumes, none)
	}
}

// step does what can be done: it creates where there is no volume, repairs one that
// there is, and destroys either.
func step(t *testing.T, rng *rand.Rand, r rig) error {
	sets := Assemble(r.found(t))
	for _, s := range sets {
		var err error
		if s.Standing == Whole {
			_, err = Repair(r.targets(s), s.Reference.Sequence)
		}
		if err == nil && rng.IntN(2) == 0 {
			err = Destroy(r.targets(s), s.Active(), s.Reference.Sequence)
		} else if s.Standing != Whole {
			continue
		}
		return err
	}
	members, sequence := r.newMembers(t, "vol")
	return Create(members, sequence)
}

// randomCut returns the disks as a cut after some of the operations leaves them,
// each write that was not synced absent, done or torn.
func randomCut(rng *rand.Rand, before rig, ops []op) rig {
	if len(ops) == 0 {
		return before
	}
	ops = ops[:rng.IntN(len(ops)+1)]
	r := before.clone()
	for i, o := range ops {
		if o.block == nil {
			continue
		}
		result := outcome(rng.IntN(int(outcomes)))
		for _, later := range ops[i:] {
			if later.block == nil && later.disk == o.disk {
				result = done
			}
		}
		d := r[o.disk]
		d.blocks[o.offset] = result.apply(d.block(o.offset), o.block)
	}
	return r
}
