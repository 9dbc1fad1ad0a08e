// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
	"pollux/poller"
)

// OpenOptions are those of Open.
type OpenOptions struct {
	// Volume is a name or a UUID; "" is the only volume that Where has.
	Volume string
	Where  Where
	// Write opens for reading and writing and claims the members.
	Write bool
	// Force opens for writing although a member has a foreign signature. It wipes
	// nothing.
	Force   bool
	Polling poller.Polling
}

// Opened is a volume whose members are open and locked.
type Opened struct {
	superblock.Superblock
	// Members are by slot, each as the data of one device for every path to the drive
	// that was found. Closing them gives the locks up.
	Members [][]*poller.Disk
}

// Close closes all disks.
func (o *Opened) Close() error {
	var errs []error
	for _, paths := range o.Members {
		for _, d := range paths {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}

// Open finds a volume and opens its members. Where it writes it completes a
// creation that was cut and repairs torn superblocks, after all checks have
// passed.
func Open(ctx context.Context, opts OpenOptions) (_ *Opened, err error) {
	list, err := Search(ctx, opts.Where)
	if err != nil {
		return nil, err
	}
	set, err := list.Find(opts.Volume)
	if err != nil {
		return nil, err
	}
	if err := list.whole(set); err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range slices.Concat(set.Slots...) {
		paths = append(paths, f.Path)
	}
	members, err := openMembers(paths, opts.Write)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", set.Reference.Name, err)
	}
	o := &Opened{}
	taken := 0 // by a disk, which closes its device
	defer func() {
		if err != nil {
			_ = o.Close()
			_ = closeAll(members[taken:])
		}
	}()
	if set, err = confirm(set, members); err != nil {
		return nil, err
	}
	o.Superblock = *set.Reference
	if opts.Write && !opts.Force {
		if err := refuseForeign(set, members); err != nil {
			return nil, err
		}
	}
	// One path of each drive is enough to write superblocks.
	var targets []superblock.Target
	for slot, paths := range set.Slots {
		drive := &drive{write: opts.Write, label: members[taken].Label}
		targets = append(targets, superblock.Target{Device: members[taken].dev, Superblock: *drive.label.Current})
		o.Members = append(o.Members, nil)
		for range paths {
			disk, err := drive.disk(members[taken], opts.Polling, len(paths) > 1)
			if err != nil {
				return nil, fmt.Errorf("volume %s: member %d: %w", o.Name, slot, err)
			}
			o.Members[slot] = append(o.Members[slot], disk)
			taken++
		}
	}
	if opts.Write {
		if _, err := superblock.Repair(targets, set.Reference.Sequence); err != nil {
			return nil, fmt.Errorf("volume %s: completing its superblocks: %w", o.Name, err)
		}
	}
	return o, nil
}

// OpenBare opens devices for writing without a volume on them, claimed and locked. It
// looks at them through the descriptors that are written through, and unless it is
// forced refuses whatever has a trace of pollux or a foreign signature. Those that
// sameDrive allows (by their index) may be one drive.
func OpenBare(paths []string, opts poller.OpenOptions, force bool, sameDrive func(i, j int) bool) (_ []*poller.Disk, err error) {
	members, err := openMembers(paths, true)
	if err != nil {
		return nil, err
	}
	var disks []*poller.Disk
	defer func() {
		if err != nil {
			for _, d := range disks {
				_ = d.Close()
			}
			_ = closeAll(members[len(disks):])
		}
	}()
	for i, m := range members {
		for j, other := range members[:i] {
			if blockdev.Overlaps(m.dev, other.dev) && !sameDrive(i, j) {
				return nil, fmt.Errorf("%s: %w: it is also %s; name every drive once", m.Path, ErrTwice, other.Path)
			}
		}
		signatures, err := foreign(m, nil)
		switch {
		case err != nil:
			return nil, err
		case force:
		case m.Label.Verdict != superblock.Blank:
			return nil, fmt.Errorf("%s: %w: %v; if it is not needed, --force writes over it", m.Path, ErrMember, m.Label.Verdict)
		case len(signatures) > 0:
			return nil, fmt.Errorf("%s: %w: %s; if it is not needed, --force writes over it", m.Path, ErrForeign, listSignatures(signatures))
		}
	}
	for _, m := range members {
		d, err := poller.NewDisk(m.dev, opts)
		if err != nil {
			return nil, err
		}
		disks = append(disks, d)
	}
	return disks, nil
}

// whole says why a volume cannot be opened.
func (l *Listing) whole(s *superblock.Set) error {
	who := fmt.Sprintf("volume %s", s.Reference.Name)
	switch s.Standing {
	case superblock.Whole:
		return nil
	case superblock.Unfinished:
		return fmt.Errorf("%s: %w: its creation or destruction was interrupted; create it again, or pollux destroy %s", who, ErrUnfinished, s.UUID)
	}
	var texts []string
	missing := false
	for _, p := range s.Problems {
		texts = append(texts, p.String())
		missing = missing || p.Path == ""
	}
	text := strings.Join(texts, "; ")
	if missing {
		text += l.unread()
	}
	return fmt.Errorf("%s: %w: %s", who, ErrIncomplete, text)
}

// confirm judges anew what the open descriptors show: names may have come to mean
// other drives since the search. members are in the order of the slots.
func confirm(set *superblock.Set, members []*open) (*superblock.Set, error) {
	found := make([]superblock.Found, len(members))
	for i, m := range members {
		found[i] = m.Found
	}
	for _, again := range superblock.Assemble(found) {
		if again.UUID != set.UUID || again.Standing != superblock.Whole {
			continue
		}
		i := 0
		for slot, paths := range again.Slots {
			for _, f := range paths {
				if members[i].Path != f.Path || len(paths) != len(set.Slots[slot]) {
					return nil, errChanged(set)
				}
				i++
			}
		}
		return again, noneTwice(again, members)
	}
	return nil, errChanged(set)
}

// noneTwice says that members of two slots are one drive, or two paths one device.
func noneTwice(set *superblock.Set, members []*open) error {
	var slots []int
	for slot, paths := range set.Slots {
		slots = append(slots, slices.Repeat([]int{slot}, len(paths))...)
	}
	for i, m := range members {
		for j, other := range members[:i] {
			if slots[i] != slots[j] && blockdev.Overlaps(m.dev, other.dev) || m.dev.ID() == other.dev.ID() {
				return fmt.Errorf("volume %s: %w: %s: the same drive as %s", set.Reference.Name, ErrIncomplete, m.Path, other.Path)
			}
		}
	}
	return nil
}

func errChanged(set *superblock.Set) error {
	return fmt.Errorf("volume %s: %w: its devices changed while it was being opened; try again", set.Reference.Name, ErrIncomplete)
}

func refuseForeign(set *superblock.Set, members []*open) error {
	var errs []error
	for _, m := range members {
		signatures, err := foreign(m, m.Label.Current)
		if err != nil {
			return fmt.Errorf("volume %s: %w", set.Reference.Name, err)
		}
		if len(signatures) > 0 {
			errs = append(errs, fmt.Errorf("volume %s: %s: %w: %s; if it is not needed, open with --force (Options.Force), which wipes nothing, or erase it with wipefs",
				set.Reference.Name, m.Path, ErrForeign, listSignatures(signatures)))
		}
	}
	return errors.Join(errs...)
}
