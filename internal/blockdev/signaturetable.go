// SPDX-License-Identifier: Apache-2.0

package blockdev

// floppy is the size, in bytes, up to which wipefs looks for no RAID member.
const floppy = 1440 << 10

// family is one kind of signature.
type family struct {
	name string
	// min is the smallest device, in bytes, on which it can be.
	min int64
	// raid: not looked for on devices of at most a floppy's size.
	raid bool
	// magics are tried in their order. The first that is there decides: if check
	// refuses it, the others are not looked at. So does wipefs, and boot sectors
	// that are no vfat rely on it.
	magics []magic
	// check looks at what the magic stands in, which begins at sb. nil means that
	// the magic is enough.
	check func(d *image, sb int64, m magic) bool
	// search stands in for magics and check where the place or the bytes are not
	// the same on every device.
	search func(d *image) (mark, bool)
}

// magic is a constant string in a superblock.
type magic struct {
	text string
	sb   int64 // where the superblock begins
	off  int64 // from there to the magic
}

// mark is where a signature was found.
type mark struct {
	off    int64
	length int
}

// fits tells whether the family is looked for on a device of this size.
func (f *family) fits(size int64) bool {
	return size >= f.min && (!f.raid || size > floppy)
}

// look returns the family's first signature, if there is one.
func (f *family) look(d *image) (mark, bool) {
	if f.search != nil {
		return f.search(d)
	}
	m, ok := f.first(d)
	if !ok || f.check != nil && !f.check(d, m.sb, m) {
		return mark{}, false
	}
	return mark{off: m.sb + m.off, length: len(m.text)}, true
}

// first returns the first of the family's magics that is on the device. Magics
// count only where the whole KiB around them lies within it: wipefs reads them so.
func (f *family) first(d *image) (magic, bool) {
	for _, m := range f.magics {
		at := m.sb + m.off
		if d.inside(at&^1023, 1024) && d.has(at, m.text) {
			return m, true
		}
	}
	return magic{}, false
}

// superblockMin is the size up to which a device is too small for anything but
// a partition table.
const superblockMin = 1025

