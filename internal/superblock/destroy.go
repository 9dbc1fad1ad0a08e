// SPDX-License-Identifier: Apache-2.0

package superblock

// Destroy makes the members of a volume, or what is left of them, devices without
// a superblock. It runs backwards: forming in copy B of all members, then in copy
// A, and only when no copy is active any more it overwrites copies B and then A
// with zeros. Cut before the last active copy A is gone it leaves the volume as it
// was; cut later, no volume.
//
// forming has the sequence of the active copies: of two equal ones copy A counts,
// so the volume stays whole until its copies A are overwritten, and what Repair
// then writes has the sequence of those that were not.
//
// Repair must have been called for a whole volume: a torn copy A beside an active
// copy B would lose its stand-in first. Sequence is that of the active copies; a
// volume that was never finished is not active.
func Destroy(targets []Target, active bool, sequence uint64) error {
	// What put leaves alone may be in the drives' caches only.
	if err := syncTargets(targets); err != nil {
		return err
	}
	order := []which{inB, inA}
	if !active {
		// Copies A that are torn, before their stand-ins go: see erase.
		order = []which{inA}
	}
	for _, c := range order {
		if err := put(targets, Forming, sequence, c); err != nil {
			return err
		}
	}
	for _, c := range []which{inB, inA} {
		if err := zero(targets, c); err != nil {
			return err
		}
	}
	return nil
}

// Forget overwrites copy B of a device whose copy A somebody else has overwritten. It
// is the only thing on the device that is ours, its checksum says so, and it would go
// on naming a volume that is destroyed.
func Forget(d Device, l Label) error {
	if l.Verdict != Overwritten {
		return nil
	}
	if _, err := d.WriteAt(make([]byte, BlockSize), l.B.Offset); err != nil {
		return err
	}
	return d.Sync()
}
