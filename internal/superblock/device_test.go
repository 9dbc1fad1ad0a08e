// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// disk is a device of 4096-byte blocks, of which those never written are zero. It
// remembers what is not durable yet.
type disk struct {
	size    int64
	blocks  map[int64][]byte
	journal *journal // nil: writes are durable at once
	index   int
}

// journal records the writes and syncs of all disks, as a cut would find them.
type journal struct {
	ops []op
	// failAt makes the operation of that number, counted from 1, fail with errIO,
	// and all of the same disk behind it if dead is set.
	failAt int
	dead   bool
	count  int
	failed int // which disk did, -1 before
}

// op is a write, or with no block a sync.
type op struct {
	disk   int
	offset int64
	block  []byte
}

var errIO = errors.New("injected error")

func (d *disk) Size() int64 { return d.size }

func (d *disk) block(n int64) []byte {
	if b := d.blocks[n]; b != nil {
		return b
	}
	return make([]byte, BlockSize)
}

func (d *disk) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off%BlockSize != 0 || len(p)%BlockSize != 0 || off+int64(len(p)) > d.size {
		return 0, fmt.Errorf("read of %d at %d of %d", len(p), off, d.size)
	}
	for i := 0; i < len(p); i += BlockSize {
		copy(p[i:], d.block(off+int64(i)))
	}
	return len(p), nil
}

func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 || off%BlockSize != 0 || len(p)%BlockSize != 0 || off+int64(len(p)) > d.size {
		return 0, fmt.Errorf("write of %d at %d of %d", len(p), off, d.size)
	}
	for i := 0; i < len(p); i += BlockSize {
		b := bytes.Clone(p[i : i+BlockSize])
		if err := d.log(op{d.index, off + int64(i), b}); err != nil {
			return 0, err
		}
		d.blocks[off+int64(i)] = b
	}
	return len(p), nil
}

func (d *disk) Sync() error { return d.log(op{disk: d.index}) }

func (d *disk) log(o op) error {
	j := d.journal
	if j == nil {
		return nil
	}
	j.count++
	if j.count == j.failAt || j.dead && j.failed == d.index {
		j.failed = d.index
		return errIO
	}
	j.ops = append(j.ops, o)
	return nil
}

// rig is a handful of disks.
type rig []*disk

func newRig(n int) rig {
	r := make(rig, n)
	for i := range r {
		r[i] = &disk{size: 8*mib + int64(i)*mib, blocks: map[int64][]byte{}, index: i}
	}
	return r
}

func (r rig) clone() rig {
	c := make(rig, len(r))
	for i, d := range r {
		c[i] = &disk{size: d.size, blocks: maps.Clone(d.blocks), index: i}
	}
	return c
}

// record runs f with a journal and returns it.
func (r rig) record(j *journal, f func() error) (*journal, error) {
	j.failed = -1
	for _, d := range r {
		d.journal = j
	}
	err := f()
	for _, d := range r {
		d.journal = nil
	}
	return j, err
}

func (r rig) superblocks(t testing.TB, name string) []Superblock {
	t.Helper()
	var sizes, blocks []int64
	for _, d := range r {
		sizes, blocks = append(sizes, d.size), append(blocks, 512)
	}
	all, err := New(name, 64<<10, sizes, blocks)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// found reads what is on the disks, as a scan would.
func (r rig) found(t testing.TB) []Found {
	t.Helper()
	all := make([]Found, len(r))
	for i, d := range r {
		label, err := Read(d)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = Found{Path: fmt.Sprintf("/dev/d%d", i), Drive: fmt.Sprint("drive ", i), BlockSize: 512, Label: label}
	}
	return all
}

// newMembers is what Create is given, with the superblocks of a new volume.
func (r rig) newMembers(t testing.TB, name string) (_ []NewMember, sequence uint64) {
	t.Helper()
	sbs, found := r.superblocks(t, name), r.found(t)
	members := make([]NewMember, len(r))
	for i, d := range r {
		members[i] = NewMember{Target: Target{d, sbs[i]}, Old: found[i].Label}
		if sb := found[i].Label.Named(); sb != nil {
			sequence = max(sequence, sb.Sequence)
		}
	}
	return members, sequence + 1
}

func (r rig) create(t testing.TB, name string) *Set {
	t.Helper()
	members, sequence := r.newMembers(t, name)
	if err := Create(members, sequence); err != nil {
		t.Fatal(err)
	}
	return r.whole(t)
}

// whole returns the only set that there is, which must be whole.
func (r rig) whole(t testing.TB) *Set {
	t.Helper()
	sets := Assemble(r.found(t))
	if len(sets) != 1 || sets[0].Standing != Whole || len(sets[0].Problems) != 0 {
		t.Fatalf("%d sets: %+v", len(sets), describe(sets))
	}
	return sets[0]
}

func describe(sets []*Set) (lines []string) {
	for _, s := range sets {
		lines = append(lines, fmt.Sprintf("%s %v %v", s.Reference.Name, s.Standing, s.Problems))
	}
	return lines
}

// targets are the members of a set that Repair and Destroy work on.
func (r rig) targets(s *Set) []Target {
	var all []Target
	for _, f := range slices.Concat(s.Slots...) {
		var index int
		fmt.Sscanf(f.Path, "/dev/d%d", &index)
		all = append(all, Target{r[index], *f.Label.Current})
	}
	return all
}

// sample is a valid superblock of 3 members.
func sample() Superblock {
	sb := Superblock{
		Sequence: 7, State: Active, UUID: uuid.MustParse("0f9b2a52-3f0c-4e9b-9d55-111111111111"), Name: "fast.vol_1-a",
		Layout: LayoutStriped, Chunk: 64 << 10, Created: time.Unix(1796080790, 12345).UTC(),
		Slot: 1, DataOffset: DataOffset, BlockSize: 512,
	}
	for i := range 3 {
		sb.Members = append(sb.Members, Member{UUID: uuid.NewSHA1(sb.UUID, []byte{byte(i)}), Size: int64(100+i)*mib + 512})
	}
	sb.DataSize = DataSize(sb.Own().Size, sb.Chunk)
	return sb
}
