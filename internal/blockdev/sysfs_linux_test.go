// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	h := sample().host(t)
	limits := func(in Info) Info {
		in.Path, in.Block, in.Size = "/dev/x", true, 1<<30
		in.LimitsKnown, in.MaxSectorsBytes, in.MaxSegments, in.MaxSegmentSize = true, 512<<10, 127, 4294967295
		if in.BufAlign == 0 {
			in.BufAlign = 4
		}
		if in.BlockSize == 0 {
			in.BlockSize = 512
		}
		if in.Scheduler == "" {
			in.Scheduler = "none"
		}
		return in
	}
	eui := "eui.0025388b710116a1"
	for name, want := range map[string]Info{
		"drive": limits(Info{Name: "nvme0n1", Disk: "nvme0n1", Major: 259, WWID: eui, NrRequests: 1023,
			PollQueues: true, PollKnown: true, WriteThrough: true, FUA: true, Driver: DriverNVMe, Transport: "pcie"}),
		"partition": limits(Info{Name: "nvme0n1p2", Disk: "nvme0n1", Major: 259, Minor: 2, WWID: eui, NrRequests: 1023,
			PartStart: 501 << 20, PollQueues: true, PollKnown: true, WriteThrough: true, FUA: true, Driver: DriverNVMe, Transport: "pcie"}),
		"4Kn, no poll queues": limits(Info{Name: "nvme2n1", Disk: "nvme2n1", Major: 259, Minor: 5,
			WWID: "eui.36344630528029720025384500000001", NrRequests: 64, BlockSize: 4096, BufAlign: 4096,
			PollKnown: true, Scheduler: "mq-deadline", Driver: DriverNVMe, Transport: "pcie"}),
		"head, one path unpolled": limits(Info{Name: "nvme4n1", Disk: "nvme4n1", Major: 259, Minor: 6, WWID: "uuid.a",
			NrRequests: 127, PollKnown: true, Below: "nvme4c7n1", BelowDriver: DriverNVMe,
			WriteThrough: true, FUA: true, Driver: DriverNVMe, Transport: "tcp"}),
		"head": limits(Info{Name: "nvme5n1", Disk: "nvme5n1", Major: 259, Minor: 7, WWID: "uuid.b", NrRequests: 255,
			PollQueues: true, PollKnown: true, WriteThrough: true, FUA: true, Driver: DriverNVMe, Transport: "pcie"}),
		"dm over a partition and a head": limits(Info{Name: "dm-0", Disk: "dm-0", Major: 252, NrRequests: 255,
			PollQueues: true, PollKnown: true, WriteThrough: true, FUA: true, Driver: DriverDM, Transport: "pcie"}),
		"dm over dm": limits(Info{Name: "dm-1", Disk: "dm-1", Major: 252, Minor: 1, NrRequests: 64, PollKnown: true,
			Below: "nvme2n1", BelowDriver: DriverNVMe, WriteThrough: true, FUA: true, Driver: DriverDM, Transport: "pcie"}),
	} {
		if got := found(h, want.Major, want.Minor, 1<<30, want.BlockSize); got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
	missing := found(h, 8, 0, 1<<30, 512)
	if want := (Info{Path: "/dev/x", Block: true, Major: 8, Size: 1 << 30, BlockSize: 512, BufAlign: 512}); missing != want {
		t.Errorf("not in sysfs: got %+v, want %+v", missing, want)
	}
	if !h.vanished(8, 0) || h.vanished(259, 0) || (host{sys: h.sys + "/none"}).vanished(8, 0) {
		t.Error("vanished must mean that sysfs works and lacks the device")
	}
}

// Whatever an attribute holds, the device is described with that fact unknown.
func TestDescribeGarbage(t *testing.T) {
	for _, junk := range []string{" ", "\n\n", "-1", "0x10", "1e9", "99999999999999999999", "9223372036854775807",
		"garbage", "\x00\xff\xfe", "[", "]", "[]", "a b", strings.Repeat("9", 1<<16)} {
		attrs := nvmeAttrs(nil)
		for name := range attrs {
			attrs[name] = junk
		}
		tr := tree{}
		tr.add("nvme0n1", "259:0", attrs)
		tr.add("nvme0n1/nvme0n1p1", "259:1", map[string]string{"partition": junk, "start": junk})
		tr["sys/devices/nvme0n1/slaves/nvme0n1"] = "-> sys/devices/nvme0n1"
		tr.add("dm-0", "252:0", attrs)
		tr["sys/devices/dm-0/slaves/dm-0"] = "-> sys/devices/dm-0" // a loop
		tr["proc/self/mountinfo"], tr["proc/swaps"] = junk, junk
		h := tr.host(t)
		for _, minor := range []uint32{0, 1} {
			in := found(h, 259, minor, 1<<30, 512)
			if in.LimitsKnown || in.PollKnown || in.PollQueues || in.NrRequests != 0 || in.BufAlign != 512 || in.PartStart != 0 || in.WriteThrough || in.FUA {
				t.Errorf("%.20q believed: %+v", junk, in)
			}
			_, _ = h.whoHolds(in)
		}
		_ = found(h, 252, 0, 1<<30, 512)
	}
	tr := tree{"sys/devices/nvme0n1/queue": "a file", "sys/dev/block/259:0": "-> sys/devices/nvme0n1"}
	if in := found(tr.host(t), 259, 0, 1<<30, 512); in.LimitsKnown || in.Name != "nvme0n1" {
		t.Errorf("queue is no directory: %+v", in)
	}
}

