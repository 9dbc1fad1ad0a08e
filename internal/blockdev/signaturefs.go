// SPDX-License-Identifier: Apache-2.0

package blockdev

import "math/bits"

// Features of ext2, ext3 and ext4 (Linux, fs/ext4/ext4.h).
const (
	extHasJournal = 0x4    // compatible
	extJournalDev = 0x8    // incompatible: not a filesystem, but a journal of one
	extROOfExt3   = 0x7    // read-only compatible: all that ext2 and ext3 know
	extInOfExt2   = 0x12   // incompatible: all that ext2 knows
	extInOfExt3   = 0x16   // incompatible: all that ext3 knows
	extTestFS     = 0x0004 // flags: for an ext4 under development
)

// extFeatures is what tells the members of the ext family from each other.
type extFeatures struct{ compat, incompat, ro, flags uint32 }

func readExt(d *image, sb int64) (f extFeatures, ok bool) {
	b := d.bytes(sb, 1024)
	if b == nil {
		return f, false
	}
	return extFeatures{le.Uint32(b[0x5c:]), le.Uint32(b[0x60:]), le.Uint32(b[0x64:]), le.Uint32(b[0x160:])}, true
}

func checkExt4dev(d *image, sb int64, _ magic) bool {
	f, ok := readExt(d, sb)
	return ok && f.incompat&extJournalDev == 0 && f.flags&extTestFS != 0
}

func checkExt4(d *image, sb int64, _ magic) bool {
	f, ok := readExt(d, sb)
	return ok && f.incompat&extJournalDev == 0 && f.flags&extTestFS == 0 &&
		(f.ro&^extROOfExt3 != 0 || f.incompat&^extInOfExt3 != 0)
}

func checkExt3(d *image, sb int64, _ magic) bool {
	f, ok := readExt(d, sb)
	return ok && f.compat&extHasJournal != 0 && f.ro&^extROOfExt3 == 0 && f.incompat&^extInOfExt3 == 0
}

func checkExt2(d *image, sb int64, _ magic) bool {
	f, ok := readExt(d, sb)
	return ok && f.compat&extHasJournal == 0 && f.ro&^extROOfExt3 == 0 && f.incompat&^extInOfExt2 == 0
}

func checkJBD(d *image, sb int64, _ magic) bool {
	f, ok := readExt(d, sb)
	return ok && f.incompat&extJournalDev != 0
}

// checkXFS holds the geometry of the superblock against itself (Linux,
// fs/xfs/libxfs/xfs_format.h).
func checkXFS(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 264)
	if b == nil {
		return false
	}
	blocks, extent := be.Uint64(b[8:]), be.Uint32(b[80:])
	blockSize, blockLog := be.Uint32(b[4:]), b[120]
	sector, sectorLog := be.Uint16(b[102:]), b[121]
	inode, inodeLog := be.Uint16(b[104:]), b[122]
	groupBlocks, groups := uint64(be.Uint32(b[84:])), uint64(be.Uint32(b[88:]))
	realtime := extent * blockSize
	return groups > 0 &&
		sectorLog >= 9 && sectorLog <= 15 && sector == 1<<sectorLog &&
		blockLog >= 9 && blockLog <= 16 && blockSize == 1<<blockLog &&
		inodeLog >= 8 && inodeLog <= 11 && inode == 1<<inodeLog &&
		int(blockLog)-int(inodeLog) == int(b[123]) &&
		realtime >= 4<<10 && realtime <= 1<<30 &&
		b[127] <= 100 &&
		blocks != 0 && blocks <= groups*groupBlocks && blocks >= (groups-1)*groupBlocks+64
}

// searchXFSLog finds a log on a device of its own: a record begins with one of
// its first 512 sectors. A log within a filesystem is further back.
func searchXFSLog(d *image) (mark, bool) {
	b := d.bytes(0, 256<<10)
	if b == nil || string(b[:4]) == "XFSB" {
		return mark{}, false
	}
	for off := 0; off < len(b); off += 512 {
		h := b[off:]
		version, length, format := be.Uint32(h[8:]), be.Uint32(h[12:]), be.Uint32(h[300:])
		if be.Uint32(h) == 0xfeedbabe && version >= 1 && version <= 3 &&
			length > 0 && length <= 1<<31-1 && format >= 1 && format <= 3 {
			return mark{int64(off), 4}, true
		}
	}
	return mark{}, false
}

// checkSwap wants a header of version 1 for the newer of the two magics. Under
// TuxOnIce's the magic of swap is only a remnant.
func checkSwap(d *image, sb int64, m magic) bool {
	if d.has(sb, tuxOnIce) {
		return false
	}
	if m.text == "SWAP-SPACE" {
		return true
	}
	b := d.bytes(sb+1024, 12)
	return b != nil && (le.Uint32(b) == 1 || be.Uint32(b) == 1) && le.Uint32(b[4:]) != 0
}

// checkReiserfs refuses what lies in the journal, as a copy of the superblock
// would.
func checkReiserfs(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 104)
	if b == nil {
		return false
	}
	journal, sectors := le.Uint32(b[12:]), int64(le.Uint16(b[44:])>>9)
	return sectors != 0 && sb/1024/sectors <= int64(journal/2)
}

func checkJFS(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 184)
	if b == nil {
		return false
	}
	block, blockLog := le.Uint32(b[16:]), le.Uint16(b[20:])
	sector, sectorLog := le.Uint32(b[24:]), le.Uint16(b[28:])
	return blockLog < 32 && sectorLog < 32 && block == 1<<blockLog && sector == 1<<sectorLog &&
		int(blockLog)-int(sectorLog) == int(le.Uint16(b[22:]))
}

