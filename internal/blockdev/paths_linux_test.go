// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	testNQN  = "nqn.2019-08.org.qemu:lab0"
	testWWID = "uuid.6c9a0e5c-0001"
)

// controller puts an NVMe controller into the tree, and a link to it into its
// subsystem. dir is below sys/devices.
func (tr tree) controller(subsystem, dir string, attrs map[string]string) {
	name := filepath.Base(dir)
	for attr, content := range attrs {
		tr[filepath.Join("sys/devices", dir, attr)] = content
	}
	sub := filepath.Join("sys/devices/virtual/nvme-subsystem", subsystem)
	tr[filepath.Join(sub, "subsysnqn")] = testNQN
	tr[filepath.Join(sub, name)] = "-> sys/devices/" + dir
	tr[filepath.Join("sys/class/nvme-subsystem", subsystem)] = "-> " + sub
}

// node puts a namespace into the tree, as the kernel does below its controller, or
// below the subsystem where it is a head.
func (tr tree) node(parent, name, number string, change map[string]string) {
	dir := filepath.Join(parent, name)
	attrs := nvmeAttrs(map[string]string{"wwid": testWWID, "size": "16777216", "hidden": "0", "device/transport": ""})
	maps.Copy(attrs, change)
	tr.add(dir, number, attrs)
	tr[filepath.Join("sys/devices", dir, "device")] = "-> sys/devices/" + parent
}

func pcie(address, id, state string) map[string]string {
	return map[string]string{"transport": "pcie", "address": address, "cntlid": id, "state": state, "subsysnqn": testNQN}
}

// joined is a drive whose paths the kernel joins: a head over two of them, of which
// one is not as good, and a controller that has not found the namespace yet. Their
// numbers tell that of the subsystem apart from theirs, and are not in the order of
// their names.
func joined() tree {
	tr := tree{}
	tr.controller("nvme-subsys1", "pci0/nvme10", pcie("0000:00:05.0", "2", "connecting"))
	tr.controller("nvme-subsys1", "pci1/nvme2", pcie("0000:00:04.0", "1", "live"))
	tr.controller("nvme-subsys1", "fabrics/nvme3", map[string]string{"transport": "tcp", "subsysnqn": testNQN,
		"address": "traddr=10.0.0.1,trsvcid=4420", "cntlid": "65535", "state": "live"})
	tr.node("virtual/nvme-subsystem/nvme-subsys1", "nvme1n1", "259:0", nil)
	tr.add("virtual/nvme-subsystem/nvme-subsys1/nvme1n1/nvme1n1p1", "259:1", map[string]string{"partition": "1", "start": "2048", "size": "2048"})
	tr.node("pci1/nvme2", "nvme1c2n1", "", map[string]string{"hidden": "1", "ana_state": "optimized"})
	tr.node("pci0/nvme10", "nvme1c10n1", "", map[string]string{"hidden": "1", "ana_state": "non-optimized"})
	// Another namespace of the subsystem, which is not this drive.
	tr.node("fabrics/nvme3", "nvme1c3n2", "", map[string]string{"hidden": "1", "wwid": "uuid.other", "ana_state": "optimized"})
	// Another subsystem is nothing to this one.
	tr.controller("nvme-subsys4", "pci4/nvme4", pcie("0000:00:09.0", "1", "live"))
	return tr
}

// apart is the same drive where the kernel joins none (nvme_core.multipath=N): two
// nodes, a controller without a namespace, and one with another.
func apart() tree {
	tr := tree{}
	tr.controller("nvme-subsys1", "pci0/nvme0", pcie("0000:00:04.0", "0", "live"))
	tr.controller("nvme-subsys1", "pci1/nvme1", pcie("0000:00:05.0", "1", "live"))
	tr.controller("nvme-subsys1", "pci2/nvme2", pcie("0000:00:06.0", "2", "connecting"))
	tr.controller("nvme-subsys1", "pci3/nvme3", pcie("0000:00:07.0", "3", "live"))
	tr.node("pci0/nvme0", "nvme0n1", "259:0", nil)
	tr.add("pci0/nvme0/nvme0n1/nvme0n1p1", "259:1", map[string]string{"partition": "1", "start": "2048", "size": "2048"})
	tr.node("pci1/nvme1", "nvme1n1", "259:2", nil)
	tr.node("pci3/nvme3", "nvme3n2", "259:3", map[string]string{"wwid": "uuid.other"})
	return tr
}