func TestOverlaps(t *testing.T) {
	h := sample().host(t)
	dev := func(minor uint32) *Device { return &Device{fd: -1, info: found(h, 259, minor, 500<<20, 512)} }
	file := func(ino uint64) *Device { return &Device{fd: -1, info: Info{Dev: 259, Ino: ino}} }
	for _, c := range []struct {
		what string
		a, b *Device
		want bool
	}{
		{"a device and itself", dev(0), dev(0), true},
		{"a disk and its partition", dev(0), dev(1), true},
		{"two partitions", dev(1), dev(2), false},
		{"two nodes of one drive", dev(0), dev(3), true},
		{"a partition and the other node's disk", dev(1), dev(3), true},
		{"one partition through two nodes", dev(1), dev(4), true},
		{"two partitions through two nodes", dev(2), dev(4), false},
		{"two drives", dev(0), dev(5), false},
		{"two devices unknown to sysfs", dev(100), dev(101), false},
		{"a file and itself", file(7), file(7), true},
		{"two files", file(7), file(8), false},
		{"a file and a device with its numbers", file(0), dev(0), false},
	} {
		if got := Overlaps(c.a, c.b); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
		if got := Overlaps(c.b, c.a); got != c.want {
			t.Errorf("%s, swapped: %v", c.what, got)
		}
	}
	if got := dev(2).ID().String() + ", " + file(7).ID().String(); got != "block device 259:2, file 259:7" {
		t.Error(got)
	}
}

func TestWhoHolds(t *testing.T) {
	for _, c := range []struct {
		what        string
		add         map[string]string
		minor       uint32
		cause, cure string
	}{
		{"mounted", map[string]string{"proc/self/mountinfo": `36 26 259:1 / /mnt/my\040data rw shared:1 - ext4 /dev/foo rw`}, 1,
			"busy: mounted on /mnt/my data", "umount /mnt/my data first"},
		{"partition mounted", map[string]string{"proc/self/mountinfo": "26 1 0:20 / /proc rw - proc proc rw\n36 26 259:1 / /mnt rw - xfs /dev/foo rw"}, 0,
			"busy: nvme0n1p1 is mounted on /mnt", "umount /mnt first"},
		{"btrfs, by its source", map[string]string{"proc/self/mountinfo": "36 26 0:41 /@ / rw shared:1 master:2 - btrfs /dev/nvme0n1p2 rw"}, 2,
			"busy: mounted on /", "umount / first"},
		{"swap", map[string]string{"proc/swaps": "Filename Type Size Used Priority\n/swapfile file 1 0 -2\n/dev/nvme0n1p1 partition 8 0 -2"}, 1,
			"busy: in use as swap", "swapoff /dev/nvme0n1p1 first"},
		{"dm on a partition", nil, 0, "busy: nvme0n1p2 is held by dm-0 (device mapper fast)", "dmsetup remove fast first (vgchange -an for LVM)"},
		{"md", map[string]string{"sys/devices/pci2/nvme2/nvme2n1/holders/md127/x": ""}, 5, "busy: held by md127", "mdadm --stop /dev/md127 first"},
		{"a program", nil, 3, "busy: held by another program (another pollux, ZFS, or a mount in another namespace)", "find it with fuser -v /dev/x and stop it"},
	} {
		tr := sample()
		for name, content := range c.add {
			tr[name] = content
		}
		h := tr.host(t)
		cause, cure := h.whoHolds(found(h, 259, c.minor, 1<<30, 512))
		if cause != c.cause || cure != c.cure {
			t.Errorf("%s: %q; %q", c.what, cause, cure)
		}
	}
}

