// SPDX-License-Identifier: Apache-2.0

package blockdev

import "hash/crc32"

// A partition table of a master boot record: four entries of 16 bytes.
const (
	mbrTable    = 446
	mbrEntry    = 16
	typeGPT     = 0xee // in byte 4 of an entry: all of this disk is a GPT's
	gptMinEntry = 128
)

// mbrTypes returns the types of the four partitions.
func mbrTypes(b []byte) (types [4]byte) {
	for i := range types {
		types[i] = b[mbrTable+i*mbrEntry+4]
	}
	return types
}

// checkDOS tells a partition table from the boot sector of a filesystem, and
// from the record that protects a GPT.
func checkDOS(d *image, _ int64, _ magic) bool {
	b := d.bytes(0, 512)
	if b == nil {
		return false
	}
	for i := range 4 {
		if active := b[mbrTable+i*mbrEntry]; active != 0 && active != 0x80 {
			return false
		}
	}
	for _, t := range mbrTypes(b) {
		if t == typeGPT {
			return false
		}
	}
	m, ok := vfat.first(d)
	return !ok || !isFAT(d, 0, m)
}

// checkSGI: the words of the label add up to zero.
func checkSGI(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 512)
	if b == nil {
		return false
	}
	var sum uint32
	for ; len(b) > 0; b = b[4:] {
		sum += be.Uint32(b)
	}
	return sum == 0
}

// checkSun: the halfwords of the label cancel each other out.
func checkSun(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 512)
	if b == nil {
		return false
	}
	var sum uint16
	for ; len(b) > 0; b = b[2:] {
		sum ^= be.Uint16(b)
	}
	return sum == 0
}

// checkMac wants an entry of the partition map in the second block, of the size
// that the first one tells.
func checkMac(d *image, sb int64, _ magic) bool {
	b := d.bytes(sb, 512)
	if b == nil {
		return false
	}
	size := int64(be.Uint16(b[2:]))
	entry := d.bytes(sb+size, int(max(size, 2)))
	return entry != nil && (string(entry[:2]) == "PM" || string(entry[:2]) == "TS")
}

// protects tells whether there is a record that protects a GPT.
func protects(d *image) bool {
	b := d.bytes(0, 512)
	if b == nil || string(b[bootMagicOff:]) != bootMagic {
		return false
	}
	for _, t := range mbrTypes(b) {
		if t == typeGPT {
			return true
		}
	}
	return false
}

// checkPMBR: where there is a GPT, that one is found first, and hidden.
func checkPMBR(d *image, _ int64, _ magic) bool {
	if !protects(d) {
		return false
	}
	_, gpt := searchGPT(d)
	return !gpt
}

// searchGPT finds a header in the second or in the last logical block.
func searchGPT(d *image) (mark, bool) {
	for _, block := range []int64{512, 4096} {
		if d.size < block {
			continue
		}
		last := d.size/block - 1
		for _, lba := range []int64{1, last} {
			if isGPT(d, block, lba, uint64(last)) {
				return mark{lba * block, 8}, true
			}
		}
	}
	return mark{}, false
}

// isGPT holds the header at lba against its checksums and the disk
// (UEFI Specification, 5.3.2).
func isGPT(d *image, block, lba int64, last uint64) bool {
	b := d.bytes(lba*block, int(block))
	if b == nil || string(b[:8]) != "EFI PART" {
		return false
	}
	size := le.Uint32(b[12:])
	if size < 92 || size > uint32(block) {
		return false
	}
	sum := crc32.ChecksumIEEE(b[:16])
	sum = crc32.Update(sum, crc32.IEEETable, make([]byte, 4))
	sum = crc32.Update(sum, crc32.IEEETable, b[20:size])
	if sum != le.Uint32(b[16:]) || le.Uint64(b[24:]) != uint64(lba) {
		return false
	}
	first, end := le.Uint64(b[40:]), le.Uint64(b[48:])
	if end < first || end > last || first < uint64(lba) && uint64(lba) < end {
		return false
	}
	count, each := uint64(le.Uint32(b[80:])), uint64(le.Uint32(b[84:]))
	if each != gptMinEntry || count == 0 || count*each > 1<<32-2 {
		return false
	}
	return gptEntries(d, block, le.Uint64(b[72:]), count*each, le.Uint32(b[88:]))
}

// gptEntriesMax is where the checking of the entries ends: a hundred times what
// anybody makes. A header whose own checksum is right and that claims more is
// believed, rather than have the whole device read for it.
const gptEntriesMax = 2 << 20

// gptEntries holds the table of partitions against its checksum.
func gptEntries(d *image, block int64, lba, length uint64, want uint32) bool {
	off := lba * uint64(block)
	if lba > uint64(d.size)/uint64(block) || uint64(d.size)-off < length {
		return false
	}
	if length > gptEntriesMax {
		return true
	}
	b := d.bytes(int64(off), int(length))
	return b != nil && crc32.ChecksumIEEE(b) == want
}
