// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
)

// Destruction is one that is prepared: what is left of a volume is open and locked.
type Destruction struct {
	// Set is the volume. Its Slots are what is destroyed. Of its Strays only copy B of
	// those is erased whose copy A somebody else has overwritten; the others are left
	// alone.
	Set *superblock.Set

	// members are all devices, drives one for each drive: those of targets, then those
	// of which only copy B is left.
	members, drives []*open
	targets         []superblock.Target
}

// PrepareDestroy finds a volume by name or UUID, whole, unfinished or what is left
// of one, opens its members and locks them. Nothing is written before Commit.
func PrepareDestroy(ctx context.Context, volume string, where Where) (_ *Destruction, err error) {
	list, set, err := remains(ctx, volume, where)
	if err != nil {
		return nil, err
	}
	who := "volume " + set.Reference.Name
	var paths []string
	for _, f := range append(slices.Concat(set.Slots...), overwritten(set)...) {
		paths = append(paths, f.Path)
	}
	d := &Destruction{Set: set}
	if d.members, err = openMembers(paths, true); err != nil {
		return nil, fmt.Errorf("%s: %w", who, err)
	}
	first := firstPaths(set)
	for _, m := range d.members {
		before, _ := list.Look(m.Path)
		if !same(m.Look, before) {
			_ = d.Close()
			return nil, errChanged(set)
		}
		if !first[m.Path] {
			continue // another path to a drive that is written to over the first
		}
		d.drives = append(d.drives, m)
		if m.Label.Current != nil {
			d.targets = append(d.targets, superblock.Target{Device: m.dev, Superblock: *m.Label.Current})
		}
	}
	return d, nil
}

// firstPaths are those over which a destruction writes.
func firstPaths(set *superblock.Set) map[string]bool {
	first := make(map[string]bool)
	for _, found := range set.Slots {
		if len(found) > 0 {
			first[found[0].Path] = true
		}
	}
	for _, f := range overwritten(set) {
		first[f.Path] = true
	}
	return first
}

// same says that a device shows through its open descriptor what the search saw.
func same(now, before Look) bool {
	if now.Info.ID() != before.Info.ID() || now.Label.Verdict != before.Label.Verdict {
		return false
	}
	a, b := now.Label.Named(), before.Label.Named()
	return a != nil && b != nil && bytes.Equal(a.Encode(), b.Encode())
}

// overwritten are the strays of which somebody else has overwritten copy A.
func overwritten(set *superblock.Set) (found []superblock.Found) {
	for _, f := range set.Strays {
		if f.Label.Verdict == superblock.Overwritten {
			found = append(found, f)
		}
	}
	return found
}

// remains finds what is left of a volume, a drive for a slot at most.
func remains(ctx context.Context, volume string, where Where) (*Listing, *superblock.Set, error) {
	list, err := Search(ctx, where)
	if err != nil {
		return nil, nil, err
	}
	set, err := list.Find(volume)
	if err != nil {
		return nil, nil, err
	}
	who := "volume " + set.Reference.Name
	left := len(overwritten(set))
	for slot, found := range set.Slots {
		if !superblock.OneDrive(found) {
			return nil, nil, fmt.Errorf("%s: %w: member %d is both %s and %s; disconnect one of the two", who, ErrIncomplete, slot, found[0].Path, found[1].Path)
		}
		left += len(found)
	}
	if left == 0 {
		return nil, nil, fmt.Errorf("%s: %w: nothing of it is left but on %s, which is no member as it is; see it with pollux inspect, and docs/superblock.md on erasing by hand",
			who, ErrIncomplete, strings.Join(pathsOf(set.Strays), ", "))
	}
	return list, set, nil
}

// PlanDestroy finds what PrepareDestroy would, read-only and without a lock.
// Problems are why it would be refused, as far as that can be seen without trying.
func PlanDestroy(ctx context.Context, volume string, where Where) (set *superblock.Set, problems []error, err error) {
	list, set, err := remains(ctx, volume, where)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range append(slices.Concat(set.Slots...), overwritten(set)...) {
		if look, _ := list.Look(f.Path); look.Locked {
			problems = append(problems, errLocked(f.Path))
			continue
		}
		dev, err := blockdev.Open(f.Path, blockdev.Mode{})
		if err != nil {
			return nil, nil, err
		}
		if err := dev.InUse(); err != nil {
			problems = append(problems, err)
		}
		_ = dev.Close() // nothing was written
	}
	return set, problems, nil
}

func errLocked(path string) error {
	return fmt.Errorf("%s: %w: another pollux uses it; stop that first", path, blockdev.ErrBusy)
}

func pathsOf(found []superblock.Found) (paths []string) {
	for _, f := range found {
		paths = append(paths, f.Path)
	}
	return paths
}

// Commit destroys what is there of the volume. Its data stays on the drives, but
// nothing says any more how it belongs together.
func (d *Destruction) Commit() error {
	ref := d.Set.Reference
	var err error
	if d.Set.Standing == superblock.Whole {
		_, err = superblock.Repair(d.targets, ref.Sequence)
	}
	if err == nil {
		err = superblock.Destroy(d.targets, d.Set.Active(), ref.Sequence)
	}
	for _, m := range d.drives {
		if err == nil {
			err = superblock.Forget(m.dev, m.Label)
		}
	}
	if err != nil {
		return fmt.Errorf("volume %s: not destroyed altogether: %w; destroy it again", ref.Name, err)
	}
	return nil
}

// Close gives the devices back.
func (d *Destruction) Close() error { return closeAll(d.members) }