func TestPollCure(t *testing.T) {
	h := sample().host(t)
	for _, c := range []struct {
		in   Info
		want string // "" means that nothing may be said
	}{
		{found(h, 259, 0, 1, 512), ""},
		{found(h, 259, 5, 1, 512), "modprobe nvme poll_queues=2"},
		{found(h, 259, 6, 1, 512), "it stands on nvme4c7n1: connected over tcp"},
		{found(h, 252, 1, 1, 512), "it stands on nvme2n1: nvme was loaded"},
		{Info{Block: true}, "cannot be read"},
		{Info{Driver: DriverFile}, "a file has no poll queues"},
		{Info{Block: true, PollKnown: true, Driver: DriverLoop}, "a loop device"},
		{Info{Block: true, PollKnown: true, Driver: DriverNull}, "modprobe null_blk poll_queues="},
		{Info{Block: true, PollKnown: true, Driver: DriverVirtio}, "virtio_blk.poll_queues="},
		{Info{Block: true, PollKnown: true, Driver: DriverDM}, "device mapper target"},
		{Info{Block: true, PollKnown: true, Driver: DriverMD}, "md cannot poll"},
		{Info{Block: true, PollKnown: true, Driver: "rbd"}, "rbd offers no poll queues"},
		{Info{Block: true, PollKnown: true}, "its driver offers no poll queues"},
	} {
		got := PollCure(c.in)
		if !strings.Contains(got, c.want) || (c.want == "") != (got == "") || strings.Contains(got, "\n") {
			t.Errorf("%+v:\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

func TestWorkerThreads(t *testing.T) {
	h := tree{"proc/self/task/1/comm": "pollux", "proc/self/task/2/comm": "iou-wrk-1", "proc/self/task/3/comm": "iou-sqp-1",
		"proc/self/task/4/comm": "iou-wrk-2", "proc/self/task/5/ended": ""}.host(t)
	if n, err := h.workerThreads(); n != 2 || err != nil {
		t.Error(n, err)
	}
	if _, err := (host{proc: filepath.Join(h.proc, "none")}).workerThreads(); err == nil {
		t.Error("no error without proc")
	}
	if _, err := WorkerThreads(); err != nil {
		t.Error(err)
	}
}

func TestInterrupts(t *testing.T) {
	const fixture = `            CPU0       CPU2
   0:          9          0   IO-APIC   2-edge      timer
  27:          5          1  PCI-MSIX-0000:00:04.0   0-edge      nvme0q0
  28:        100         20  PCI-MSIX-0000:00:04.0   1-edge      nvme0q1
  29:          7          7  4 nvme-lookalike

 LOC:      12345      54321   Local timer interrupts
 ERR:          3
 MIS: nonsense
no colon 5 5 nvme
`
	if sum, ok, err := sumInterrupts(strings.NewReader(fixture), "nvme"); sum != 140 || !ok || err != nil {
		t.Error(sum, ok, err)
	}
	for _, text := range []string{"", "\n", "CPU0\n", "CPU0\n1: 5 timer\n", "1: 5 nvme"} {
		if sum, ok, err := sumInterrupts(strings.NewReader(text), "xvme"); sum != 0 || ok || err != nil {
			t.Errorf("%q: %d, %v, %v", text, sum, ok, err)
		}
	}
	if _, _, err := sumInterrupts(strings.NewReader(strings.Repeat("x", 2<<20)), "nvme"); err == nil {
		t.Error("a line without end was taken")
	}
	if _, err := os.Stat("/proc/interrupts"); err == nil {
		if _, _, err := NVMeInterrupts(); err != nil {
			t.Error(err)
		}
	}
}

func TestKernelVersion(t *testing.T) {
	for release, want := range map[string][2]int{"6.12.43+deb13-amd64": {6, 12}, "7.0-rc1": {7, 0}, "6.1": {6, 1},
		"6": {6, 0}, "": {0, 0}, "x.y": {0, 0}, "99999999999999999999.1": {0, 1}} {
		if major, minor := parseRelease(release); major != want[0] || minor != want[1] {
			t.Errorf("%q: %d.%d", release, major, minor)
		}
	}
	if major, _, release := KernelVersion(); major < 4 || release == "" {
		t.Error(major, release)
	}
}

// The offsets that no I/O may cross are of the whole disk, also for a partition.
// What is no number of sectors is none.
func TestBoundary(t *testing.T) {
	for content, want := range map[string]int64{
		"256": 128 << 10, "1": 512, "4294967295": 4294967295 << 9, " 8 \n": 4 << 10,
		"": 0, "0": 0, "-1": 0, "-256": 0, "4294967296": 0, "99999999999999999999": 0, "0x100": 0, "1e3": 0,
		"garbage": 0, "256 512": 0, "256K": 0, "\x00\xff": 0, strings.Repeat("9", 1<<16): 0,
	} {
		tr := tree{}
		tr.add("pci0/nvme0/nvme0n1", "259:0", nvmeAttrs(map[string]string{"queue/chunk_sectors": content}))
		tr.add("pci0/nvme0/nvme0n1/nvme0n1p1", "259:1", map[string]string{"partition": "1", "start": "2048"})
		h := tr.host(t)
		for minor := range uint32(2) {
			in := found(h, 259, minor, 1<<30, 512)
			if in.Boundary != want || !in.LimitsKnown || in.PartStart != int64(minor)<<20 {
				t.Errorf("%.20q: boundary %d, want %d; known %v, partition at %d", content, in.Boundary, want, in.LimitsKnown, in.PartStart)
			}
		}
	}
}
