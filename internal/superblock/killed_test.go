// SPDX-License-Identifier: Apache-2.0

package superblock

import "testing"

// TestModelKilledThenCut kills one process, which loses nothing that it has written,
// lets another one go on from there, and only then cuts the power. What the second
// finds written may never have been synced.
func TestModelKilledThenCut(t *testing.T) {
	create := func(r rig) error {
		for _, s := range Assemble(r.found(t)) {
			if s.Standing == Whole {
				return nil
			}
		}
		members, sequence := r.newMembers(t, "next")
		return Create(members, sequence)
	}
	repair := func(r rig) error {
		for _, s := range Assemble(r.found(t)) {
			if s.Standing == Whole {
				_, err := Repair(r.targets(s), s.Reference.Sequence)
				return err
			}
		}
		return nil
	}
	destroy := func(r rig) error {
		if err := repair(r); err != nil {
			return err
		}
		for _, s := range Assemble(r.found(t)) {
			if err := Destroy(r.targets(s), s.Active(), s.Reference.Sequence); err != nil {
				return err
			}
		}
		return nil
	}
	states := 0
	for _, first := range []struct {
		name string
		run  func(rig) error
	}{{"create", create}, {"destroy", destroy}} {
		r := newRig(2)
		if first.name == "destroy" {
			r.create(t, "vol")
		}
		before := r.clone()
		j, err := r.record(&journal{}, func() error { return first.run(r) })
		if err != nil {
			t.Fatal(err)
		}
		for k := range len(j.ops) + 1 {
			for name, second := range map[string]func(rig) error{"create": create, "repair": repair, "destroy": destroy} {
				now := before.clone()
				for _, o := range j.ops[:k] {
					if o.block != nil {
						now[o.disk].blocks[o.offset] = o.block
					}
				}
				then, err := now.record(&journal{}, func() error { return second(now) })
				if err != nil {
					t.Fatal(err)
				}
				ops := append(append([]op{}, j.ops[:k]...), then.ops...)
				states += cuts(before, ops, nil, func(state string, cut rig) {
					if _, wrong := cut.verdict(t); wrong != "" {
						t.Errorf("%s killed after %d operations, then %s, cut to %s: %s", first.name, k, name, state, wrong)
					}
				})
			}
		}
	}
	t.Logf("%d states, 0 of them neither no volume nor a whole one", states)
}
