// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"encoding/binary"
	"hash/crc32"
)

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

const mdMagic = 0xa92b4efc

// searchMD finds the superblocks of Linux md: 0.90 on the last multiple of 64 KiB
// that has 64 KiB behind it, 1.0 some 8 KiB before the end, 1.1 at the start and
// 1.2 at 4 KiB (md(4), mdadm(8)).
func searchMD(d *image) (mark, bool) {
	if d.size > 64<<10 {
		if off := d.size&^(64<<10-1) - 64<<10; isMD0(d, off) {
			return mark{off, 4}, true
		}
		if off := d.size&^4095 - 8192; isMD1(d, off) {
			return mark{off, 4}, true
		}
	}
	for _, off := range []int64{0, 4096} {
		if isMD1(d, off) {
			return mark{off, 4}, true
		}
	}
	return mark{}, false
}

// isMD0 tells whether an md superblock of version 0.90 is at off. It is in the
// byte order of the machine that made it.
func isMD0(d *image, off int64) bool {
	b := d.bytes(off, 64)
	if b == nil {
		return false
	}
	var order binary.ByteOrder = le
	if le.Uint32(b) != mdMagic {
		if order = be; be.Uint32(b) != mdMagic {
			return false
		}
	}
	used := int64(order.Uint32(b[32:])) << 10 // of this member, in bytes
	return used <= off
}

// isMD1 tells whether an md superblock of version 1 is at off, and means to be.
func isMD1(d *image, off int64) bool {
	b := d.bytes(off, 256)
	return b != nil && le.Uint32(b) == mdMagic && le.Uint32(b[4:]) == 1 && le.Uint64(b[144:]) == uint64(off)>>9
}

// searchDDF finds the anchor of a SNIA DDF set, in the last sector or 256
// before, and wants a header where the anchor says.
func searchDDF(d *image) (mark, bool) {
	for _, back := range []int64{1, 257} {
		off := (d.size/512 - back) * 512
		b := d.bytes(off, 512)
		if b == nil {
			return mark{}, false
		}
		var primary uint64 // sector of the primary header; 0 is unknown
		switch uint32(0xde11de11) {
		case be.Uint32(b):
			primary = be.Uint64(b[96:])
		case le.Uint32(b):
			primary = le.Uint64(b[96:])
		default:
			continue
		}
		ok := primary == 0 || primary < uint64(d.size)/512 && d.has(int64(primary)*512, string(b[:4]))
		return mark{off, 4}, ok
	}
	return mark{}, false
}

// searchISW finds the metadata of Intel's firmware RAID (IMSM, VROC), in the
// last sector but one.
func searchISW(d *image) (mark, bool) {
	off := (d.size/512 - 2) * 512
	if !d.has(off, "Intel Raid ISM Cfg Sig. ") || !d.inside(off, 48) {
		return mark{}, false
	}
	return mark{off, 32}, true
}

// searchDRBD finds internal metadata of DRBD 8 and 9, in the last 4 KiB.
func searchDRBD(d *image) (mark, bool) {
	off := d.size - 4096
	b := d.bytes(off, 4096)
	if b == nil {
		return mark{}, false
	}
	switch at := 60; be.Uint32(b[at:]) {
	case 0x8374026b, 0x8374026c, 0x8374026d: // 8, 8.4 not closed, 9
		return mark{off + int64(at), 4}, true
	}
	return mark{}, false
}

// checkBcache looks whether the superblock means to be where it is.
func checkBcache(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 208)
	return b != nil && le.Uint64(b[8:]) == uint64(sb)/512
}

func checkBcachefs(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 752)
	if b == nil || le.Uint64(b[104:]) != uint64(sb)/512 {
		return false
	}
	device, devices := b[122], b[123]
	return device < devices && 752+8*uint64(le.Uint32(b[124:])) <= 4096
}

// checkLVM2 looks at the label that should be around the type: in one of the
// two sectors from sb on, saying in which.
func checkLVM2(d *image, sb int64, _ magic) bool {
	for off := sb; off <= sb+512; off += 512 {
		if d.has(off, "LABELONE") {
			b := d.bytes(off, 64)
			return b != nil && le.Uint64(b[8:]) == uint64(off)/512
		}
	}
	return false
}

