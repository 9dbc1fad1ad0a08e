// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// loopDevice makes a block device of a file.
func loopDevice(t *testing.T, path string, blockSize int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a loop device needs root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("a loop device needs root of a machine that has them: %v", err)
	}
	device := strings.TrimSpace(run(t, "", "losetup", "--find", "--show", "--sector-size", fmt.Sprint(blockSize), path))
	t.Cleanup(func() {
		if out, err := exec.Command(tool(t, "losetup"), "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("losetup --detach %s: %v: %s", device, err, out)
		}
	})
	return device
}

// TestSignaturesOfPhysicalVolume: pvcreate takes block devices only.
func TestSignaturesOfPhysicalVolume(t *testing.T) {
	t.Parallel()
	for sector := range 4 {
		t.Run(fmt.Sprintf("label in sector %d", sector), func(t *testing.T) {
			path := blankFile(t, 8*mib)
			device := loopDevice(t, path, 512)
			// Of its own: no devices file, no udev, no lock that others wait for.
			config := fmt.Sprintf(`devices { dir="/dev" use_devicesfile=0 filter=["a|^%s$|","r|.*|"] } global { locking_type=0 event_activation=0 } activation { udev_sync=0 udev_rules=0 }`, device)
			run(t, "", "pvcreate", "--quiet", "--yes", "--labelsector", fmt.Sprint(sector), "--config", config, device)
			agree(t, device, "LVM2_member")
		})
	}
}

// TestSignaturesOf4KiBBlocks: where the logical block is 4 KiB, partition tables
// lie elsewhere.
func TestSignaturesOf4KiBBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, stdin, cmd, want string }{
		{"gpt", "label: gpt\n", "sfdisk -q @", "gpt PMBR"},
		{"dos", "label: dos\n", "sfdisk -q @", "dos"},
		{"swap", "", "mkswap @", "swap"},
		{"udf", "", "mkfs.udf @", "udf dos"},
	} {
		t.Run(c.name, func(t *testing.T) {
			device := loopDevice(t, blankFile(t, 8*mib), 4096)
			words := strings.Fields(strings.ReplaceAll(c.cmd, "@", device))
			run(t, c.stdin, words[0], words[1:]...)
			agree(t, device, c.want)
		})
	}
}

// TestSignaturesOf4KiBBlocksByHand is what can be seen of it without root:
// wipefs takes a file for a device of 512-byte blocks.
func TestSignaturesOf4KiBBlocksByHand(t *testing.T) {
	const size = 8 * mib
	table := at{446: partition(0, 0xee), 510: bootMagic}.with(gptHeader(4096, 1, size/4096, nil), gptHeader(4096, size/4096-1, size/4096, nil))
	path := writeAll(t, []made{{name: "gpt", size: size, at: table}})[0]
	list, _ := ours(t, path)
	if got, want := fmt.Sprint(list), fmt.Sprintf("[PMBR at 510 gpt at 4096 gpt at %d]", size-4096); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := fmt.Sprint(wipefs(t, path)); got != "[PMBR at 510, 2 bytes]" {
		t.Errorf("wipefs finds %s", got)
	}
}

// TestSignaturesUnderPartition: a member of an old md array that is the last
// partition looks as if the whole disk were one. wipefs says so only once the
// partition table is gone; here both are listed, and erased together.
func TestSignaturesUnderPartition(t *testing.T) {
	const size = 8 * mib
	entry := block(16, at{4: "\xfd", 8: put32(2048), 12: put32(size/512 - 2048)})
	path := writeAll(t, []made{{name: "md", size: size, at: at{446: entry, 510: bootMagic, size - 65536: md0(le, 4096)}}})[0]
	if got := fmt.Sprint(wipefs(t, path)); got != "[dos at 510, 2 bytes]" {
		t.Errorf("wipefs finds %s", got)
	}
	list, _ := ours(t, path)
	if got, want := fmt.Sprint(list), fmt.Sprintf("[dos at 510 linux_raid_member at %d]", size-65536); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	eraseFile(t, path, list)
	if rest := wipefs(t, path); len(rest) != 0 {
		t.Errorf("wipefs finds %q after %v were erased", rest, list)
	}
}