func TestPathsOfHead(t *testing.T) {
	h := joined().host(t)
	want := []Path{
		{Controller: "nvme2", Name: "nvme1c2n1", Transport: "pcie", Address: "0000:00:04.0", State: "live", ANAState: "optimized", ControllerID: 1},
		{Controller: "nvme3", Transport: "tcp", Address: "traddr=10.0.0.1,trsvcid=4420", State: "live", ControllerID: 65535},
		{Controller: "nvme10", Name: "nvme1c10n1", Transport: "pcie", Address: "0000:00:05.0", State: "connecting", ANAState: "non-optimized", ControllerID: 2},
	}
	for minor := range uint32(2) { // the disk and its partition
		in := found(h, 259, minor, 1<<30, 512)
		if in.Subsystem != testNQN || in.Controller != "" || in.Address != "" || in.ControllerID != 0 || in.ControllerKnown {
			t.Errorf("a head has no controller of its own: %+v", in)
		}
		if got := h.paths(in); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", in.Name, got, want)
		}
	}
	if got := h.nodesOf(testWWID); !slices.Equal(got, []string{"/dev/nvme1n1"}) {
		t.Errorf("nodes: %q", got)
	}
}

func TestPathsOfNodes(t *testing.T) {
	h := apart().host(t)
	want := []Path{
		{Controller: "nvme0", Name: "nvme0n1", Transport: "pcie", Address: "0000:00:04.0", State: "live"},
		{Controller: "nvme1", Name: "nvme1n1", Transport: "pcie", Address: "0000:00:05.0", State: "live", ControllerID: 1},
		{Controller: "nvme2", Transport: "pcie", Address: "0000:00:06.0", State: "connecting", ControllerID: 2},
		{Controller: "nvme3", Transport: "pcie", Address: "0000:00:07.0", State: "live", ControllerID: 3},
	}
	for minor, c := range []struct {
		controller, address string
		id                  int
	}{{"nvme0", "0000:00:04.0", 0}, {"nvme0", "0000:00:04.0", 0}, {"nvme1", "0000:00:05.0", 1}} {
		in := found(h, 259, uint32(minor), 1<<30, 512)
		if in.Subsystem != testNQN || in.Controller != c.controller || in.Address != c.address || in.ControllerID != c.id || !in.ControllerKnown {
			t.Errorf("%s: %+v, want %+v", in.Name, in, c)
		}
		if got := h.paths(in); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", in.Name, got, want)
		}
	}
	// What is asked for now counts, and not what was found when the device was opened.
	in := found(h, 259, 0, 1<<30, 512)
	state := filepath.Join(h.sys, "devices/pci1/nvme1/state")
	if err := os.WriteFile(state, []byte("deleting\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := h.paths(in); len(got) != 4 || got[1].State != "deleting" {
		t.Errorf("nvme1 is being deleted: %+v", got)
	}
	if err := os.RemoveAll(filepath.Join(h.sys, "devices/pci1/nvme1")); err != nil {
		t.Fatal(err)
	}
	if got := h.paths(in); len(got) != 3 || got[1].Controller != "nvme2" {
		t.Errorf("nvme1 has gone: %+v", got)
	}
}

