// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"encoding/binary"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// at is a device, or part of one, by what differs from zero.
type at map[int64]string

// with returns all together; what comes later counts.
func (a at) with(others ...at) at {
	all := at{}
	for _, m := range append([]at{a}, others...) {
		for off, s := range m {
			all[off] = s
		}
	}
	return all
}

func put16(v uint16) string  { return string(binary.LittleEndian.AppendUint16(nil, v)) }
func put32(v uint32) string  { return string(binary.LittleEndian.AppendUint32(nil, v)) }
func put64(v uint64) string  { return string(binary.LittleEndian.AppendUint64(nil, v)) }
func put16b(v uint16) string { return string(binary.BigEndian.AppendUint16(nil, v)) }
func put32b(v uint32) string { return string(binary.BigEndian.AppendUint32(nil, v)) }
func put64b(v uint64) string { return string(binary.BigEndian.AppendUint64(nil, v)) }

// block lays fields, by offset, into n bytes.
func block(n int, fields at) string {
	b := make([]byte, n)
	for _, off := range slices.Sorted(maps.Keys(fields)) {
		copy(b[off:], fields[off])
	}
	return string(b)
}

// md0 is a superblock of md 0.90 of a member that uses kib KiB.
func md0(order binary.AppendByteOrder, kib uint32) string {
	b := order.AppendUint32(nil, 0xa92b4efc)
	for _, v := range []uint32{0, 90, 0, 0, 0, 0, 1, kib, 2, 2, 0, 0} {
		b = order.AppendUint32(b, v)
	}
	return string(b)
}

// md1 is a superblock of md 1 that means to be at off.
func md1(off int64) string {
	return block(256, at{0: put32(0xa92b4efc), 4: put32(1), 144: put64(uint64(off) / 512)})
}

// lvm2 is the label of a physical volume, for a sector.
func lvm2(sector uint64) string {
	return block(512, at{0: "LABELONE", 8: put64(sector), 20: put32(32), 24: "LVM2 001", 32: strings.Repeat("u", 32)})
}

func luks(magic string, version uint16, off uint64) string {
	return block(512, at{0: magic, 6: put16b(version), 256: put64b(off)})
}

// uberblocks are n of those of ZFS, from off on.
func uberblocks(off int64, n int, magic string) at {
	a := at{}
	for i := range n {
		a[off+128<<10+int64(i)<<10] = block(40, at{0: magic, 8: put64(5000)})
	}
	return a
}

func stratis() string {
	b := []byte(block(512, at{4: "!Stra0tis\x86\xff\x02^\x41rh"}))
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], crc32.MakeTable(crc32.Castagnoli)))
	return string(b)
}

// gptFields is a header of a GPT and its 128 empty entries, on a disk of n
// blocks of block bytes; change overwrites fields before the checksum is made.
func gptHeader(blockSize, lba, n int64, change at) at {
	entries := make([]byte, 128*128)
	entriesLBA := int64(2)
	if lba != 1 {
		entriesLBA = lba - int64(len(entries))/blockSize
	}
	h := []byte(block(92, at{
		0: "EFI PART", 8: put32(0x10000), 12: put32(92), 24: put64(uint64(lba)), 32: put64(uint64(n - lba)),
		40: put64(40), 48: put64(uint64(n - 40)), 56: "a disk's own GUID", 72: put64(uint64(entriesLBA)),
		80: put32(128), 84: put32(128), 88: put32(crc32.ChecksumIEEE(entries)),
	}))
	for off, s := range change {
		copy(h[off:], s)
	}
	binary.LittleEndian.PutUint32(h[16:], 0)
	binary.LittleEndian.PutUint32(h[16:], crc32.ChecksumIEEE(h))
	return at{lba * blockSize: string(h)}
}

// partition is an entry of a master boot record.
func partition(active, kind byte) string {
	return block(16, at{0: string([]byte{active}), 4: string([]byte{kind}), 8: put32(1), 12: put32(100)})
}

// fat is a parameter block that a FAT filesystem might have.
var fat = at{11: put16(512), 13: "\x01", 14: put16(1), 16: "\x02", 17: put16(512), 19: put16(2048), 21: "\xf8", 22: put16(6)}

// fat32 likewise.
var fat32 = at{11: put16(512), 13: "\x01", 14: put16(32), 16: "\x02", 21: "\xf8", 32: put32(131072), 36: put32(1009), 0x30: put16(1)}

// ntfs is a boot sector and the two records that it leads to.
var ntfs = at{3: "NTFS    ", 11: put16(512), 13: "\x08", 21: "\xf8", 40: put64(2047), 48: put64(4), 56: put64(2), 64: "\xf6",
	16384: "FILE", 16384 + 3*1024: "FILE"}

func xfs(change at) at {
	return at{0: "XFSB" + block(260, at{0: put32b(4096), 4: put64b(1000), 76: put32b(1), 80: put32b(500), 84: put32b(2),
		98: put16b(512), 100: put16b(512), 116: "\x0c\x09\x09\x03", 123: "\x19"}.with(change))}
}

func xfsLog(version, length, format uint32) string {
	return block(512, at{0: put32b(0xfeedbabe), 8: put32b(version), 12: put32b(length), 300: put32b(format)})
}

func ext(compat, incompat, ro, flags uint32) at {
	return at{1024: block(1024, at{0x38: "\x53\xef", 0x5c: put32(compat), 0x60: put32(incompat), 0x64: put32(ro), 0x160: put32(flags)})}
}

func swapHeader(version, last string) at { return at{1024: version + last} }

