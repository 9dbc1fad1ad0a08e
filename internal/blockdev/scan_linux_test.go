// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// class puts every device of the tree into class/block, where scanning looks.
func (tr tree) class() tree {
	for name := range tr {
		dir := filepath.Dir(name)
		if !strings.HasPrefix(name, "sys/devices/") || filepath.Base(name) != "size" {
			continue
		}
		tr[filepath.Join("sys/class/block", filepath.Base(dir))] = "-> " + dir
	}
	return tr
}

func TestAll(t *testing.T) {
	tr := tree{}
	size := func(more ...string) map[string]string {
		attrs := map[string]string{"size": "16777216"}
		for i := 0; i < len(more); i += 2 {
			attrs[more[i]] = more[i+1]
		}
		return attrs
	}
	part := func(more ...string) map[string]string {
		return size(append(more, "partition", "1", "start", "2048")...)
	}
	// What may be a member.
	tr.add("pci0/nvme0/nvme0n1", "259:0", size("hidden", "0"))
	tr.add("pci0/nvme0/nvme0n1/nvme0n1p1", "259:1", part())
	tr.add("pci1/sda", "8:0", size())
	tr.add("pci1/sda/sda1", "8:1", part())
	tr.add("virtual/loop0", "7:0", size())
	tr.add("pci2/cciss!c0d0", "104:0", size())
	tr.add("pci2/cciss!c0d0/cciss!c0d0p1", "104:1", part())
	tr.add("virtual/dm-0", "252:0", size())
	tr.add("virtual/md127", "9:127", size())
	// Names that only begin like those of what is left out.
	tr.add("virtual/ramdisk", "250:0", size())
	tr.add("virtual/srx0", "250:1", size())
	tr.add("virtual/fdx", "250:2", size())
	tr.add("virtual/sr", "250:3", size())
	want := []string{"/dev/cciss/c0d0", "/dev/cciss/c0d0p1", "/dev/dm-0", "/dev/fdx", "/dev/loop0", "/dev/md127", "/dev/nvme0n1", "/dev/nvme0n1p1",
		"/dev/ramdisk", "/dev/sda", "/dev/sda1", "/dev/sr", "/dev/srx0"}
	// What cannot.
	tr.add("virtual/ram0", "1:0", size())
	tr.add("virtual/ram15", "1:15", size())
	tr.add("virtual/ram3/ram3p1", "1:16", part())
	tr.add("pci3/sr0", "11:0", size())
	tr.add("pci3/sr0/sr0p1", "11:1", part())
	tr.add("platform/fd0", "2:0", size())
	tr.add("virtual/loop1", "7:1", map[string]string{"size": "0"})
	tr.add("fabrics/nvme4c4n1", "", size("hidden", "1"))
	tr.add("pci1/sdb", "8:16", size())
	tr["sys/devices/pci1/sdb/holders/md127"] = "-> sys/devices/virtual/md127"
	tr.add("pci1/sdc", "8:32", size())
	tr.add("pci1/sdc/sdc1", "8:33", part())
	tr["sys/devices/pci1/sdc/sdc1/holders/dm-0"] = "-> sys/devices/virtual/dm-0"
	// The disk of a partition that is held is looked at: it has a first MiB of its own.
	want = append(want, "/dev/sdc")
	// An entry that leads nowhere: a device that vanished just now.
	tr["sys/class/block/sdz"] = "-> sys/devices/gone/sdz"
	h := tr.class().host(t)
	// A directory of holders without any, as sysfs has it for every device.
	if err := os.Mkdir(filepath.Join(h.sys, "devices/pci1/sda/holders"), 0o755); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	got, err := h.all()
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v\nwant %q", got, err, want)
	}
}

func TestAllWithoutSysfs(t *testing.T) {
	got, err := host{sys: t.TempDir()}.all()
	if got != nil || err == nil || !strings.Contains(err.Error(), "is sysfs mounted on /sys") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := (tree{}).host(t).all(); len(got) != 0 || err == nil {
		t.Errorf("no class: %q, %v", got, err)
	}
}

// What this machine has are nodes below /dev, each once, and a loop device that is
// attached is among them.
func TestAllHere(t *testing.T) {
	path := loop(t, scratch(t, 1<<20))
	got, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got, path) || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("%s is attached, and there are %q", path, got)
	}
	for _, p := range got {
		if !strings.HasPrefix(p, "/dev/") || strings.Contains(p, "!") {
			t.Errorf("%q", p)
		}
	}
}