func checkLVM1(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 172)
	return b != nil && (le.Uint16(b[2:]) == 1 || le.Uint16(b[2:]) == 2)
}

func checkVerity(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 512)
	return b != nil && le.Uint32(b[8:]) == 1
}

func checkIntegrity(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 16)
	return b != nil && b[8] != 0
}

// searchLUKS finds both headers of LUKS; the second is that of version 2 alone
// and may be in any of nine places (LUKS2 On-Disk Format Specification, 2.2).
// Some of them are where a member of a striped volume has the volume's data: a
// LUKS device on a volume of two drives puts its second header, if that is at
// 2 MiB, to 2 MiB of the first drive. So it must say that it is where it is.
// util-linux came to ask for this as well (its pull request 2788), after 2.38.
func searchLUKS(d *image) (mark, bool) {
	if d.inside(0, 512) && d.has(0, "LUKS\xba\xbe") {
		return mark{0, 6}, true
	}
	for off := int64(0x4000); off <= 0x400000; off *= 2 {
		b := d.bytes(off, 512)
		if b != nil && string(b[:6]) == "SKUL\xba\xbe" &&
			(be.Uint16(b[6:]) != 2 || be.Uint64(b[256:]) == uint64(off)) {
			return mark{off, 6}, true
		}
	}
	return mark{}, false
}

// checkStratis wants one of the two copies whole, whichever the magic is of.
func checkStratis(d *image, sb int64, _ magic) bool {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for _, sector := range []int64{1, 9} {
		b := d.bytes(sb+sector*512, 512)
		if b != nil && crc32.Checksum(b[4:], castagnoli) == le.Uint32(b) {
			return true
		}
	}
	return false
}

// Boot sectors of BitLocker: of Vista, of Windows 7 and later, and of removable
// drives.
const (
	bitLockerVista = "\xeb\x52\x90-FVE-FS-"
	bitLocker7     = "\xeb\x58\x90-FVE-FS-"
	bitLockerToGo  = "\xeb\x58\x90MSWIN4.1"
)

// bitLocker stands here as vfat and ntfs ask for it too.
var bitLocker = family{name: "BitLocker", min: superblockMin, check: checkBitLocker, magics: []magic{
	{bitLockerVista, 0, 0},
	{bitLocker7, 0, 0},
	{bitLockerToGo, 0, 0},
}}

// checkBitLocker follows the pointer that all but Vista's have to the metadata.
func checkBitLocker(d *image, sb int64, m magic) bool {
	b := d.bytes(sb, 512)
	if b == nil {
		return false
	}
	var at uint64
	switch m.text {
	case bitLockerVista:
		return true
	case bitLocker7:
		at = le.Uint64(b[176:])
	default:
		at = le.Uint64(b[440:])
	}
	return at != 0 && at < uint64(d.size) && d.has(int64(at), "-FVE-FS-")
}

const uberblockMagic = 0x00bab10c

// searchZFS finds uberblocks, which are in the byte order of the machine that
// wrote them. A device has four labels of 256 KiB, two at each end, with 128
// uberblocks each in the upper half; up to three may be a coincidence for
// wipefs, so those stay when all others have been hidden (ZFS On-Disk
// Specification, 1.2).
func searchZFS(d *image) (mark, bool) {
	const label, want = 256 << 10, 4
	end := d.size - d.size%label
	seen := 0
	for _, start := range []int64{0, label, end - 2*label, end - label} {
		b := d.bytes(start+label/2, label/2)
		if b == nil {
			return mark{}, false
		}
		last := -1
		for at := 0; at < len(b); at += 1024 {
			if le.Uint64(b[at:]) == uberblockMagic || be.Uint64(b[at:]) == uberblockMagic {
				last = at
				seen++
			}
		}
		if last >= 0 && seen >= want {
			return mark{start + label/2 + int64(last), 8}, true
		}
	}
	return mark{}, false
}