func hfs(signature, embedded string, allocation uint32, start uint16) string {
	return block(512, at{0: signature, 20: put32b(allocation), 28: put16b(4), 124: embedded, 126: put16b(start)})
}

func nilfs2(size, checkpoint uint64) string {
	b := []byte(block(280, at{6: put16(0x3434), 8: put16(280), 12: put32(0x12345678), 32: put64(size), 0x38: put64(checkpoint)}))
	// nilfs-tools' crc32_le takes the seed as the register and inverts nothing.
	sum := ^crc32.Update(^uint32(0x12345678), crc32.IEEETable, b)
	binary.LittleEndian.PutUint32(b[16:], sum)
	return string(b)
}

func bcachefs(device, devices byte, words uint32) string {
	return block(1024, at{24: "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", 104: put64(8),
		120: put16(1), 122: string([]byte{device, devices}), 124: put32(words)})
}

func apfs(kind, subtype, pad uint16, size uint32) string {
	return block(4096, at{24: put16(kind), 28: put16(subtype), 30: put16(pad), 32: "NXSB", 36: put32(size)})
}

func exfat(change at) at {
	return at{0: "\xeb\x76\x90", 3: "EXFAT   ", 108: "\x09\x03", 510: bootMagic}.with(change)
}

// vrs is a volume recognition sequence, as UDF has it.
func vrs(step int64, ids ...string) at {
	a := at{}
	for i, id := range ids {
		a[32<<10+int64(i)*step] = "\x00" + id + "\x01"
	}
	return a
}

func anchor(blockSize int64, tag uint16, location uint32) at {
	return at{256 * blockSize: block(16, at{0: put16(tag), 12: put32(location)})}
}

// made is an image by hand.
type made struct {
	name string
	size int64
	at   at
	want string // the types; "" for none
}

