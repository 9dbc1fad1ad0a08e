// SPDX-License-Identifier: Apache-2.0

package superblock

// Repair makes both copies of every member of a whole volume active: it completes
// a creation that was cut, takes back a destruction that was, and replaces copies
// that are torn. Targets have the superblocks that count; sequence is that of the
// active ones. It reports whether it has written anything.
func Repair(targets []Target, sequence uint64) (changed bool, err error) {
	todo := [2][]Target{}
	for _, t := range targets {
		sb := t.Superblock
		sb.State, sb.Sequence = Active, sequence
		want := sb.Encode()
		for _, c := range []which{inA, inB} {
			got := make([]byte, BlockSize)
			if _, err := t.Device.ReadAt(got, sb.offset(c)); err != nil || string(got) != string(want) {
				todo[c] = append(todo[c], t)
			}
		}
	}
	if len(todo[inA])+len(todo[inB]) > 0 {
		// What need not be written may be in the drives' caches only.
		if err := syncTargets(targets); err != nil {
			return false, err
		}
	}
	for _, c := range []which{inA, inB} {
		if len(todo[c]) == 0 {
			continue
		}
		changed = true
		if err := put(todo[c], Active, sequence, c); err != nil {
			return changed, err
		}
	}
	return changed, nil
}
