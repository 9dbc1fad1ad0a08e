// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"bytes"
	"errors"
	"fmt"
)

// Block is a piece of a device, in whole multiples of its logical block.
type Block struct {
	Offset int64
	Data   []byte
}

// NewMember is a device that becomes a member.
type NewMember struct {
	Target
	// Erase is what stands in the way, with the content that it is to have:
	// signatures of others, blanked out.
	Erase []Block
	// Old is what Read has found on the device. Copies of ours are erased.
	Old Label
}

// ErrNotKept says that a device does not return what was written to it.
var ErrNotKept = errors.New("what was written is not what is read back: the device keeps no data")

// Create makes the members a volume. All checks have passed; the superblocks have
// their final content but for State and Sequence. When it fails, everything it
// has written is put back, and the error says where that failed too.
//
//  1. Old superblocks are erased, copies B before copies A: a copy B alone would
//     look like a member that somebody has overwritten. A torn copy A is written
//     again before its copy B goes. Then the signatures.
//  2. forming in copy A of all members, then in copy B of all.
//  3. active in copy A of all members, then in copy B of all.
//
// Each sweep is durable before the next begins. So as long as no copy is active
// every member has, at worst, a forming copy that was never committed; and once
// one is, all have a valid forming one. No cut leaves anything between.
func Create(members []NewMember, sequence uint64) (err error) {
	before, err := save(members)
	if err != nil {
		return err
	}
	targets := make([]Target, len(members))
	for i := range members {
		targets[i] = members[i].Target
	}
	committing := false
	defer func() {
		if err != nil {
			err = errors.Join(err, putBack(targets, before, committing, sequence))
		}
	}()
	// What is there already may be so in the drives' caches only, left by a process
	// that was killed before it synced.
	if err := syncTargets(targets); err != nil {
		return err
	}
	if err := erase(members); err != nil {
		return err
	}
	for _, c := range []which{inA, inB} {
		if err := put(targets, Forming, sequence, c); err != nil {
			return err
		}
	}
	if err := readBack(targets, Forming, sequence); err != nil {
		return err
	}
	committing = true
	for _, c := range []which{inA, inB} {
		if err := put(targets, Active, sequence+1, c); err != nil {
			return err
		}
	}
	return nil
}

// erase makes way for a volume.
func erase(members []NewMember) error {
	sweep := func(blocks func(NewMember) []Block) error {
		var written []Device
		for _, m := range members {
			for _, b := range blocks(m) {
				if _, err := m.Device.WriteAt(b.Data, b.Offset); err != nil {
					return err
				}
				written = append(written, m.Device)
			}
		}
		return syncAll(written)
	}
	ours := func(c Copy) []Block {
		if !c.ours() {
			return nil
		}
		return []Block{{c.Offset, make([]byte, BlockSize)}}
	}
	// A copy B that stands in for a torn copy A has to be copied there first. With
	// neither, the member would be missing from an unfinished volume whose other
	// members still show it, and those could not be created over without force.
	standIn := func(m NewMember) []Block {
		if m.Old.Verdict != TornA {
			return nil
		}
		return []Block{{copyA, m.Old.Current.Encode()}}
	}
	if err := sweep(standIn); err != nil {
		return err
	}
	if err := sweep(func(m NewMember) []Block { return ours(m.Old.B) }); err != nil {
		return err
	}
	if err := sweep(func(m NewMember) []Block { return ours(m.Old.A) }); err != nil {
		return err
	}
	return sweep(func(m NewMember) []Block { return m.Erase })
}

// readBack finds devices that take writes and keep nothing.
func readBack(targets []Target, state State, sequence uint64) error {
	for i := range targets {
		sb := targets[i].Superblock
		sb.State, sb.Sequence = state, sequence
		want, got := sb.Encode(), make([]byte, BlockSize)
		for _, c := range []which{inA, inB} {
			if _, err := targets[i].Device.ReadAt(got, sb.offset(c)); err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("member %d: %w", i, ErrNotKept)
			}
		}
	}
	return nil
}

// saved is what Create may overwrite on one device: what is put back first, and
// what after that is durable, copies B before copies A as when erasing.
type saved [2][]Block

func save(members []NewMember) ([]saved, error) {
	all := make([]saved, len(members))
	for i, m := range members {
		keep := func(sweep int, offset, length int64) error {
			b := Block{offset, make([]byte, length)}
			_, err := m.Device.ReadAt(b.Data, offset)
			all[i][sweep] = append(all[i][sweep], b)
			return err
		}
		err := keep(0, m.Superblock.offset(inB), BlockSize)
		if old := m.Old.B; err == nil && old.ours() && old.Offset != m.Superblock.offset(inB) {
			err = keep(0, old.Offset, BlockSize)
		}
		if err == nil {
			err = keep(1, copyA, BlockSize)
		}
		for _, b := range m.Erase {
			if err == nil {
				err = keep(1, b.Offset, int64(len(b.Data)))
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// putBack restores what save has read. Where an active copy may have been written
// the volume is taken apart first, as in Destroy, so that a crash in between does
// not leave half of one.
func putBack(targets []Target, all []saved, committing bool, sequence uint64) error {
	if committing {
		// These may well fail where Create did. Putting back is tried all the same.
		_ = put(targets, Forming, sequence+1, inB)
		_ = put(targets, Forming, sequence+1, inA)
	}
	failed := make([]error, len(targets))
	for sweep := range 2 {
		for i, s := range all {
			if err := putBlocks(targets[i].Device, s[sweep]); err != nil {
				failed[i] = err
			}
		}
	}
	for i, err := range failed {
		if err != nil {
			failed[i] = fmt.Errorf("member %d could not be put back as it was: %w", i, err)
		}
	}
	return errors.Join(failed...)
}

// putBlocks writes what is not there, all that it can.
func putBlocks(d Device, blocks []Block) error {
	var errs []error
	written := false
	for _, b := range blocks {
		changed, err := putBlock(d, b.Data, b.Offset)
		written = written || changed
		errs = append(errs, err)
	}
	if written {
		errs = append(errs, d.Sync())
	}
	return errors.Join(errs...)
}