// A namespace that only one controller has goes by the number of the subsystem, also
// where the kernel joins paths: its name says nothing about its controller.
func TestPathsOfPrivateNamespace(t *testing.T) {
	tr := tree{}
	tr.controller("nvme-subsys0", "pci1/nvme1", pcie("0000:00:05.0", "7", "live"))
	tr.controller("nvme-subsys1", "pci0/nvme0", pcie("0000:00:04.0", "8", "live"))
	tr.node("pci1/nvme1", "nvme0n1", "259:0", nil)
	h := tr.host(t)
	in := found(h, 259, 0, 1<<30, 512)
	if in.Controller != "nvme1" || in.ControllerID != 7 || in.Address != "0000:00:05.0" {
		t.Errorf("%+v", in)
	}
	want := []Path{{Controller: "nvme1", Name: "nvme0n1", Transport: "pcie", Address: "0000:00:05.0", State: "live", ControllerID: 7}}
	if got := h.paths(in); !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestNodesOf(t *testing.T) {
	tr := apart()
	tr.node("pci2/nvme2", "nvme2n1", "259:9", map[string]string{"size": "0"}) // on its way out
	// SCSI has the identifier one level further down, and so it is for describe.
	tr.add("pci5/sdb", "8:16", map[string]string{"size": "16777216", "device/wwid": "naa.5"})
	tr.add("pci5/sdb/sdb1", "8:17", map[string]string{"size": "2048", "partition": "1", "wwid": "naa.5"})
	tr.add("pci5/sda", "8:0", map[string]string{"size": "16777216", "device/wwid": "naa.5"})
	tr.add("pci5/sdc", "8:32", map[string]string{"size": "16777216", "wwid": "naa.6", "device/wwid": "naa.5"})
	tr.add("pci6/cciss!c0d0", "104:0", map[string]string{"size": "16777216", "wwid": "naa.7"})
	tr.add("virtual/loop0", "7:0", map[string]string{"size": "16777216"})
	h := tr.host(t)
	for wwid, want := range map[string][]string{
		testWWID:     {"/dev/nvme0n1", "/dev/nvme1n1"},
		"uuid.other": {"/dev/nvme3n2"},
		"naa.5":      {"/dev/sda", "/dev/sdb"},
		"naa.6":      {"/dev/sdc"},
		"naa.7":      {"/dev/cciss/c0d0"},
		"naa":        nil, // not what begins so
		"":           nil, // what has no identifier is not one drive
	} {
		if got := h.nodesOf(wwid); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", wwid, got, want)
		}
	}
	if got := (host{sys: h.sys + "/none"}).nodesOf(testWWID); got != nil {
		t.Errorf("without sysfs: %q", got)
	}
}

// Only NVMe has paths, and what sysfs does not tell is none.
func TestPathsUnknown(t *testing.T) {
	h := sample().host(t)
	for _, in := range []Info{{}, {Disk: "nvme9n9", WWID: "x"}, {Disk: "sda"}, {Disk: "loop0"}, {Disk: "dm-0"},
		{Disk: "nvme"}, {Disk: ".."}, found(h, 259, 0, 1<<30, 512), found(h, 252, 0, 1<<30, 512)} {
		if got := h.paths(in); got != nil {
			t.Errorf("%q: %+v", in.Disk, got)
		}
		if in.Subsystem != "" || in.Controller != "" || in.ControllerKnown {
			t.Errorf("%+v", in)
		}
	}
	for name := range apart() {
		if strings.HasPrefix(name, "sys/class/nvme-subsystem") {
			tr := apart()
			delete(tr, name)
			h := tr.host(t)
			in := found(h, 259, 0, 1<<30, 512)
			if got := h.paths(in); got != nil || in.Controller != "nvme0" {
				t.Errorf("without the class: %+v of %+v", got, in)
			}
		}
	}
	// What only looks like a subsystem is none, and only an NVMe disk is in one.
	tr := joined()
	tr.node("virtual/nvme-subsystem/nvme-subsys1", "sda", "8:0", nil)
	if h := tr.host(t); h.paths(found(h, 8, 0, 1<<30, 512)) != nil {
		t.Error("a SCSI disk has NVMe controllers")
	}
	delete(tr, "sys/devices/virtual/nvme-subsystem/nvme-subsys1/subsysnqn")
	if h := tr.host(t); h.paths(found(h, 259, 0, 1<<30, 512)) != nil {
		t.Error("a directory without a name is a subsystem")
	}
	// Without an identifier nothing tells which namespace of a controller it is.
	tr = apart()
	tr["sys/devices/pci0/nvme0/nvme0n1/wwid"], tr["sys/devices/pci1/nvme1/nvme1n1/wwid"] = "", ""
	h = tr.host(t)
	for _, p := range h.paths(found(h, 259, 0, 1<<30, 512)) {
		if p.Name != "" {
			t.Errorf("no identifier, and a node: %+v", p)
		}
	}
}

