// SPDX-License-Identifier: Apache-2.0

package superblock

import "bytes"

// Target is a device that a protocol writes to, with what it is to become or has
// become: the superblock of a member.
type Target struct {
	Device     Device
	Superblock Superblock
}

// put writes a copy of every target's superblock, in the given state, and makes
// them durable. Copies that stand there already are left alone.
func put(targets []Target, state State, sequence uint64, c which) error {
	var written []Device
	for i := range targets {
		sb := targets[i].Superblock
		sb.State, sb.Sequence = state, sequence
		changed, err := putBlock(targets[i].Device, sb.Encode(), sb.offset(c))
		if err != nil {
			return err
		}
		if changed {
			written = append(written, targets[i].Device)
		}
	}
	return syncAll(written)
}

// putBlock writes a block unless it is there.
func putBlock(d Device, block []byte, offset int64) (changed bool, err error) {
	now := make([]byte, len(block))
	if _, err := d.ReadAt(now, offset); err == nil && bytes.Equal(now, block) {
		return false, nil
	}
	_, err = d.WriteAt(block, offset)
	return true, err
}

// zero overwrites a copy of every target's superblock.
func zero(targets []Target, c which) error {
	for _, t := range targets {
		if _, err := t.Device.WriteAt(make([]byte, BlockSize), t.Superblock.offset(c)); err != nil {
			return err
		}
	}
	return syncTargets(targets)
}

func syncTargets(targets []Target) error {
	devices := make([]Device, len(targets))
	for i := range targets {
		devices[i] = targets[i].Device
	}
	return syncAll(devices)
}

func syncAll(devices []Device) error {
	for _, d := range devices {
		if err := d.Sync(); err != nil {
			return err
		}
	}
	return nil
}