// families has all of them, in the order in which wipefs looks. The order
// matters, as each looks at what those before it have left.
var families = []family{
	// RAID and volume managers.
	{name: "linux_raid_member", min: superblockMin, raid: true, search: searchMD},
	{name: "ddf_raid_member", min: 0x30000, raid: true, search: searchDDF},
	{name: "isw_raid_member", min: 0x10000, raid: true, search: searchISW},
	{name: "bcache", min: 8192, check: checkBcache, magics: []magic{
		{"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", 4096, 24},
	}},
	{name: "bcachefs", min: 256 * 512, check: checkBcachefs, magics: []magic{
		{"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", 4096, 24},
		{"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", 4096, 24},
	}},
	{name: "ceph_bluestore", min: superblockMin, magics: []magic{{"bluestore block device", 0, 0}}},
	{name: "drbd", min: 0x10000, raid: true, search: searchDRBD},
	{name: "LVM2_member", min: superblockMin, raid: true, check: checkLVM2, magics: []magic{
		{"LVM2 001", 0, 512 + 24},
		{"LVM2 001", 0, 24},
		{"LVM2 001", 1024, 24},
		{"LVM2 001", 1024, 512 + 24},
	}},
	{name: "LVM1_member", min: superblockMin, raid: true, check: checkLVM1, magics: []magic{{"HM", 0, 0}}},
	{name: "DM_snapshot_cow", min: superblockMin, magics: []magic{{"SnAp", 0, 0}}},
	{name: "DM_verity_hash", min: superblockMin, check: checkVerity, magics: []magic{{"verity\x00\x00", 0, 0}}},
	{name: "DM_integrity", min: superblockMin, check: checkIntegrity, magics: []magic{{"integrt\x00", 0, 0}}},
	{name: "crypto_LUKS", min: superblockMin, search: searchLUKS},
	{name: "VMFS_volume_member", min: superblockMin, raid: true, magics: []magic{{"\x0d\xd0\x01\xc0", 1 << 20, 0}}},
	{name: "vdo", min: superblockMin, magics: []magic{{"dmvdo001", 0, 0}}},
	{name: "stratis", min: 8192, raid: true, check: checkStratis, magics: []magic{
		{"!Stra0tis\x86\xff\x02^\x41rh", 0, 512 + 4},
		{"!Stra0tis\x86\xff\x02^\x41rh", 0, 9*512 + 4},
	}},
	bitLocker,

	// Filesystems and swap.
	vfat,
	{name: "swsuspend", min: 10 * 4096, magics: suspendMagics},
	{name: "swap", min: 10 * 4096, check: checkSwap, magics: swapMagics},
	{name: "xfs", min: superblockMin, check: checkXFS, magics: []magic{{"XFSB", 0, 0}}},
	{name: "xfs_external_log", min: 10 << 20, search: searchXFSLog},
	{name: "ext4dev", min: superblockMin, check: checkExt4dev, magics: extMagics},
	{name: "ext4", min: superblockMin, check: checkExt4, magics: extMagics},
	{name: "ext3", min: superblockMin, check: checkExt3, magics: extMagics},
	{name: "ext2", min: superblockMin, check: checkExt2, magics: extMagics},
	{name: "jbd", min: superblockMin, check: checkJBD, magics: extMagics},
	{name: "reiserfs", min: 128 << 10, check: checkReiserfs, magics: []magic{
		{"ReIsErFs", 8 << 10, 0x34},
		{"ReIsEr2Fs", 64 << 10, 0x34},
		{"ReIsEr3Fs", 64 << 10, 0x34},
		{"ReIsErFs", 64 << 10, 0x34},
		{"ReIsErFs", 8 << 10, 20},
	}},
	{name: "reiser4", min: 128 << 10, magics: []magic{{"ReIsEr4", 64 << 10, 0}}},
	{name: "jfs", min: 16 << 20, check: checkJFS, magics: []magic{{"JFS1", 32 << 10, 0}}},
	{name: "udf", min: superblockMin, check: checkUDF, magics: []magic{
		{"BEA01", 32 << 10, 1},
		{"BOOT2", 32 << 10, 1},
		{"CD001", 32 << 10, 1},
		{"CDW02", 32 << 10, 1},
		{"NSR02", 32 << 10, 1},
		{"NSR03", 32 << 10, 1},
		{"TEA01", 32 << 10, 1},
	}},
	{name: "iso9660", min: superblockMin, check: checkISO9660, magics: []magic{
		{"CD001", 32 << 10, 1},
		{"CDROM", 32 << 10, 9},
	}},
	{name: "zfs_member", min: 64 << 20, raid: true, search: searchZFS},
	{name: "hfsplus", min: superblockMin, check: checkHFSPlus, magics: []magic{
		{"BD", 1024, 0},
		{"H+", 1024, 0},
		{"HX", 1024, 0},
	}},
	{name: "hfs", min: superblockMin, check: checkHFS, magics: []magic{{"BD", 1024, 0}}},
	{name: "ufs", min: superblockMin, search: searchUFS},
	{name: "ntfs", min: superblockMin, check: checkNTFS, magics: []magic{{"NTFS    ", 0, 3}}},
	{name: "ReFS", min: superblockMin, magics: []magic{{"\x00\x00\x00ReFS\x00", 0, 0}}},
	{name: "gfs", min: 32 << 20, check: checkGFS, magics: gfsMagics},
	{name: "gfs2", min: 32 << 20, check: checkGFS2, magics: gfsMagics},
	{name: "ocfs", min: 14000 << 10, magics: []magic{{"OracleCFS", 8 << 10, 0}}},
	{name: "ocfs2", min: 14000 << 10, magics: []magic{
		{"OCFSV2", 1 << 10, 0},
		{"OCFSV2", 2 << 10, 0},
		{"OCFSV2", 4 << 10, 0},
		{"OCFSV2", 8 << 10, 0},
	}},
	{name: "oracleasm", min: superblockMin, magics: []magic{{"ORCLDISK", 0, 32}}},
	{name: "vxfs", min: superblockMin, magics: []magic{
		{"\xf5\xfc\x01\xa5", 1 << 10, 0},
		{"\xa5\x01\xfc\xf5", 8 << 10, 0},
	}},
	{name: "squashfs", min: superblockMin, check: checkSquashfs, magics: []magic{{"hsqs", 0, 0}}},
	{name: "squashfs3", min: superblockMin, check: checkSquashfs3, magics: []magic{
		{"sqsh", 0, 0},
		{"hsqs", 0, 0},
	}},
	// Copies at 64 MiB and 256 GiB are left out, as wipefs does: nothing mounts by
	// them unless told to, and mkfs.btrfs does not ask for them.
	{name: "btrfs", min: 1 << 20, check: checkBtrfs, magics: []magic{{"_BHRfS_M", 64 << 10, 0x40}}},
	{name: "VMFS", min: superblockMin, magics: []magic{{"\x5e\xf1\xab\x2f", 2 << 20, 0}}},
	{name: "nilfs2", min: 1 << 20, search: searchNILFS2},
	{name: "exfat", min: superblockMin, check: checkExFAT, magics: []magic{{"EXFAT   ", 0, 3}}},
	{name: "f2fs", min: superblockMin, magics: []magic{{"\x10\x20\xf5\xf2", 1024, 0}}},
	{name: "apfs", min: superblockMin, check: checkAPFS, magics: []magic{{"NXSB", 0, 32}}},
	{name: "zonefs", min: superblockMin, magics: []magic{{"SFOZ", 0, 0}}},
	{name: "erofs", min: superblockMin, magics: []magic{{"\xe2\xe1\xf5\xe0", 1024, 0}}},

	// Partition tables.
	{name: "aix", magics: []magic{{"\xc9\xc2\xd4\xc1", 0, 0}}},
	{name: "sgi", check: checkSGI, magics: []magic{{"\x0b\xe5\xa9\x41", 0, 0}}},
	{name: "sun", check: checkSun, magics: []magic{{"\xda\xbe", 0, 508}}},
	{name: "dos", check: checkDOS, magics: []magic{{bootMagic, 0, bootMagicOff}}},
	{name: "gpt", search: searchGPT},
	{name: "PMBR", check: checkPMBR, magics: []magic{{bootMagic, 0, bootMagicOff}}},
	{name: "mac", check: checkMac, magics: []magic{{"ER", 0, 0}}},
}

// extMagics are those of ext2, ext3, ext4 and of an external journal of theirs.
var extMagics = []magic{{"\x53\xef", 1024, 0x38}}

var gfsMagics = []magic{{"\x01\x16\x19\x70", 64 << 10, 0}}

// The magics of swap stand at the end of the first page, whatever the size of
// a page was where the swap was made; those of a suspended system take their
// place. TuxOnIce writes at the start and leaves the magic of swap standing.
var (
	swapMagics    = atPageEnds("SWAP-SPACE", "SWAPSPACE2")
	suspendMagics = append([]magic{{tuxOnIce, 0, 0}},
		atPageEnds("S1SUSPEND", "S2SUSPEND", "ULSUSPEND", "LINHIB0001")...)
)

const tuxOnIce = "\xed\xc3\x02\xe9\x98\x56\xe5\x0c"

// atPageEnds returns each text at the last ten bytes of a page, for pages of
// 4 KiB to 64 KiB.
func atPageEnds(texts ...string) []magic {
	var magics []magic
	for page := int64(4096); page <= 65536; page *= 2 {
		for _, text := range texts {
			magics = append(magics, magic{text, 0, page - 10})
		}
	}
	return magics
}
