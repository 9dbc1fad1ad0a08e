// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// tree is a host made of files: a path, relative to the root, and its content.
// A content that begins with "-> " makes a symbolic link to another path of the
// tree.
type tree map[string]string

func (tr tree) host(t *testing.T) host {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"sys/block", "sys/dev/block", "proc/self"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range tr {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if len(content) > 3 && content[:3] == "-> " {
			err = os.Symlink(filepath.Join(root, content[3:]), path)
		} else {
			err = os.WriteFile(path, []byte(content+"\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return host{sys: filepath.Join(root, "sys"), proc: filepath.Join(root, "proc")}
}

// add puts a device into the tree: dir is below sys/devices, number its
// major:minor ("" for a hidden path, which has none), attrs its attributes.
func (tr tree) add(dir, number string, attrs map[string]string) {
	dir = filepath.Join("sys/devices", dir)
	for name, content := range attrs {
		tr[filepath.Join(dir, name)] = content
	}
	if number != "" {
		tr[filepath.Join(dir, "dev")] = number
		tr[filepath.Join("sys/dev/block", number)] = "-> " + dir
	}
	if _, part := attrs["partition"]; !part {
		tr[filepath.Join("sys/block", filepath.Base(dir))] = "-> " + dir
	}
}

// nvmeAttrs is an NVMe drive with poll queues and 512-byte blocks; change holds
// what is different, "" meaning that the attribute is absent.
func nvmeAttrs(change map[string]string) map[string]string {
	attrs := map[string]string{
		"wwid": "eui.0025388b710116a1", "ro": "0", "device/transport": "pcie",
		"queue/dma_alignment": "3", "queue/max_sectors_kb": "512", "queue/max_segments": "127",
		"queue/max_segment_size": "4294967295", "queue/nr_requests": "1023", "queue/io_poll": "1",
		"queue/write_cache": "write through", "queue/fua": "1", "queue/rotational": "0",
		"queue/scheduler": "[none] mq-deadline",
	}
	maps.Copy(attrs, change)
	maps.DeleteFunc(attrs, func(_, v string) bool { return v == "" })
	return attrs
}

// sample is one host with a device of every kind that the tests ask about.
func sample() tree {
	tr := tree{}
	tr.add("pci0/nvme0/nvme0n1", "259:0", nvmeAttrs(nil))
	tr.add("pci0/nvme0/nvme0n1/nvme0n1p1", "259:1", map[string]string{"partition": "1", "start": "2048"})
	tr.add("pci0/nvme0/nvme0n1/nvme0n1p2", "259:2", map[string]string{"partition": "2", "start": "1026048"})
	// The same namespace, reached through a second controller.
	tr.add("pci1/nvme1/nvme1n1", "259:3", nvmeAttrs(nil))
	tr.add("pci1/nvme1/nvme1n1/nvme1n1p1", "259:4", map[string]string{"partition": "1", "start": "2048"})
	// 4Kn, identified by NGUID, loaded without poll queues, with a cache.
	tr.add("pci2/nvme2/nvme2n1", "259:5", nvmeAttrs(map[string]string{
		"wwid": "eui.36344630528029720025384500000001", "queue/io_poll": "0", "queue/dma_alignment": "",
		"queue/write_cache": "write back", "queue/fua": "0", "queue/nr_requests": "64",
		"queue/scheduler": "none [mq-deadline] kyber",
	}))
	// A multipath head over two paths of tcp, one of them without poll queues.
	tr.add("virtual/nvme-subsystem/nvme-subsys4/nvme4n1", "259:6", nvmeAttrs(map[string]string{
		"wwid": "uuid.a", "queue/nr_requests": "", "device/transport": ""}))
	tr.add("fabrics/nvme4/nvme4c4n1", "", nvmeAttrs(map[string]string{"queue/nr_requests": "255", "device/transport": "tcp"}))
	tr.add("fabrics/nvme7/nvme4c7n1", "", nvmeAttrs(map[string]string{
		"queue/nr_requests": "127", "queue/io_poll": "0", "device/transport": "tcp"}))
	// A head whose paths all poll.
	tr.add("virtual/nvme-subsystem/nvme-subsys5/nvme5n1", "259:7", nvmeAttrs(map[string]string{
		"wwid": "uuid.b", "queue/nr_requests": "", "device/transport": ""}))
	tr.add("pci5/nvme5/nvme5c5n1", "", nvmeAttrs(map[string]string{"queue/nr_requests": "255"}))
	// dm-0 over a partition and a head; dm-1 over dm-0 and the drive that cannot poll.
	tr.add("virtual/block/dm-0", "252:0", nvmeAttrs(map[string]string{
		"wwid": "", "dm/name": "fast", "queue/nr_requests": "128", "device/transport": ""}))
	tr["sys/devices/virtual/block/dm-0/slaves/nvme0n1p2"] = "-> sys/devices/pci0/nvme0/nvme0n1/nvme0n1p2"
	tr["sys/devices/virtual/block/dm-0/slaves/nvme5n1"] = "-> sys/devices/virtual/nvme-subsystem/nvme-subsys5/nvme5n1"
	tr.add("virtual/block/dm-1", "252:1", nvmeAttrs(map[string]string{
		"wwid": "", "queue/nr_requests": "", "queue/io_poll": "0", "device/transport": ""}))
	tr["sys/devices/virtual/block/dm-1/slaves/dm-0"] = "-> sys/devices/virtual/block/dm-0"
	tr["sys/devices/virtual/block/dm-1/slaves/nvme2n1"] = "-> sys/devices/pci2/nvme2/nvme2n1"
	tr["sys/devices/pci0/nvme0/nvme0n1/nvme0n1p2/holders/dm-0"] = "-> sys/devices/virtual/block/dm-0"
	return tr
}

// found is what describe makes of the device, as if the ioctls had told size
// and blockSize.
func found(h host, major, minor uint32, size, blockSize int64) Info {
	in := Info{Path: "/dev/x", Block: true, Major: major, Minor: minor, Size: size, BlockSize: blockSize}
	h.describe(&in)
	return in
}
