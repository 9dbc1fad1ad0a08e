// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// outcome is what a cut may leave of a write that was not durable.
type outcome int

const (
	absent outcome = iota
	done
	tornHead // only the first sector was written
	tornTail // all but the first sector
	// tornWithin the sector that has all that changes with the state: a drive
	// that promises less than a whole sector.
	tornWithin
	outcomes
)

func (o outcome) apply(before, after []byte) []byte {
	switch o {
	case done:
		return after
	case tornHead:
		return append(bytes.Clone(after[:512]), before[512:]...)
	case tornTail:
		return append(bytes.Clone(before[:512]), after[512:]...)
	case tornWithin:
		return append(bytes.Clone(after[:atState]), before[atState:]...)
	}
	return before
}

// cuts calls visit with the disks as every possible cut of a recorded run leaves
// them: at any operation, with every write since the last sync of its disk absent,
// done or torn. before is the rig as it was. lost names disks whose syncs number
// lost (from 0, counted over all) do nothing.
func cuts(before rig, ops []op, lies func(sync int) bool, visit func(state string, r rig)) (states int) {
	seen := map[string]bool{}
	durable := before.clone()
	var open []op
	syncs := 0
	visitAll := func() {
		total := 1
		for range open {
			total *= int(outcomes)
		}
		for code := range total {
			r, c := durable.clone(), code
			for _, o := range open {
				d := r[o.disk]
				d.blocks[o.offset] = outcome(c%int(outcomes)).apply(d.block(o.offset), o.block)
				c /= int(outcomes)
			}
			key := r.key()
			if !seen[key] {
				seen[key] = true
				states++
				visit(key, r)
			}
		}
	}
	visitAll()
	for _, o := range ops {
		if o.block != nil {
			open = append(open, o)
			visitAll()
			continue
		}
		syncs++
		if lies != nil && lies(syncs-1) {
			continue
		}
		rest := open[:0:0]
		for _, w := range open {
			if w.disk == o.disk {
				durable[w.disk].blocks[w.offset] = w.block
			} else {
				rest = append(rest, w)
			}
		}
		open = rest
	}
	visitAll()
	return states
}

// key tells two states of the disks apart by what the copies are.
func (r rig) key() string {
	var b strings.Builder
	for _, d := range r {
		for _, offset := range []int64{copyA, OffsetB(d.size)} {
			block := d.block(offset)
			sb, err := Decode(block)
			switch {
			case sb != nil:
				fmt.Fprintf(&b, " %s:%v%d", sb.Name, sb.State, sb.Sequence)
			case err == ErrNone && bytes.Equal(block, make([]byte, BlockSize)):
				b.WriteString(" -")
			case err == ErrNone:
				b.WriteString(" tail")
			default:
				b.WriteString(" torn")
			}
		}
		b.WriteString(";")
	}
	return b.String()
}

// verdict says what is wrong with the disks after a cut: they must be free for
// another creation, or a whole volume. It says which it was.
func (r rig) verdict(t testing.TB) (whole bool, wrong string) {
	found := r.found(t)
	sets := Assemble(found)
	for _, s := range sets {
		if s.Standing == Whole {
			whole = true
		}
	}
	if whole {
		if len(sets) != 1 || len(sets[0].Problems) != 0 {
			return whole, fmt.Sprintf("a whole volume and more: %v", describe(sets))
		}
		for _, f := range found {
			if reason, inUse := Creatable(f, sets); !inUse {
				return whole, f.Path + " could be created over: " + reason
			}
		}
		return whole, ""
	}
	for _, f := range found {
		if reason, _ := Creatable(f, sets); reason != "" {
			return false, "neither no volume nor a whole one: " + f.Path + ": " + reason
		}
	}
	return false, ""
}

// protocols are the runs that are cut, each on disks that prepare has made.
var protocols = []struct {
	name    string
	prepare func(testing.TB, rig)
	run     func(testing.TB, rig) error
	// starts and ends say whether there is a volume before and after.
	starts, ends bool
}{
	{"create", func(testing.TB, rig) {}, func(t testing.TB, r rig) error {
		members, sequence := r.newMembers(t, "new")
		return Create(members, sequence)
	}, false, true},
	{"create over an unfinished one", func(t testing.TB, r rig) {
		sbs := r.superblocks(t, "old")
		for _, c := range []which{inA, inB} {
			if err := put(r.targetsOf(sbs), Forming, 5, c); err != nil {
				t.Fatal(err)
			}
		}
	}, func(t testing.TB, r rig) error {
		members, sequence := r.newMembers(t, "new")
		return Create(members, sequence)
	}, false, true},
	{"destroy", func(t testing.TB, r rig) { r.create(t, "vol") }, func(t testing.TB, r rig) error {
		s := r.whole(t)
		return Destroy(r.targets(s), true, s.Reference.Sequence)
	}, true, false},
}

func (r rig) targetsOf(sbs []Superblock) []Target {
	all := make([]Target, len(r))
	for i, d := range r {
		all[i] = Target{d, sbs[i]}
	}
	return all
}