// Whatever attributes hold, the controllers are listed, and what is no number is
// unknown.
func TestPathsGarbage(t *testing.T) {
	for _, junk := range []string{"", " ", "\n\n", "-1", "65536", "0x10", "1e9", "99999999999999999999", "garbage", "\x00\xff\xfe",
		"a b", strings.Repeat("9", 1<<16)} {
		for _, tr := range []tree{joined(), apart()} {
			for name, content := range tr {
				if strings.HasPrefix(name, "sys/devices") && !strings.HasPrefix(content, "-> ") &&
					!slices.Contains([]string{"dev", "subsysnqn", "wwid"}, filepath.Base(name)) {
					tr[name] = junk
				}
			}
			h := tr.host(t)
			in := found(h, 259, 0, 1<<30, 512)
			paths := h.paths(in)
			if in.ControllerKnown || in.ControllerID != 0 || in.Subsystem != testNQN || len(paths) < 3 {
				t.Errorf("%.20q believed: %+v, %+v", junk, in, paths)
			}
			for _, p := range paths {
				if p.ControllerID != -1 || p.State != strings.TrimSpace(junk) {
					t.Errorf("%.20q believed: %+v", junk, p)
				}
			}
			_ = h.nodesOf(junk)
		}
		tr := joined()
		for name := range tr {
			if filepath.Base(name) == "subsysnqn" || filepath.Base(name) == "wwid" {
				tr[name] = junk
			}
		}
		h := tr.host(t)
		_ = h.paths(found(h, 259, 0, 1<<30, 512)) // must come back
	}
	// Links that lead nowhere, or back, and files where directories should be.
	for _, change := range []tree{
		{"sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme5": "-> sys/devices/gone/nvme5"},
		{"sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme5": "-> sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme5"},
		{"sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme5x": "a file"},
		{"sys/class/nvme-subsystem/nvme-subsys9": "-> sys/devices/gone"},
		{"sys/class/nvme-subsystem/nvme-subsys9": "a file"},
		{"sys/devices/pci1/nvme1/nvme1n2": "a file"},
	} {
		tr := apart()
		maps.Copy(tr, change)
		h := tr.host(t)
		if got := h.paths(found(h, 259, 0, 1<<30, 512)); len(got) != 4 {
			t.Errorf("%v: %+v", change, got)
		}
	}
	tr := apart()
	tr["sys/devices/pci0/nvme0/nvme0n1/device"] = "-> sys/devices/gone/nvme0"
	h := tr.host(t)
	if in := found(h, 259, 0, 1<<30, 512); in.Controller != "" || h.paths(in) != nil {
		t.Errorf("a controller that has gone: %+v", in)
	}
}

// Many controllers are in the order of their numbers.
func TestPathsOrder(t *testing.T) {
	tr := tree{}
	for n := range 20 {
		name := "nvme" + strconv.Itoa(n)
		tr.controller("nvme-subsys0", "pci/"+name, pcie("x", strconv.Itoa(n), "live"))
	}
	tr.node("virtual/nvme-subsystem/nvme-subsys0", "nvme0n1", "259:0", nil)
	h := tr.host(t)
	paths := h.paths(found(h, 259, 0, 1<<30, 512))
	if len(paths) != 20 {
		t.Errorf("%d of 20: %+v", len(paths), paths)
	}
	for n, p := range paths {
		if p.ControllerID != n || p.Controller != "nvme"+strconv.Itoa(n) {
			t.Errorf("%d: %+v", n, p)
		}
	}
}

// What has no worldwide identifier is a drive of its own: two such are never two paths
// to one.
func TestDriveWithoutIdentifier(t *testing.T) {
	block := func(minor uint32, wwid string, start int64) string {
		return Info{Block: true, Major: 259, Minor: minor, WWID: wwid, PartStart: start}.Drive()
	}
	file := func(ino uint64) string { return Info{Dev: 259, Ino: ino}.Drive() }
	drives := []string{block(0, "", 0), block(1, "", 0), file(0), file(1), block(0, "uuid.a", 0), block(0, "uuid.a", 4096), block(0, "uuid.b", 0)}
	slices.Sort(drives)
	if got := slices.Compact(slices.Clone(drives)); len(got) != len(drives) {
		t.Errorf("drives that differ have one name: %q", drives)
	}
	if block(0, "uuid.a", 0) != block(1, "uuid.a", 0) {
		t.Error("two nodes of one drive have two names")
	}
}
