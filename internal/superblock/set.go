// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Found is a device with a trace of pollux on it.
type Found struct {
	// Path is what to call the device.
	Path string
	// Drive tells drives apart: two devices with one Drive are two ways to the
	// same bytes, or claim to be. Way tells these ways apart.
	Drive string
	Way   Way
	// BlockSize is the device's logical block now, in bytes.
	BlockSize int64
	Label     Label
}

// Way is the NVMe controller over which a device reaches its drive.
type Way struct {
	// Subsystem is the qualified name of the subsystem, "" if unknown.
	Subsystem string
	// Controller is the identifier of the controller in it, if Known.
	Controller int
	Known      bool
}

// contradicts says why two devices are not two ways to one drive, although both claim to
// be it, "" if nothing speaks against that. Drives leave the factory with one
// identifier for all of them, and disks of virtual machines are copied.
func (w Way) contradicts(o Way) string {
	switch {
	case w.Subsystem != "" && o.Subsystem != "" && w.Subsystem != o.Subsystem:
		return "in another NVMe subsystem"
	case w.Known && o.Known && w.Controller == o.Controller:
		return "by a controller of the same ID"
	}
	return ""
}

// Standing is how much of a volume there is.
type Standing int

const (
	// Whole: every slot once, and a volume.
	Whole Standing = iota
	// Incomplete: a volume of which something is missing or wrong.
	Incomplete
	// Unfinished: a creation or destruction that was cut. Not a volume.
	Unfinished
)

// String returns the word that the command line uses.
func (s Standing) String() string {
	return [...]string{"whole", "incomplete", "unfinished"}[s]
}

// Problem is what is wrong with one member.
type Problem struct {
	// Path is the device; "" where it is missing.
	Path string
	// Slot is that of the member, -1 where it is unknown.
	Slot int
	// Text says what is wrong, without the path.
	Text string
}

// String returns one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Text
	}
	return p.Path + ": " + p.Text
}

// Set is all that was found of one volume.
type Set struct {
	UUID uuid.UUID
	// Reference is the superblock that speaks for the volume.
	Reference *Superblock
	Standing  Standing
	// Slots has what was found for each slot: when all is well one device, or all the
	// paths to one drive.
	Slots [][]Found
	// Strays are devices that name the volume and cannot be taken for a member.
	Strays []Found
	// Problems is empty for a whole volume. What opening for writing repairs is
	// none.
	Problems []Problem
}

// Active says that the set is a volume, whole or not.
func (s *Set) Active() bool { return s.Standing != Unfinished }

// Members returns one device for each slot of a whole set, of several paths the first.
func (s *Set) Members() []Found {
	members := make([]Found, len(s.Slots))
	for i, found := range s.Slots {
		members[i] = found[0]
	}
	return members
}

// Devices returns all that was found, by slot, the strays last.
func (s *Set) Devices() []Found {
	return append(slices.Concat(s.Slots...), s.Strays...)
}

// Assemble groups devices by the volume that they name and judges each group.
// Devices that name none are left out. The sets are in the order of their names,
// of one name in that of their UUIDs.
func Assemble(found []Found) []*Set {
	groups := make(map[uuid.UUID][]Found)
	for _, f := range found {
		if sb := f.Label.Named(); sb != nil {
			groups[sb.UUID] = append(groups[sb.UUID], f)
		}
	}
	sets := make([]*Set, 0, len(groups))
	for id, group := range groups {
		slices.SortFunc(group, func(a, b Found) int { return strings.Compare(a.Path, b.Path) })
		sets = append(sets, judge(id, group))
	}
	slices.SortFunc(sets, func(a, b *Set) int {
		if c := strings.Compare(a.Reference.Name, b.Reference.Name); c != 0 {
			return c
		}
		return strings.Compare(a.UUID.String(), b.UUID.String())
	})
	return sets
}

// judge makes a set of the devices that name one volume.
func judge(id uuid.UUID, group []Found) *Set {
	s := &Set{UUID: id, Reference: reference(group)}
	ref := s.Reference
	s.Slots = make([][]Found, len(ref.Members))
	active, wrong := false, false
	for _, f := range group {
		sb := f.Label.Current
		if sb != nil && sb.State == Active {
			active = true
		}
		if text := s.fault(f); text != "" {
			slot := -1
			if sb != nil {
				slot = sb.Slot
			}
			s.problem(f.Path, slot, "%s", text)
			s.Strays = append(s.Strays, f)
			wrong = true
			continue
		}
		s.Slots[sb.Slot] = append(s.Slots[sb.Slot], f)
	}
	missing := false
	for slot, found := range s.Slots {
		switch {
		case len(found) == 0:
			missing = true
			if active {
				m := ref.Members[slot]
				s.problem("", slot, "member %d is missing (UUID %s, %d bytes); connect its drive", slot, m.UUID, m.Size)
			}
		case !s.onePerSlot(slot, found):
			wrong = true
		}
	}
	switch {
	case !active && !s.couldHaveBeenActive():
		s.Standing = Unfinished
	case active && !missing && !wrong:
		s.Standing = Whole
	default:
		s.Standing = Incomplete
	}
	return s
}

// couldHaveBeenActive says that a device of the set, whose superblock does not
// count, shows that this was a volume.
func (s *Set) couldHaveBeenActive() bool {
	for _, f := range s.Strays {
		for _, c := range []Copy{f.Label.A, f.Label.B} {
			if c.Superblock != nil && c.Superblock.UUID == s.UUID && c.Superblock.State == Active {
				return true
			}
		}
	}
	return false
}