// TestModelCuts cuts the protocols everywhere, and what repairs a cut one again.
func TestModelCuts(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, p := range protocols {
			t.Run(fmt.Sprintf("%s/%d", p.name, n), func(t *testing.T) {
				r := newRig(n)
				p.prepare(t, r)
				before := r.clone()
				j, err := r.record(&journal{}, func() error { return p.run(t, r) })
				if err != nil {
					t.Fatal(err)
				}
				if whole, wrong := before.verdict(t); whole != p.starts || wrong != "" {
					t.Fatal("before: ", whole, wrong)
				}
				if whole, wrong := r.verdict(t); whole != p.ends || wrong != "" {
					t.Fatal("after: ", whole, wrong)
				}
				wholes, nones, again := 0, 0, 0
				states := cuts(before, j.ops, nil, func(state string, cut rig) {
					whole, wrong := cut.verdict(t)
					if wrong != "" {
						t.Errorf("%s: %s", state, wrong)
						return
					}
					if !whole {
						nones++
						cut.clone().create(t, "again")
						return
					}
					wholes++
					again += cutRepair(t, state, cut)
					cutDestroy(t, state, cut)
				})
				t.Logf("%d operations, %d states: %d no volume, %d a whole one, 0 neither; %d states of repairs", len(j.ops), states, nones, wholes, again)
				if wholes == 0 || nones == 0 {
					t.Error("the cuts did not reach both sides")
				}
			})
		}
	}
}

// cutRepair opens a whole volume for writing, cut everywhere: it stays whole.
func cutRepair(t *testing.T, state string, r rig) int {
	before := r.clone()
	s := r.whole(t)
	j, err := r.record(&journal{}, func() error {
		_, err := Repair(r.targets(s), s.Reference.Sequence)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.found(t) {
		l := f.Label
		if l.Verdict != Good || l.A.Superblock.State != Active || l.B.Superblock.State != Active {
			t.Errorf("%s: after repair: %v", state, l.Verdict)
		}
	}
	if changed, err := Repair(r.targets(r.whole(t)), s.Reference.Sequence); changed || err != nil {
		t.Errorf("%s: a second repair: %v, %v", state, changed, err)
	}
	return cuts(before, j.ops, nil, func(inner string, cut rig) {
		if whole, wrong := cut.verdict(t); !whole || wrong != "" {
			t.Errorf("%s: repair cut to %s: %v %s", state, inner, whole, wrong)
		}
	})
}

// cutDestroy destroys what a cut has left.
func cutDestroy(t *testing.T, state string, r rig) {
	s := r.whole(t)
	if err := Destroy(r.targets(s), true, s.Reference.Sequence); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.found(t) {
		if f.Label.Verdict != Blank {
			t.Errorf("%s: destroyed, and %v", state, f.Label.Verdict)
		}
	}
}

// TestModelMutants breaks the order of syncs; the same enumeration must see it.
func TestModelMutants(t *testing.T) {
	for _, n := range []int{2, 3} {
		r := newRig(n)
		before := r.clone()
		j, err := r.record(&journal{}, func() error {
			members, sequence := r.newMembers(t, "new")
			return Create(members, sequence)
		})
		if err != nil {
			t.Fatal(err)
		}
		// Without anything to erase there are four sweeps, each synced once a disk:
		// forming A, forming B, active A, active B.
		for _, m := range []struct {
			name  string
			sweep int
			bad   bool
		}{
			{"forming A and B in one sweep", 0, true},
			{"forming B and active A in one sweep", 1, true},
			// What step 5 demands: all copies A are active before a B is.
			{"active A and B in one sweep", 2, true},
			{"no last sync", 3, false},
		} {
			wrong := 0
			states := cuts(before, j.ops, func(sync int) bool { return sync/n == m.sweep+1 }, func(_ string, cut rig) {
				if _, text := cut.verdict(t); text != "" {
					wrong++
				}
			})
			t.Logf("%d members, %s: %d of %d states wrong", n, m.name, wrong, states)
			if (wrong > 0) != m.bad {
				t.Errorf("%d members, %s: %d states wrong", n, m.name, wrong)
			}
		}
	}
}

// TestCreateFails lets every operation fail: everything is as it was.
func TestCreateFails(t *testing.T) {
	for _, dead := range []bool{false, true} {
		for _, p := range protocols[:2] {
			for at := 1; ; at++ {
				r := newRig(3)
				p.prepare(t, r)
				before := r.clone()
				j, err := r.record(&journal{failAt: at, dead: dead}, func() error { return p.run(t, r) })
				if j.failed < 0 {
					if at < 10 || err != nil {
						t.Fatalf("only %d operations, %v", at, err)
					}
					break
				}
				if err == nil {
					t.Fatalf("operation %d failed unnoticed", at)
				}
				for i := range r {
					if dead && i == j.failed {
						continue // nothing can be put back there
					}
					for offset := range r[i].blocks {
						if !bytes.Equal(r[i].block(offset), before[i].block(offset)) {
							t.Errorf("%s: operation %d failed: disk %d is not as it was at %d", p.name, at, i, offset)
						}
					}
				}
			}
		}
	}
}
