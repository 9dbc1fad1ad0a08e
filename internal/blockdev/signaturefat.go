// SPDX-License-Identifier: Apache-2.0

package blockdev

// What the boot sectors of FAT, exFAT and NTFS share with a master boot record.
const (
	bootMagic    = "\x55\xaa"
	bootMagicOff = 510
)

// vfat stands here as dos asks for it too. A boot sector may carry several of
// these; each is found, hidden, and so makes room for the next.
var vfat = family{name: "vfat", min: superblockMin, check: checkVFAT, magics: []magic{
	{"MSWIN", 0, 0x52},
	{"FAT32   ", 0, 0x52},
	{"MSDOS", 0, 0x36},
	{"FAT16   ", 0, 0x36},
	{"FAT12   ", 0, 0x36},
	{"FAT     ", 0, 0x36},
	{"\xeb", 0, 0},
	{"\xe9", 0, 0},
	{bootMagic, 0, bootMagicOff},
}}

// isFAT holds the parameter block against itself. Magics of one or two bytes
// need more, as any boot sector has them.
func isFAT(d *image, sb int64, m magic) bool {
	b := d.bytes(sb, 512)
	if b == nil {
		return false
	}
	if len(m.text) <= 2 {
		if string(b[bootMagicOff:]) != bootMagic {
			return false
		}
		// OS/2 put a FAT-like header before these.
		if t := string(b[0x36:0x3e]); t == "JFS     " || t == "HPFS    " {
			return false
		}
	}
	sector, cluster, reserved := uint32(le.Uint16(b[11:])), uint32(b[13]), uint32(le.Uint16(b[14:]))
	fats, entries, media := uint32(b[16]), uint32(le.Uint16(b[17:])), b[21]
	if fats == 0 || reserved == 0 || media < 0xf8 && media != 0xf0 ||
		!powerOfTwo(cluster) || !powerOfTwo(sector) || sector < 512 || sector > 4096 {
		return false
	}
	total := uint32(le.Uint16(b[19:]))
	if total == 0 {
		total = le.Uint32(b[32:])
	}
	fat16, fat32 := uint32(le.Uint16(b[22:])), le.Uint32(b[36:])
	perFAT := fat16
	if perFAT == 0 {
		perFAT = fat32
	}
	clusters := (total - (reserved + perFAT*fats + (entries*32+sector-1)/sector)) / cluster
	limit := uint32(0xff4) // FAT12
	switch {
	case fat16 == 0 && fat32 != 0:
		limit = 0x0ffffff6
	case clusters > limit:
		limit = 0xfff4
	}
	return clusters <= limit && !isBitLocker(d)
}

// checkVFAT looks beyond isFAT at the information sector of FAT32.
func checkVFAT(d *image, sb int64, m magic) bool {
	if !isFAT(d, sb, m) {
		return false
	}
	b := d.bytes(sb, 512)
	if le.Uint16(b[22:]) != 0 || le.Uint32(b[36:]) == 0 {
		return true // FAT12 or FAT16
	}
	info := int64(le.Uint16(b[0x30:])) * int64(le.Uint16(b[11:]))
	if info == 0 {
		return true
	}
	i := d.bytes(info, 512)
	if i == nil {
		return false
	}
	switch string(i[:4]) {
	case "RRaA", "RRdA", "\x00\x00\x00\x00":
	default:
		return false
	}
	return string(i[484:488]) == "rrAa" || string(i[484:488]) == "\x00\x00\x00\x00"
}

// isBitLocker: its boot sectors look like FAT or NTFS.
func isBitLocker(d *image) bool {
	_, ok := bitLocker.look(d)
	return ok
}

// checkExFAT wants clusters of less than 4 GiB. Newer versions of wipefs want
// more; these are for those that believe the name, as 2.38 does.
func checkExFAT(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 512)
	return b != nil && uint32(1)<<(b[108]&31)<<(b[109]&31) != 0
}

// checkNTFS follows the parameter block to the first and the fourth record of
// the master file table.
func checkNTFS(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 512)
	if b == nil || isBitLocker(d) {
		return false
	}
	sector, cluster := int64(le.Uint16(b[11:])), int64(b[13])
	if sector < 256 || sector > 4096 || !powerOfTwo(uint32(cluster)) || sector*cluster > 64<<10 {
		return false
	}
	for i, v := range b[14:36] {
		// Fields of FAT that are zero here; the rest is the medium and geometry.
		if unused := i < 7 || i == 8 || i == 9 || i >= 18; unused && v != 0 {
			return false
		}
	}
	var record int64
	switch per := int8(b[64]); {
	case per >= -31 && per <= -9:
		record = 1 << -per
	case per > 0 && powerOfTwo(uint32(per)):
		record = int64(per) * cluster * sector
	default:
		return false
	}
	clusters := le.Uint64(b[40:]) / uint64(cluster)
	table, mirror := le.Uint64(b[48:]), le.Uint64(b[56:])
	if table > clusters || mirror > clusters || table > uint64(d.size) {
		return false
	}
	off := int64(table) * sector * cluster
	for _, at := range []int64{off, off + 3*record} {
		if !d.inside(at, int(record)) || !d.has(at, "FILE") {
			return false
		}
	}
	return true
}