// checkUDF walks the volume recognition sequence to a descriptor of the right
// kind, and wants an anchor in block 256, or in block 512 as on media that are written
// once and not closed yet, for one of the sizes that a block may have (ECMA-167, 2/8 and
// 3/8.4; UDF 2.60, 6.10).
func checkUDF(d *image, sb int64, _ magic) bool {
	for _, block := range []int64{512, 1024, 2048, 4096} {
		if !hasNSR(d, sb, max(block, 2048)) {
			continue
		}
		for _, at := range []int64{256, 512} {
			b := d.bytes(at*block, 512)
			if b == nil {
				return false
			}
			if int64(le.Uint32(b[12:])) == at && le.Uint16(b) == 2 {
				return true
			}
		}
	}
	return false
}

// checkISO9660 wants a primary descriptor among the first 16. Nobody looks at
// its name, so the one whose name was hidden is still there for what comes next.
func checkISO9660(d *image, sb int64, m magic) bool {
	if m.text == "CDROM" { // High Sierra, before it became the standard
		return d.inside(sb, 80)
	}
	for i := range int64(16) {
		b := d.bytes(sb+i*2048, 847)
		if b == nil || b[0] == 0xff {
			return false
		}
		if b[0] == 1 {
			return true
		}
	}
	return false
}

func hasNSR(d *image, sb, step int64) bool {
	for i := range int64(64) {
		b := d.bytes(sb+i*step, 7)
		if b == nil {
			return false
		}
		switch string(b[1:6]) {
		case "NSR02", "NSR03":
			return true
		case "BEA01", "BOOT2", "CD001", "CDW02", "TEA01":
		default:
			return false
		}
	}
	return false
}

// checkHFSPlus also knows the case that an HFS volume is only the wrapper of an
// HFS+ one; then the magic of the wrapper is what is erased.
func checkHFSPlus(d *image, sb int64, m magic) bool {
	at := sb
	if m.text == "BD" {
		b := d.bytes(sb, 162)
		if b == nil || string(b[124:126]) != "H+" && string(b[124:126]) != "HX" {
			return false
		}
		// Numbers as in a C program with 32 bits, which is what wipefs is.
		at += int64(uint32(be.Uint16(b[28:]))*512 + uint32(be.Uint16(b[126:]))*be.Uint32(b[20:]))
	}
	b := d.bytes(at, 512)
	return b != nil && (string(b[:2]) == "H+" || string(b[:2]) == "HX") && be.Uint32(b[40:]) >= 512
}

func checkHFS(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 162)
	if b == nil || string(b[124:126]) == "H+" || string(b[124:126]) == "HX" {
		return false
	}
	block := be.Uint32(b[20:])
	return block != 0 && block%512 == 0
}

// searchUFS knows the four places and six magics of the BSDs and Solaris, in
// both byte orders.
func searchUFS(d *image) (mark, bool) {
	const magicOff = 1372
	for _, sb := range []int64{0, 8 << 10, 64 << 10, 256 << 10} {
		b := d.bytes(sb, magicOff+5)
		if b == nil {
			return mark{}, false
		}
		for _, v := range []uint32{0x19540119, 0x00011954, 0x00195612, 0x00095014, 0x00612195, 0x05231994} {
			if le.Uint32(b[magicOff:]) == v || be.Uint32(b[magicOff:]) == v {
				return mark{sb + magicOff, 4}, true
			}
		}
	}
	return mark{}, false
}

func checkGFS(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 512)
	return b != nil && be.Uint32(b[24:]) == 1309 && be.Uint32(b[28:]) == 1401
}

func checkGFS2(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 512)
	return b != nil && be.Uint32(b[24:])/100 == 18 && be.Uint32(b[28:])/100 == 19
}

func checkSquashfs(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 32)
	return b != nil && le.Uint16(b[28:]) >= 4
}

// checkSquashfs3 is for the versions before 4, which came in both byte orders.
func checkSquashfs3(d *image, sb int64, m magic) bool {
	b := d.bytes(sb, 32)
	if b == nil {
		return false
	}
	if m.text == "sqsh" {
		return be.Uint16(b[28:]) <= 3
	}
	return le.Uint16(b[28:]) <= 3
}

func checkBtrfs(d *image, sb int64, _ magic) bool { return d.inside(sb, 4096) }

// searchNILFS2 finds the superblock at 1 KiB and its copy in the last 4 KiB;
// the one of the later checkpoint comes first.
func searchNILFS2(d *image) (mark, bool) {
	const magicOff = 6
	primary, backup := int64(1024), (d.size/512-8)*512
	p, b := d.bytes(primary, 1024), d.bytes(backup, 1024)
	if p == nil || b == nil {
		return mark{}, false
	}
	validP, validB := isNILFS2(p), isNILFS2(b)
	const checkpoint = 0x38
	switch {
	case validB && (!validP || le.Uint64(p[checkpoint:]) > le.Uint64(b[checkpoint:])):
		return mark{backup + magicOff, 2}, true
	case validP:
		return mark{primary + magicOff, 2}, true
	}
	return mark{}, false
}

// isNILFS2 leaves the checksum alone: wipefs also lists what has a wrong one.
func isNILFS2(b []byte) bool {
	length := int(le.Uint16(b[8:]))
	return le.Uint16(b[6:]) == 0x3434 && length >= 20 && length <= len(b)
}

func checkAPFS(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 4096)
	return b != nil && le.Uint16(b[24:]) == 1 && le.Uint16(b[28:]) == 0 && le.Uint16(b[30:]) == 0 &&
		le.Uint32(b[36:]) == 4096
}

// powerOfTwo: exactly one bit is set.
func powerOfTwo(v uint32) bool { return bits.OnesCount32(v) == 1 }
