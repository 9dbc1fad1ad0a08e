// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Signature is a trace that a filesystem, a volume manager, a partition table
// or the like left on a device: somebody else's data may be there.
type Signature struct {
	// Type is the name that wipefs(8) and blkid(8) use: ext4, xfs, btrfs, vfat,
	// swap, crypto_LUKS, LVM2_member, linux_raid_member, gpt, PMBR, dos and so on.
	Type string
	// Offset is that of Magic, in bytes from the start of the device.
	Offset int64
	// Magic is what stands there. Once it is overwritten with zeros, nobody
	// takes the device for what it was.
	Magic []byte
}

// String returns type and offset, as in "ext4 at 1080".
func (s Signature) String() string {
	return fmt.Sprintf("%s at %d", s.Type, s.Offset)
}

// Signatures looks for foreign signatures on a device of size bytes. It finds
// what `wipefs --no-act` (util-linux 2.38) lists, for the families in the table.
// The differences are these:
//   - A GUID partition table may be made for logical blocks of 512 or of 4096
//     bytes, whichever the device has.
//   - An md superblock of version 0.90 counts also when a partition covers it.
//   - bcachefs is known, as in later versions.
//   - The second header of LUKS 2 must be where it says, as in later versions.
//
// As wipefs does, it hides what it has found and looks again, so that copies
// and what lies beneath another signature are in the list; erasing all of it at
// once is enough. The list is sorted by offset, without duplicates, and empty
// when nothing was found.
//
// Reads are few, of at most 256 KiB, in multiples of 4 KiB from multiples of
// 4 KiB (the last may end earlier, with the device), and never past size. The
// first read that fails ends the search: the error names where, and the list is
// nil, since what could not be read may be a signature.
//
// Any goroutine may call it, as far as r allows.
func Signatures(r io.ReaderAt, size int64) ([]Signature, error) {
	if size < 0 {
		return nil, fmt.Errorf("looking for signatures: a size of %d bytes is not that of a device", size)
	}
	d := newImage(r, size)
	var found []Signature
	for i := range families {
		f := &families[i]
		if !f.fits(size) {
			continue
		}
		for {
			m, ok := f.look(d)
			if d.err != nil {
				return nil, d.err
			}
			if !ok {
				break
			}
			magic := d.original(m.off, m.length)
			if !d.hide(m.off, m.length) {
				break // it would be found for ever
			}
			found = append(found, Signature{Type: f.name, Offset: m.off, Magic: magic})
		}
	}
	slices.SortFunc(found, func(a, b Signature) int {
		switch {
		case a.Offset != b.Offset:
			if a.Offset < b.Offset {
				return -1
			}
			return 1
		default:
			return strings.Compare(a.Type, b.Type)
		}
	})
	return slices.CompactFunc(found, func(a, b Signature) bool {
		return a.Type == b.Type && a.Offset == b.Offset && bytes.Equal(a.Magic, b.Magic)
	}), nil
}
