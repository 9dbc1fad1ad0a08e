// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"pollux/stripe"
)

// State says how far the creation of a volume got.
type State uint32

const (
	// Forming: being created, or being destroyed. Not a volume.
	Forming State = 1
	// Active: at least one active superblock makes a whole set a volume.
	Active State = 2
)

// String returns the word that the command line uses.
func (s State) String() string {
	switch s {
	case Forming:
		return "forming"
	case Active:
		return "active"
	}
	return fmt.Sprintf("state(%d)", uint32(s))
}

// LayoutStriped is the only layout there is: chunks go round the members, and the
// smallest member counts for all.
const LayoutStriped = 1

// Superblock describes a volume and one member of it. Sizes are bytes.
type Superblock struct {
	// Sequence grows with each change of state. All active members of one volume
	// have the same.
	Sequence uint64
	State    State

	UUID    uuid.UUID
	Name    string
	Layout  uint32
	Chunk   int64
	Created time.Time // to the nanosecond, without a zone
	// Members is the table of all of them, by slot.
	Members []Member

	// Slot is that of the member on which this superblock is.
	Slot       int
	DataOffset int64
	DataSize   int64
	// BlockSize is the logical block of the member when the volume was created.
	BlockSize int64
}

// Member is what every superblock tells of each member, so that one that is
// missing can be named.
type Member struct {
	UUID uuid.UUID
	// Size is the capacity when the volume was created. It says where copy B is.
	Size int64
}

// New returns the superblocks of a new volume, one for each device, all but State
// and Sequence. sizes and blocks are those of the devices, in bytes. The error
// answers to ErrName or ErrInvalid.
func New(name string, chunk int64, sizes, blocks []int64) ([]Superblock, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	volume := Superblock{
		State:      Forming, // for check
		UUID:       uuid.New(),
		Name:       name,
		Layout:     LayoutStriped,
		Chunk:      chunk,
		Created:    time.Now().UTC().Round(0),
		DataOffset: DataOffset,
	}
	for _, size := range sizes {
		volume.Members = append(volume.Members, Member{UUID: uuid.New(), Size: size})
	}
	all := make([]Superblock, len(sizes))
	for slot := range all {
		sb := volume
		sb.Slot, sb.BlockSize = slot, blocks[slot]
		sb.DataSize = DataSize(sizes[slot], chunk)
		if err := sb.check(); err != nil {
			return nil, err
		}
		all[slot] = sb
	}
	return all, nil
}

// Own returns the entry of the member on which the superblock is.
func (sb *Superblock) Own() Member { return sb.Members[sb.Slot] }

// offset returns where a copy of the superblock lies on its member.
func (sb *Superblock) offset(c which) int64 {
	if c == inA {
		return copyA
	}
	return OffsetB(sb.Own().Size)
}

// sameVolume says whether two superblocks describe one volume, whatever their
// state and whichever member they are of.
func (sb *Superblock) sameVolume(other *Superblock) bool {
	if sb.UUID != other.UUID || sb.Name != other.Name || sb.Layout != other.Layout || sb.Chunk != other.Chunk ||
		!sb.Created.Equal(other.Created) || len(sb.Members) != len(other.Members) {
		return false
	}
	for i := range sb.Members {
		if sb.Members[i] != other.Members[i] {
			return false
		}
	}
	return true
}

// check says what makes no sense.
func (sb *Superblock) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
	}
	n := len(sb.Members)
	switch {
	case sb.State != Forming && sb.State != Active:
		return bad("%v", sb.State)
	case sb.UUID == uuid.Nil:
		return bad("the volume's UUID is zero")
	case sb.Layout != LayoutStriped:
		return bad("layout %d", sb.Layout)
	case n < 1 || n > stripe.MaxMembers:
		return bad("%d members", n)
	case sb.Slot < 0 || sb.Slot >= n:
		return bad("slot %d of %d members", sb.Slot, n)
	case !validChunk(sb.Chunk):
		return bad("chunk of %d bytes", sb.Chunk)
	case sb.BlockSize < 512 || sb.BlockSize > BlockSize || sb.BlockSize&(sb.BlockSize-1) != 0:
		return bad("logical block of %d bytes", sb.BlockSize)
	}
	if err := CheckName(sb.Name); err != nil {
		return bad("%v", err)
	}
	seen := make(map[uuid.UUID]int, n)
	for slot, m := range sb.Members {
		if m.UUID == uuid.Nil {
			return bad("the UUID of member %d is zero", slot)
		}
		if other, twice := seen[m.UUID]; twice {
			return bad("members %d and %d have one UUID", other, slot)
		}
		seen[m.UUID] = slot
		if DataSize(m.Size, sb.Chunk) == 0 {
			return bad("member %d of %d bytes has no room for a chunk", slot, m.Size)
		}
	}
	if want := DataSize(sb.Own().Size, sb.Chunk); sb.DataOffset != DataOffset || sb.DataSize != want {
		return bad("data of %d bytes at %d, where %d at %d would be right", sb.DataSize, sb.DataOffset, want, int64(DataOffset))
	}
	return nil
}
