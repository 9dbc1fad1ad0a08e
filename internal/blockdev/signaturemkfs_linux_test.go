// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mib = 1 << 20

// TestSignaturesAgreeWithWipefs holds Signatures against wipefs on what the
// tools themselves make.
func TestSignaturesAgreeWithWipefs(t *testing.T) {
	const id = "6b1c5f9a-3d1f-4f0e-9a53-0d9a54f0c7b1"
	for _, c := range []struct {
		name  string
		size  int64
		stdin string
		// cmd is a command line, in which @ is the image and % an empty directory
		// with one file in it.
		cmd  string
		want string
	}{
		{"ext2", mib, "", "mkfs.ext2 -q -F -U " + id + " @", "ext2"},
		{"ext2 4 KiB blocks", 2 * mib, "", "mkfs.ext2 -q -F -b 4096 -U " + id + " @", "ext2"},
		{"ext3", 4 * mib, "", "mkfs.ext3 -q -F -U " + id + " @", "ext3"},
		{"ext4", 4 * mib, "", "mkfs.ext4 -q -F -U " + id + " @", "ext4"},
		{"ext4 without journal", 4 * mib, "", "mkfs.ext4 -q -F -O ^has_journal -U " + id + " @", "ext4"},
		{"ext4 test_fs", 4 * mib, "", "mkfs.ext4 -q -F -E test_fs -U " + id + " @", "ext4dev"},
		{"ext journal", 8 * mib, "", "mke2fs -q -F -O journal_dev -U " + id + " @", "jbd"},
		{"xfs", 300 * mib, "", "mkfs.xfs -q -f -m uuid=" + id + " @", "xfs"},
		{"xfs 4 KiB sectors", 300 * mib, "", "mkfs.xfs -q -f -s size=4096 @", "xfs"},
		{"btrfs", 114 * mib, "", "mkfs.btrfs -q -f -U " + id + " @", "btrfs"},
		{"FAT12", mib, "", "mkfs.vfat -i 12345678 -F 12 @", "vfat"},
		{"FAT16", 16 * mib, "", "mkfs.vfat -i 12345678 -F 16 @", "vfat"},
		{"FAT32", 64 * mib, "", "mkfs.vfat -i 12345678 -F 32 @", "vfat"},
		{"FAT32 4 KiB sectors", 300 * mib, "", "mkfs.vfat -i 12345678 -F 32 -S 4096 @", "vfat"},
		{"FAT32 with MBR", 64 * mib, "", "mkfs.vfat -i 12345678 -F 32 --mbr=y @", "vfat"},
		{"exfat", 4 * mib, "", "mkfs.exfat @", "exfat dos"},
		{"ntfs", 2 * mib, "", "mkfs.ntfs -q -F -Q -s 512 -p 0 -H 0 -S 0 @", "ntfs dos"},
		{"f2fs", 64 * mib, "", "mkfs.f2fs -q -f @", "f2fs"},
		{"swap", mib, "", "mkswap -U " + id + " @", "swap"},
		{"swap 8 KiB pages", 2 * mib, "", "mkswap -p 8192 -U " + id + " @", "swap"},
		{"swap 16 KiB pages", 2 * mib, "", "mkswap -p 16384 -U " + id + " @", "swap"},
		{"swap 64 KiB pages", 2 * mib, "", "mkswap -p 65536 -U " + id + " @", "swap"},
		{"LUKS 1", 4 * mib, "secret", "cryptsetup luksFormat -q --type luks1 --pbkdf-force-iterations 1000 --uuid " + id + " @ -", "crypto_LUKS"},
		{"LUKS 2", 32 * mib, "secret", "cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --uuid " + id + " @ -", "crypto_LUKS"},
		{"LUKS 2 large header", 32 * mib, "secret", "cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --luks2-metadata-size 4m @ -", "crypto_LUKS"},
		{"verity", mib, "", "veritysetup format --uuid " + id + " %/x @", "DM_verity_hash"},
		{"bcache backing", 8 * mib, "", "make-bcache -B @", "bcache"},
		{"bcache cache", 64 * mib, "", "make-bcache -C @", "bcache"},
		{"nilfs2", 129 * mib, "", "mkfs.nilfs2 -q @", "nilfs2"},
		{"reiserfs", 34 * mib, "", "mkreiserfs -q -f -u " + id + " @", "reiserfs"},
		{"jfs", 16 * mib, "", "mkfs.jfs -q @", "jfs"},
		{"ocfs2", 64 * mib, "y\n", "mkfs.ocfs2 -q -F -b 4096 -C 4096 -N 1 -J size=4M --fs-features=local --no-backup-super @", "ocfs2"},
		{"gfs2", 64 * mib, "", "mkfs.gfs2 -q -O -p lock_nolock -j 1 -J 8 @", "gfs2"},
		{"udf", 4 * mib, "", "mkfs.udf @", "udf"},
		{"udf 4 KiB blocks", 8 * mib, "", "mkfs.udf -b 4096 @", "udf"},
		{"udf 2 KiB blocks", 8 * mib, "", "mkfs.udf -b 2048 @", "udf"},
		{"iso9660", 0, "", "xorriso -as mkisofs -quiet -o @ %", "iso9660"},
		{"iso9660 joliet", 0, "", "xorriso -as mkisofs -quiet -J -o @ %", "iso9660"},
		{"squashfs", 0, "", "mksquashfs % @ -noappend -quiet", "squashfs"},
		{"erofs", 0, "", "mkfs.erofs -T 1700000000 -U " + id + " @ %", "erofs"},
		{"gpt", 2 * mib, "label: gpt\nlabel-id: " + id + "\n2048,100\n", "sfdisk -q @", "gpt PMBR"},
		{"gpt, odd size", 2*mib + 512, "label: gpt\n", "sfdisk -q @", "gpt PMBR"},
		{"gpt, not of whole sectors", 2*mib + 100, "label: gpt\n", "sfdisk -q @", "gpt PMBR"},
		{"dos", mib, "label: dos\nlabel-id: 0x12345678\n64,100,83,*\n", "sfdisk -q @", "dos"},
		{"dos, extended", 16 * mib, "label: dos\n2048,2048,83\n4096,,E\n6144,2048,83\n", "sfdisk -q @", "dos"},
		{"dos, empty", mib, "label: dos\nlabel-id: 0x12345678\n", "sfdisk -q @", "dos"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := blankFile(t, c.size)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "x"), make([]byte, 8192), 0o644); err != nil {
				t.Fatal(err)
			}
			words := strings.Fields(c.cmd)
			for i, w := range words {
				if w == "@" {
					words[i] = path
				}
				if strings.HasPrefix(w, "%") {
					words[i] = dir + w[1:]
				}
			}
			run(t, c.stdin, words[0], words[1:]...)
			agree(t, path, c.want)
		})
	}
}