// madeImages are what no tool makes, or none makes wrong on purpose.
func madeImages() []made {
	const size = 8 * mib
	return []made{
		{"nothing", size, at{}, ""},
		{"nothing on nothing", 0, at{}, ""},
		{"nothing on a sector", 512, at{}, ""},

		{"md 0.90", size, at{size - 65536: md0(binary.LittleEndian, 4096)}, "linux_raid_member"},
		{"md 0.90 big endian", size, at{size - 65536: md0(binary.BigEndian, 4096)}, "linux_raid_member"},
		{"md 0.90, odd size", size + 5*512, at{size - 65536: md0(binary.LittleEndian, 4096)}, "linux_raid_member"},
		{"md 0.90, off a sector", size + 65535, at{size - 65536: md0(binary.LittleEndian, 4096)}, "linux_raid_member"},
		{"md 0.90, just fits", size, at{size - 65536: md0(binary.LittleEndian, (size-65536)>>10)}, "linux_raid_member"},
		{"md 0.90 of something larger", size, at{size - 65536: md0(binary.LittleEndian, (size-65536)>>10+1)}, ""},
		{"md 0.90 on a floppy", floppy, at{floppy - 65536: md0(binary.LittleEndian, 64)}, ""},
		{"md 1.0", size, at{size - 8192: md1(size - 8192)}, "linux_raid_member"},
		{"md 1.0, odd size", size + 512, at{size - 8192: md1(size - 8192)}, "linux_raid_member"},
		{"md 1.0 elsewhere", size, at{size - 8192: md1(size - 4096)}, ""},
		{"md 1.1", size, at{0: md1(0)}, "linux_raid_member"},
		{"md 1.2", size, at{4096: md1(4096)}, "linux_raid_member"},
		{"md of version 2", size, at{4096: put32(0xa92b4efc) + put32(2) + string(md1(4096)[8:])}, ""},
		{"md, all versions", size, at{0: md1(0), 4096: md1(4096), size - 8192: md1(size - 8192), size - 65536: md0(binary.LittleEndian, 64)}, "linux_raid_member"},
		{"DDF", size, at{size - 512: put32b(0xde11de11) + block(508, at{4: "guid", 28: "01.02.00"})}, "ddf_raid_member"},
		{"DDF little endian", size, at{size - 512: put32(0xde11de11) + block(508, at{28: "01.02.00"})}, "ddf_raid_member"},
		{"DDF before a workspace", size, at{size - 257*512: put32b(0xde11de11)}, "ddf_raid_member"},
		{"DDF, both", size, at{size - 512: put32b(0xde11de11), size - 257*512: put32b(0xde11de11)}, "ddf_raid_member"},
		{"DDF, primary elsewhere", size, at{size - 512: put32b(0xde11de11) + block(508, at{92: put64b(7)})}, ""},
		{"DDF, primary there", size, at{7 * 512: put32b(0xde11de11), size - 512: put32b(0xde11de11) + block(508, at{92: put64b(7)})}, "ddf_raid_member"},
		{"DDF, wild primary", size, at{size - 512: put32b(0xde11de11) + block(508, at{92: put64b(1 << 55)})}, ""},
		{"IMSM", size, at{size - 1024: "Intel Raid ISM Cfg Sig. 1.3.00"}, "isw_raid_member"},
		{"IMSM, other case", size, at{size - 1024: "INTEL RAID ISM CFG SIG. 1.3.00"}, ""},
		{"bcache", size, at{4096: block(4096, at{8: put64(8), 24: families[3].magics[0].text})}, "bcache"},
		{"bcache elsewhere", size, at{4096: block(4096, at{8: put64(9), 24: families[3].magics[0].text})}, ""},
		{"bcachefs", size, at{4096: bcachefs(0, 1, 10)}, "bcachefs"},
		{"bcachefs, device of none", size, at{4096: bcachefs(1, 1, 10)}, ""},
		{"bcachefs, no devices", size, at{4096: bcachefs(0, 0, 10)}, ""},
		{"bcachefs, largest", size, at{4096: bcachefs(0, 1, 418)}, "bcachefs"},
		{"bcachefs, too large", size, at{4096: bcachefs(0, 1, 419)}, ""},
		{"bluestore", size, at{0: "bluestore block device\n6b1c5f9a-3d1f-4f0e-9a53-0d9a54f0c7b1\n"}, "ceph_bluestore"},
		{"bluestore on a KiB", 1024, at{0: "bluestore block device"}, ""},
		{"drbd 8", size, at{size - 4096 + 60: put32b(0x8374026b)}, "drbd"},
		{"drbd 8.4 unclean", size, at{size - 4096 + 60: put32b(0x8374026c)}, "drbd"},
		{"drbd 9", size, at{size - 4096 + 60: put32b(0x8374026d)}, "drbd"},
		{"drbd 7", size, at{size - 4096 + 60: put32b(0x8374026a)}, ""},
		{"drbd, odd size", size + 512, at{size + 512 - 4096 + 60: put32b(0x8374026d)}, "drbd"},

		{"LVM2, first sector", size, at{0: lvm2(0)}, "LVM2_member"},
		{"LVM2, second sector", size, at{512: lvm2(1)}, "LVM2_member"},
		{"LVM2, third sector", size, at{1024: lvm2(2)}, "LVM2_member"},
		{"LVM2, fourth sector", size, at{1536: lvm2(3)}, "LVM2_member"},
		{"LVM2, fifth sector", size, at{2048: lvm2(4)}, ""},
		{"LVM2, wrong sector", size, at{512: lvm2(2)}, ""},
		{"LVM2, all sectors", size, at{0: lvm2(0), 512: lvm2(1), 1024: lvm2(2), 1536: lvm2(3)}, "LVM2_member"},
		{"LVM2 without label", size, at{536: "LVM2 001"}, ""},
		{"LVM1", size, at{0: "HM\x01\x00"}, "LVM1_member"},
		{"LVM1 of version 3", size, at{0: "HM\x03\x00"}, ""},
		{"snapshot", size, at{0: "SnAp"}, "DM_snapshot_cow"},
		{"verity of version 2", size, at{0: "verity\x00\x00\x02"}, ""},
		{"integrity", size, at{0: "integrt\x00\x01"}, "DM_integrity"},
		{"integrity of version 0", size, at{0: "integrt\x00"}, ""},
		{"LUKS 1", size, at{0: luks("LUKS\xba\xbe", 1, 7)}, "crypto_LUKS"},
		{"LUKS 2", size, at{0: luks("LUKS\xba\xbe", 2, 0), 0x4000: luks("SKUL\xba\xbe", 2, 0x4000)}, "crypto_LUKS"},
		{"LUKS 2, primary misplaced", size, at{0: luks("LUKS\xba\xbe", 2, 7)}, "crypto_LUKS"},
		{"LUKS 2, second alone at 4 MiB", size, at{0x400000: luks("SKUL\xba\xbe", 2, 0x400000)}, "crypto_LUKS"},
		{"LUKS 2, second in no place", size, at{0xc000: luks("SKUL\xba\xbe", 2, 0xc000)}, ""},
		{"LUKS 2, seconds in all places", size, at{0x4000: luks("SKUL\xba\xbe", 2, 0x4000), 0x20000: luks("SKUL\xba\xbe", 2, 0x20000), 0x200000: luks("SKUL\xba\xbe", 2, 0x200000)}, "crypto_LUKS"},
		{"LUKS of version 3", size, at{0: luks("LUKS\xba\xbe", 3, 7)}, "crypto_LUKS"},
		{"LUKS on a small device", 4096, at{0: luks("LUKS\xba\xbe", 1, 0)}, "crypto_LUKS"},
		{"VMFS volume", size, at{1 * mib: "\x0d\xd0\x01\xc0"}, "VMFS_volume_member"},
		{"VMFS", size, at{2 * mib: "\x5e\xf1\xab\x2f"}, "VMFS"},
		{"VDO", size, at{0: "dmvdo001"}, "vdo"},
		{"Stratis", size, at{512: stratis(), 9 * 512: stratis()}, "stratis"},
		{"Stratis, second alone", size, at{9 * 512: stratis()}, "stratis"},
		{"Stratis, first damaged", size, at{512: "\x00" + stratis()[1:], 9 * 512: stratis()}, "stratis"},
		{"Stratis, both damaged", size, at{512: "\x00" + stratis()[1:], 9 * 512: "\x01" + stratis()[1:]}, ""},
		{"BitLocker of Vista", size, at{0: "\xeb\x52\x90-FVE-FS-"}, "BitLocker"},
		{"BitLocker of 7", size, at{0: "\xeb\x58\x90-FVE-FS-", 176: put64(mib), mib: "-FVE-FS-"}, "BitLocker"},
		{"BitLocker To Go", size, at{0: "\xeb\x58\x90MSWIN4.1", 440: put64(mib), mib: "-FVE-FS-"}, "BitLocker"},
		{"BitLocker without metadata", size, at{0: "\xeb\x58\x90-FVE-FS-", 176: put64(mib)}, ""},
		{"BitLocker, metadata nowhere", size, at{0: "\xeb\x58\x90-FVE-FS-", 176: put64(1 << 63)}, ""},

		{"ZFS", 64 * mib, uberblocks(0, 4, put64(0xbab10c)), "zfs_member"},
		{"ZFS big endian", 64 * mib, uberblocks(0, 4, put64b(0xbab10c)), "zfs_member"},
		{"ZFS, three uberblocks", 64 * mib, uberblocks(0, 3, put64(0xbab10c)), ""},
		{"ZFS, one in each label", 64*mib + 512, at{}.with(uberblocks(0, 1, put64(0xbab10c)), uberblocks(256<<10, 1, put64(0xbab10c)),
			uberblocks(64*mib-512<<10, 1, put64(0xbab10c)), uberblocks(64*mib-256<<10, 1, put64(0xbab10c))), "zfs_member"},
		{"ZFS, full", 64*mib + 4096, at{}.with(uberblocks(0, 128, put64(0xbab10c)), uberblocks(256<<10, 128, put64(0xbab10c)),
			uberblocks(64*mib-512<<10, 128, put64(0xbab10c)), uberblocks(64*mib-256<<10, 128, put64(0xbab10c))), "zfs_member"},
		{"ZFS on a small device", 64*mib - 1, uberblocks(0, 4, put64(0xbab10c)), ""},

		{"FAT12, by the jump", size, fat.with(at{0: "\xeb\x3c\x90", 510: bootMagic}), "vfat"},
		{"FAT12, by the long jump", size, fat.with(at{0: "\xe9\x3c\x90", 510: bootMagic}), "vfat"},
		{"FAT12, by the boot magic", size, fat.with(at{510: bootMagic}), "vfat"},
		{"FAT12, without boot magic", size, fat.with(at{0: "\xeb\x3c\x90"}), ""},
		{"FAT12, named", size, fat.with(at{0x36: "FAT12   "}), "vfat"},
		{"FAT12, named, with all", size, fat.with(at{0: "\xeb", 0x36: "FAT12   ", 510: bootMagic}), "vfat"},
		{"FAT, MSDOS", size, fat.with(at{0x36: "MSDOS5.0"}), "vfat"},
		{"FAT, MSWIN", size, fat.with(at{0x52: "MSWIN4.1"}), "vfat"},
		{"FAT of JFS", size, fat.with(at{0: "\xeb", 0x36: "JFS     ", 510: bootMagic}), "dos"},
		{"FAT of HPFS", size, fat.with(at{0: "\xeb", 0x36: "HPFS    ", 510: bootMagic}), "dos"},
		{"FAT16, all clusters", size, fat.with(at{19: put16(0), 32: put32(65524 + 45), 0x36: "FAT16   "}), "vfat"},
		{"FAT16, a cluster too many", size, fat.with(at{19: put16(0), 32: put32(65525 + 45), 0x36: "FAT16   "}), ""},
		{"FAT, no FATs", size, fat.with(at{0: "\xeb", 510: bootMagic, 16: "\x00"}), "dos"},
		{"FAT, bad sector", size, fat.with(at{0: "\xeb", 510: bootMagic, 11: put16(500)}), "dos"},
		{"FAT32", 64 * mib, fat32.with(at{0x52: "FAT32   ", 512: "RRaA", 512 + 484: "rrAa"}), "vfat"},
		{"FAT32, bad information", 64 * mib, fat32.with(at{0x52: "FAT32   ", 512: "xxxx"}), ""},
		{"FAT32, bad second half", 64 * mib, fat32.with(at{0x52: "FAT32   ", 512: "RRaA", 512 + 484: "xxxx"}), ""},
		{"FAT32, blank information", 64 * mib, fat32.with(at{0x52: "FAT32   "}), "vfat"},
		{"exFAT", size, exfat(at{}), "exfat dos"},
		{"exFAT, no boot magic", size, exfat(at{510: "\x00\x00"}), "exfat"},
		{"exFAT, other jump", size, exfat(at{0: "\xeb\x77\x90"}), "exfat dos"},
		{"exFAT, clusters of 4 GiB", size, exfat(at{108: "\x0c\x14"}), "dos"},
		{"exFAT, clusters of 2 GiB", size, exfat(at{108: "\x0c\x13"}), "exfat dos"},
		{"exFAT, not zero", size, exfat(at{63: "\x01"}), "exfat dos"},
		{"NTFS", size, ntfs, "ntfs"},
		{"NTFS with boot magic", size, ntfs.with(at{0: "\xeb\x52\x90", 510: bootMagic}), "ntfs dos"},
		{"NTFS, records of a cluster", size, ntfs.with(at{64: "\x01", 16384 + 3*4096: "FILE"}), "ntfs"},
		{"NTFS without table", size, ntfs.with(at{16384: "BAAD"}), ""},
		{"NTFS, fourth record bad", size, ntfs.with(at{16384 + 3*1024: "BAAD"}), ""},
		{"NTFS with FATs", size, ntfs.with(at{16: "\x02"}), ""},
		{"NTFS, wild table", size, ntfs.with(at{48: put64(1 << 62), 40: put64(1<<64 - 1)}), ""},

		{"SWAP-SPACE", size, at{4086: "SWAP-SPACE"}, "swap"},
		{"SWAP-SPACE, 64 KiB", size, at{65526: "SWAP-SPACE"}, "swap"},
		{"SWAPSPACE2", size, swapHeader(put32(1), put32(9)).with(at{8182: "SWAPSPACE2"}), "swap"},
		{"SWAPSPACE2 big endian", size, swapHeader(put32b(1), put32b(9)).with(at{16374: "SWAPSPACE2"}), "swap"},
		{"SWAPSPACE2 of version 2", size, swapHeader(put32(2), put32(9)).with(at{4086: "SWAPSPACE2"}), ""},
		{"SWAPSPACE2 of no pages", size, swapHeader(put32(1), put32(0)).with(at{4086: "SWAPSPACE2"}), ""},
		{"swap, all pages", size, swapHeader(put32(1), put32(9)).with(at{4086: "SWAPSPACE2", 8182: "SWAPSPACE2", 16374: "SWAPSPACE2", 32758: "SWAPSPACE2", 65526: "SWAPSPACE2"}), "swap"},
		{"swap on nine pages", 9 * 4096, at{4086: "SWAP-SPACE"}, ""},
		{"S1SUSPEND", size, at{4086: "S1SUSPEND"}, "swsuspend"},
		{"S2SUSPEND", size, at{8182: "S2SUSPEND"}, "swsuspend"},
		{"ULSUSPEND", size, at{65526: "ULSUSPEND"}, "swsuspend"},
		{"LINHIB0001", size, at{4086: "LINHIB0001"}, "swsuspend"},
		{"TuxOnIce", size, swapHeader(put32(1), put32(9)).with(at{0: tuxOnIce, 4086: "SWAPSPACE2"}), "swsuspend swap"},

		{"xfs", size, xfs(at{}), "xfs"},
		{"xfs, no groups", size, xfs(at{84: put32b(0)}), ""},
		{"xfs, sector against its logarithm", size, xfs(at{98: put16b(1024)}), ""},
		{"xfs, inodes per block", size, xfs(at{116: "\x0c\x09\x09\x04"}), ""},
		{"xfs, more blocks than in groups", size, xfs(at{4: put64b(1001)}), ""},
		{"xfs, fewer blocks than in groups", size, xfs(at{4: put64b(563)}), ""},
		{"xfs, just enough blocks", size, xfs(at{4: put64b(564)}), "xfs"},
		{"xfs, inodes of more than all", size, xfs(at{123: "\x65"}), ""},
		{"xfs, no realtime extent", size, xfs(at{76: put32b(0)}), ""},
		{"xfs log", 10 * mib, at{0: xfsLog(2, 512, 1)}, "xfs_external_log"},
		{"xfs log, further on", 10 * mib, at{256<<10 - 512: xfsLog(1, 512, 3)}, "xfs_external_log"},
		{"xfs log, too far", 10 * mib, at{256 << 10: xfsLog(1, 512, 3)}, ""},
		{"xfs log, several", 10 * mib, at{0: xfsLog(2, 512, 1), 512: xfsLog(2, 512, 1), 5120: xfsLog(2, 512, 1)}, "xfs_external_log"},
		{"xfs log of version 4", 10 * mib, at{0: xfsLog(4, 512, 1)}, ""},
		{"xfs log, empty", 10 * mib, at{0: xfsLog(2, 0, 1)}, ""},
		{"xfs log of another system", 10 * mib, at{0: xfsLog(2, 512, 4)}, ""},
		{"xfs log, too small", 10*mib - 512, at{0: xfsLog(2, 512, 1)}, ""},

		{"ext2", size, ext(0, 0x12, 0x7, 0), "ext2"},
		{"ext3", size, ext(0x4, 0x16, 0x7, 0), "ext3"},
		{"ext4, extents", size, ext(0x4, 0x40, 0, 0), "ext4"},
		{"ext4, read-only feature", size, ext(0, 0, 0x8, 0), "ext4"},
		{"ext4 on test", size, ext(0x4, 0x40, 0, 4), "ext4dev"},
		{"ext3 on test", size, ext(0x4, 0, 0, 4), "ext4dev"},
		{"ext2 to recover", size, ext(0, 0x4, 0, 0), ""},
		{"journal", size, ext(0, 0x8, 0, 0), "jbd"},
		{"journal on test", size, ext(0, 0x8, 0, 4), "jbd"},
		{"journal of ext4", size, ext(0x4, 0x48, 0, 0), "jbd"},

		{"reiserfs 3.5", size, at{8192: block(256, at{12: put32(18), 44: put16(4096), 0x34: "ReIsErFs"})}, "reiserfs"},
		{"reiserfs 3.6", size, at{65536: block(256, at{12: put32(18), 44: put16(4096), 0x34: "ReIsEr2Fs"})}, "reiserfs"},
		{"reiserfs, other journal", size, at{65536: block(256, at{12: put32(32), 44: put16(4096), 0x34: "ReIsEr3Fs"})}, "reiserfs"},
		{"reiserfs, oldest", size, at{8192: block(256, at{12: put32(18), 44: put16(4096), 20: "ReIsErFs"})}, "reiserfs"},
		{"reiserfs in its journal", size, at{65536: block(256, at{12: put32(2), 44: put16(4096), 0x34: "ReIsEr2Fs"})}, ""},
		{"reiserfs without blocks", size, at{65536: block(256, at{12: put32(18), 0x34: "ReIsEr2Fs"})}, ""},
		{"reiser4", size, at{65536: "ReIsEr4"}, "reiser4"},
		{"jfs", 16 * mib, at{32768: block(256, at{0: "JFS1", 16: put32(4096), 20: put16(12), 22: put16(3), 24: put32(512), 28: put16(9)})}, "jfs"},
		{"jfs, block against its logarithm", 16 * mib, at{32768: block(256, at{0: "JFS1", 16: put32(4096), 20: put16(11), 22: put16(2), 24: put32(512), 28: put16(9)})}, ""},
		{"jfs on a small device", 16*mib - 512, at{32768: block(256, at{0: "JFS1", 16: put32(4096), 20: put16(12), 22: put16(3), 24: put32(512), 28: put16(9)})}, ""},
		{"udf", size, vrs(2048, "BEA01", "NSR02", "TEA01").with(anchor(512, 2, 256)), "udf"},
		{"udf, 1 KiB", size, vrs(2048, "BEA01", "NSR03", "TEA01").with(anchor(1024, 2, 256)), "udf"},
		{"udf, 4 KiB", size, vrs(4096, "BEA01", "NSR03", "TEA01").with(anchor(4096, 2, 256)), "udf"},
		{"udf, not closed, 512 bytes", size, vrs(2048, "BEA01", "NSR03", "TEA01").with(anchor(1024, 2, 512)), "udf"},
		{"udf, not closed, 1 KiB", size, vrs(2048, "BEA01", "NSR03", "TEA01").with(at{512 * 1024: block(16, at{0: put16(2), 12: put32(512)})}), "udf"},
		{"udf, no anchor", size, vrs(2048, "BEA01", "NSR03", "TEA01"), ""},
		{"udf, anchor misplaced", size, vrs(2048, "BEA01", "NSR03").with(anchor(2048, 2, 255)), ""},
		{"udf, other tag", size, vrs(2048, "BEA01", "NSR03").with(anchor(2048, 3, 256)), ""},
		{"udf, no NSR", size, vrs(2048, "BEA01", "TEA01").with(anchor(2048, 2, 256)), ""},
		{"udf and iso9660", size, vrs(2048, "CD001", "BEA01", "NSR02", "TEA01").with(anchor(2048, 2, 256)), "udf"},
		{"iso9660", size, at{32768: "\x01CD001"}, "iso9660"},
		{"iso9660, boot record first", size, at{32768: "\x00CD001", 34816: "\x01CD001"}, "iso9660"},
		{"iso9660, primary last", size, at{32768: "\x00CD001", 32768 + 15*2048: "\x01"}, "iso9660"},
		{"iso9660, primary too late", size, at{32768: "\x00CD001", 32768 + 16*2048: "\x01"}, ""},
		{"iso9660, primary after the end", size, at{32768: "\x00CD001", 34816: "\xffCD001", 36864: "\x01CD001"}, ""},
		{"iso9660, the smallest", 34 * 1024, at{32768: "\x01CD001"}, "iso9660"},
		{"High Sierra", size, at{32768 + 9: "CDROM"}, "iso9660"},

		{"HFS+", size, at{1024: block(512, at{0: "H+", 40: put32b(4096)})}, "hfsplus"},
		{"HFSX", size, at{1024: block(512, at{0: "HX", 40: put32b(4096)})}, "hfsplus"},
		{"HFS+, tiny blocks", size, at{1024: block(512, at{0: "H+", 40: put32b(256)})}, ""},
		{"HFS", size, at{1024: hfs("BD", "", 4096, 0)}, "hfs"},
		{"HFS, odd blocks", size, at{1024: hfs("BD", "", 4097, 0)}, ""},
		{"HFS, no blocks", size, at{1024: hfs("BD", "", 0, 0)}, ""},
		{"HFS around HFS+", size, at{1024: hfs("BD", "H+", 4096, 2), 4*512 + 2*4096 + 1024: block(512, at{0: "H+", 40: put32b(4096)})}, "hfsplus"},
		{"HFS around nothing", size, at{1024: hfs("BD", "H+", 4096, 2)}, ""},
		{"UFS", size, at{8192 + 1372: put32(0x00011954)}, "ufs"},
		{"UFS 2", size, at{65536 + 1372: put32(0x19540119)}, "ufs"},
		{"UFS 2 big endian, far", size, at{256<<10 + 1372: put32b(0x19540119)}, "ufs"},
		{"UFS, others", size, at{1372: put32(0x00195612), 8192 + 1372: put32(0x00095014), 65536 + 1372: put32(0x00612195), 256<<10 + 1372: put32(0x05231994)}, "ufs"},
		{"ReFS", size, at{0: "\x00\x00\x00ReFS\x00"}, "ReFS"},
		{"GFS", 32 * mib, at{65536: "\x01\x16\x19\x70" + block(508, at{20: put32b(1309), 24: put32b(1401)})}, "gfs"},
		{"GFS2", 32 * mib, at{65536: "\x01\x16\x19\x70" + block(508, at{20: put32b(1801), 24: put32b(1900)})}, "gfs2"},
		{"GFS2 of 1800", 32 * mib, at{65536: "\x01\x16\x19\x70" + block(508, at{20: put32b(1800), 24: put32b(1999)})}, "gfs2"},
		{"GFS2 of 1899", 32 * mib, at{65536: "\x01\x16\x19\x70" + block(508, at{20: put32b(1899), 24: put32b(1900)})}, "gfs2"},
		{"GFS2 of 1799", 32 * mib, at{65536: "\x01\x16\x19\x70" + block(508, at{20: put32b(1799), 24: put32b(1900)})}, ""},
		{"GFS2 of 1900", 32 * mib, at{65536: "\x01\x16\x19\x70" + block(508, at{20: put32b(1900), 24: put32b(1900)})}, ""},
		{"GFS2, other hosts", 32 * mib, at{65536: "\x01\x16\x19\x70" + block(508, at{20: put32b(1801), 24: put32b(2000)})}, ""},
		{"OCFS", 14 * mib, at{8192: "OracleCFS"}, "ocfs"},
		{"OCFS2, all places", 14 * mib, at{1024: "OCFSV2", 2048: "OCFSV2", 4096: "OCFSV2", 8192: "OCFSV2"}, "ocfs2"},
		{"OCFS2 on a small device", size, at{1024: "OCFSV2"}, ""},
		{"Oracle ASM", size, at{32: "ORCLDISK"}, "oracleasm"},
		{"VxFS", size, at{1024: "\xf5\xfc\x01\xa5"}, "vxfs"},
		{"VxFS big endian", size, at{8192: "\xa5\x01\xfc\xf5"}, "vxfs"},
		{"squashfs of version 3", size, at{0: "hsqs" + block(60, at{24: put16(3)})}, "squashfs3"},
		{"squashfs big endian", size, at{0: "sqsh" + block(60, at{24: put16b(3)})}, "squashfs3"},
		{"squashfs big endian of version 4", size, at{0: "sqsh" + block(60, at{24: put16b(4)})}, ""},
		{"squashfs of version 4", size, at{0: "hsqs" + block(60, at{24: put16(4)})}, "squashfs"},
		{"btrfs", 128 * mib, at{65600: "_BHRfS_M", 64*mib + 64: "_BHRfS_M"}, "btrfs"},
		{"btrfs, copy alone", 128 * mib, at{64*mib + 64: "_BHRfS_M"}, ""},
		{"nilfs2", size, at{1024: nilfs2(size, 1), size - 4096: nilfs2(size, 1)}, "nilfs2"},
		{"nilfs2, copy newer", size, at{1024: nilfs2(size, 1), size - 4096: nilfs2(size, 2)}, "nilfs2"},
		{"nilfs2, copy of another size", size, at{size - 4096: nilfs2(size-512, 2)}, "nilfs2"},
		{"nilfs2 of another size", size, at{1024: nilfs2(size-512, 2)}, "nilfs2"},
		{"nilfs2, wrong sum", size, at{1024: nilfs2(size, 1)[:279] + "x"}, "nilfs2"},
		{"nilfs2, wild length", size, at{1024: nilfs2(size, 1)[:8] + put16(1025) + nilfs2(size, 1)[10:]}, ""},
		{"f2fs", size, at{1024: "\x10\x20\xf5\xf2" + put16(1) + put16(16)}, "f2fs"},
		{"f2fs 1.0", size, at{1024: "\x10\x20\xf5\xf2" + put16(1)}, "f2fs"},
		{"apfs", size, at{0: apfs(1, 0, 0, 4096)}, "apfs"},
		{"apfs, other type", size, at{0: apfs(2, 0, 0, 4096)}, ""},
		{"apfs, other subtype", size, at{0: apfs(1, 1, 0, 4096)}, ""},
		{"apfs, padding", size, at{0: apfs(1, 0, 1, 4096)}, ""},
		{"apfs, other blocks", size, at{0: apfs(1, 0, 0, 8192)}, ""},
		{"zonefs", size, at{0: "SFOZ"}, "zonefs"},
		{"erofs", size, at{1024: "\xe2\xe1\xf5\xe0" + block(60, at{8: "\x0c"})}, "erofs"},
		{"erofs, wild blocks", size, at{1024: "\xe2\xe1\xf5\xe0" + block(60, at{8: "\x20"})}, "erofs"},

		{"SGI", size, at{0: "\x0b\xe5\xa9\x41", 504: put32b(-0x0be5a941 & 0xffffffff)}, "sgi"},
		{"SGI, wrong sum", size, at{0: "\x0b\xe5\xa9\x41"}, ""},
		{"Sun", size, at{508: "\xda\xbe\xda\xbe"}, "sun"},
		{"Sun, wrong sum", size, at{508: "\xda\xbe\xda\xbf"}, ""},
		{"Mac", size, at{0: "ER" + put16b(512), 512: "PM"}, "mac"},
		{"Mac, old", size, at{0: "ER" + put16b(2048), 2048: "TS"}, "mac"},
		{"Mac, no map", size, at{0: "ER" + put16b(512)}, ""},
		{"Mac, no blocks", size, at{0: "ER"}, ""},
		{"Mac, blocks of no power", size, at{0: "ER" + put16b(513), 513: "PM"}, "mac"},
		{"Mac, small blocks", size, at{0: "ER" + put16b(256), 256: "PM"}, "mac"},
		{"Mac, blocks of 1536", size, at{0: "ER" + put16b(1536), 1536: "PM"}, "mac"},
		{"BSD label, which wipefs leaves alone", size, at{512: "\x57\x45\x56\x82"}, ""},

		{"MBR", size, at{446: partition(0x80, 0x83), 510: bootMagic}, "dos"},
		{"MBR, empty", size, at{510: bootMagic}, "dos"},
		{"MBR, bad indicator", size, at{446: partition(0x81, 0x83), 510: bootMagic}, ""},
		{"MBR, bad last indicator", size, at{446 + 48: partition(1, 0), 510: bootMagic}, ""},
		{"MBR of AIX", size, at{0: "\xc9\xc2\xd4\xc1", 510: bootMagic}, "aix dos"},
		{"MBR with boot code", size, at{0: "\xeb\x63\x90", 446: partition(0x80, 0x83), 510: bootMagic}, "dos"},
		{"MBR on a sector", 512, at{510: bootMagic}, ""},
		{"MBR, a byte short of a KiB", 1023, at{510: bootMagic}, ""},
		{"MBR on a KiB", 1024, at{510: bootMagic}, "dos"},
		{"MBR before LVM", size, at{510: bootMagic, 512: lvm2(1)}, "LVM2_member dos"},
		{"MBR with a partition before LVM", size, at{446: partition(0x80, 0x83), 510: bootMagic, 512: lvm2(1)}, "LVM2_member dos"},
		{"MBR of a GPT alone", size, at{446: partition(0, 0xee), 510: bootMagic}, "PMBR"},
		{"MBR of a GPT, fourth entry", size, at{446 + 48: partition(0, 0xee), 510: bootMagic}, "PMBR"},
		{"GPT", size, gptHeader(512, 1, size/512, nil).with(gptHeader(512, size/512-1, size/512, nil), at{446: partition(0, 0xee), 510: bootMagic}), "gpt PMBR"},
		{"GPT without PMBR", size, gptHeader(512, 1, size/512, nil), "gpt"},
		{"GPT under MBR", size, gptHeader(512, 1, size/512, nil).with(at{446: partition(0x80, 0x83), 510: bootMagic}), "gpt dos"},
		{"GPT, backup alone", size, gptHeader(512, size/512-1, size/512, nil), "gpt"},
		{"GPT, wrong sum", size, gptHeader(512, 1, size/512, nil).with(at{512 + 40: "\xff"}), ""},
		{"GPT elsewhere", size, gptHeader(512, 1, size/512, at{24: put64(2)}), ""},
		{"GPT, header too long", size, gptHeader(512, 1, size/512, at{12: put32(513)}), ""},
		{"GPT, header too short", size, gptHeader(512, 1, size/512, at{12: put32(91)}), ""},
		{"GPT, usable end before start", size, gptHeader(512, 1, size/512, at{48: put64(39)}), ""},
		{"GPT, usable beyond the end", size, gptHeader(512, 1, size/512, at{48: put64(size / 512)}), ""},
		{"GPT, header in the usable", size, gptHeader(512, 1, size/512, at{40: put64(0)}), ""},
		{"GPT, entries of 256", size, gptHeader(512, 1, size/512, at{84: put32(256)}), ""},
		{"GPT, no entries", size, gptHeader(512, 1, size/512, at{80: put32(0)}), ""},
		{"GPT, entries of another sum", size, gptHeader(512, 1, size/512, nil).with(at{2048: "x"}), ""},
		{"GPT, entries nowhere", size, gptHeader(512, 1, size/512, at{72: put64(1 << 60)}), ""},
		{"GPT, too many entries", size, gptHeader(512, 1, size/512, at{80: put32(1<<32 - 1)}), ""},
		{"GPT on a floppy", floppy, gptHeader(512, 1, floppy/512, nil), "gpt"},

		{"btrfs under GPT", size, at{65600: "_BHRfS_M"}.with(gptHeader(512, 1, size/512, nil), at{446: partition(0, 0xee), 510: bootMagic}), "btrfs gpt PMBR"},
		{"much", 64 * mib, ext(0x4, 0x40, 0, 0).with(at{0: luks("LUKS\xba\xbe", 1, 0), 4086: "SWAP-SPACE", 65600: "_BHRfS_M", 2 * mib: "\x5e\xf1\xab\x2f",
			64*mib - 65536: md0(binary.LittleEndian, 64), 64*mib - 1024: "Intel Raid ISM Cfg Sig. "}), "ext4 crypto_LUKS swap btrfs VMFS linux_raid_member isw_raid_member"},
	}
}