func (s *Set) problem(path string, slot int, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{Path: path, Slot: slot, Text: fmt.Sprintf(format, args...)})
}

// onePerSlot says that all devices found for a slot are one drive. If not, the problems
// say so.
func (s *Set) onePerSlot(slot int, found []Found) bool {
	one := true
	for i, f := range found {
		for _, other := range found[:i] {
			if text := doubled(f, other); text != "" {
				s.problem(f.Path, slot, "member %d twice: %s", slot, text)
				one = false
				break
			}
		}
	}
	return one
}

// OneDrive says that devices with the superblock of one member are all the paths to one
// drive.
func OneDrive(found []Found) bool {
	for i, f := range found {
		for _, other := range found[:i] {
			if doubled(f, other) != "" {
				return false
			}
		}
	}
	return true
}

// doubled says why two devices with the superblock of one member are not two paths to
// it, "" if they are.
func doubled(f, other Found) string {
	if f.Drive != other.Drive {
		return fmt.Sprintf("a copy of %s on another drive; disconnect one of the two, and be sure which", other.Path)
	}
	if why := f.Way.contradicts(other.Way); why != "" {
		return fmt.Sprintf("it claims to be the drive that %s is, and is reached %s, so it is a copy; disconnect one of the two, and be sure which", other.Path, why)
	}
	if !f.Label.agrees(other.Label) {
		return fmt.Sprintf("it claims to be the drive that %s is, and shows another superblock or size; if that does not pass, disconnect one of the two, and be sure which", other.Path)
	}
	return ""
}

// reference picks the superblock that speaks for a volume: of the active ones that
// count, if there are any, one of the highest sequence; else of all that count;
// else of all.
func reference(group []Found) *Superblock {
	rank := func(f Found) int {
		switch sb := f.Label.Current; {
		case sb == nil:
			return 0
		case sb.State != Active:
			return 1
		}
		return 2
	}
	best := group[0]
	for _, f := range group[1:] {
		if r, b := rank(f), rank(best); r > b || r == b && f.Label.Named().Sequence > best.Label.Named().Sequence {
			best = f
		}
	}
	return best.Label.Named()
}

// fault says why a device that names the volume is no member of it, "" if it is
// one.
func (s *Set) fault(f Found) string {
	sb, ref := f.Label.Current, s.Reference
	switch f.Label.Verdict {
	case Shrunk:
		own := f.Label.Named().Own().Size
		return fmt.Sprintf("has %d bytes, and had %d when the volume was created; restore its size", f.Label.Size, own)
	case Overwritten:
		return f.Label.Verdict.String() + "; see with wipefs or pollux inspect what is there now"
	}
	switch {
	case sb == nil:
		return f.Label.Verdict.String()
	case !sb.sameVolume(ref):
		return "its superblock contradicts that of the other members; it is not from this volume"
	case sb.State == Active && sb.Sequence != ref.Sequence:
		return fmt.Sprintf("its superblock is stale (sequence %d, the others have %d); it is an old copy", sb.Sequence, ref.Sequence)
	// Beside active ones, that of a creation or of a destruction that was cut.
	case sb.State == Forming && ref.State == Active && sb.Sequence+1 != ref.Sequence && sb.Sequence != ref.Sequence,
		sb.State == Forming && ref.State == Forming && sb.Sequence+1 != ref.Sequence && sb.Sequence != ref.Sequence:
		return fmt.Sprintf("its superblock is stale (forming, sequence %d, the others have %d); it is an old copy", sb.Sequence, ref.Sequence)
	case f.BlockSize != sb.BlockSize:
		return fmt.Sprintf("its logical block is %d bytes, and was %d when the volume was created; reformat it to that (nvme format), if it is the drive at all", f.BlockSize, sb.BlockSize)
	}
	return ""
}

// Creatable says why nothing may be created over f without being told to, nil if
// nothing speaks against it; sets is what was made of all devices that were found.
// When inUse is set, f is part of a volume and must not be created over at all.
func Creatable(f Found, sets []*Set) (reason string, inUse bool) {
	if f.Label.Verdict == Newer {
		return f.Label.Verdict.String() + ", which may know a volume there; destroy it with that one first", true
	}
	named := f.Label.Named()
	if named == nil {
		if f.Label.Uncommitted() {
			return "", false
		}
		return f.Label.Verdict.String(), false
	}
	var set *Set
	for _, s := range sets {
		if s.UUID == named.UUID {
			set = s
		}
	}
	who := fmt.Sprintf("volume %s (UUID %s)", named.Name, named.UUID)
	switch {
	// Somebody else has taken it already; the volume is broken as it is.
	case f.Label.Verdict == Overwritten:
		return f.Label.Verdict.String() + ": " + who, false
	// Before Uncommitted: a forming member whose copy B has gone bad since is a
	// member of the volume that the others show.
	case set != nil && set.Active():
		return fmt.Sprintf("member %d of %s; pollux destroy %s first", named.Slot, who, named.UUID), true
	case f.Label.Current == nil:
		return f.Label.Verdict.String() + ": " + who, false
	case f.Label.Uncommitted():
		return "", false
	case set != nil && !slices.ContainsFunc(set.Slots, func(found []Found) bool { return len(found) == 0 }):
		return "", false
	}
	return fmt.Sprintf("member %d of %s, whose other members are not all here to show that it was never finished", named.Slot, who), false
}