// write makes the file of the image.
func (m made) write(t testing.TB, path string) {
	t.Helper()
	blank(t, path, m.size)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, off := range slices.Sorted(maps.Keys(m.at)) {
		if _, err := f.WriteAt([]byte(m.at[off]), off); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := f.Stat(); err != nil || info.Size() != m.size {
		t.Fatalf("%s: the image does not fit into %d bytes (%v)", m.name, m.size, err)
	}
}

// writeAll makes the files of images.
func writeAll(t testing.TB, images []made) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for i, m := range images {
		path := filepath.Join(dir, strconv.Itoa(i))
		m.write(t, path)
		paths = append(paths, path)
	}
	return paths
}

// TestSignaturesMadeByHand holds Signatures against wipefs on madeImages, before
// and after they are erased.
func TestSignaturesMadeByHand(t *testing.T) {
	t.Parallel()
	images := madeImages()
	paths := writeAll(t, images)
	lists := make([][]Signature, len(images))
	theirs := wipefsAll(t, paths)
	for i, m := range images {
		t.Run(m.name, func(t *testing.T) {
			lists[i] = same(t, paths[i], m.want, theirs[strconv.Itoa(i)])
			eraseFile(t, paths[i], lists[i])
		})
	}
	theirs = wipefsAll(t, paths)
	for i, m := range images {
		t.Run(m.name+" erased", func(t *testing.T) {
			clean(t, paths[i], lists[i], theirs[strconv.Itoa(i)])
		})
	}
}

// TestSignaturesOfEveryFamily: no family of the table goes untested.
func TestSignaturesOfEveryFamily(t *testing.T) {
	tested := map[string]bool{"DM_verity_hash": true} // by veritysetup
	for _, m := range madeImages() {
		for _, name := range strings.Fields(m.want) {
			tested[name] = true
		}
	}
	for _, f := range families {
		if !tested[f.name] {
			t.Errorf("no image made by hand has %s", f.name)
		}
	}
}
