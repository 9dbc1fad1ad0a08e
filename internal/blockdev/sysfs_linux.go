// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// host is where the kernel tells about itself; tests have trees of their own.
type host struct {
	sys, proc string
}

var machine = host{sys: "/sys", proc: "/proc"}

// maxStack is how deep stacked devices are followed, so that a tree that leads
// back into itself comes to an end.
const maxStack = 8

// describe fills in what sysfs tells about a block device. What it does not tell
// stays as it is.
func (h host) describe(in *Info) {
	in.BufAlign = in.BlockSize
	dir, err := h.blockDir(in.Major, in.Minor)
	if err != nil {
		return
	}
	disk := wholeDisk(dir)
	in.Name, in.Disk = filepath.Base(dir), filepath.Base(disk)
	if disk != dir {
		// Sysfs counts sectors of 512 bytes, whatever the logical block is.
		start, _ := number(dir, "start", 0, math.MaxInt64/512)
		in.PartStart = start * 512
	}
	in.WWID = wwidOf(disk)
	in.Driver = driverOf(disk)
	h.describeController(in, disk)

	if mask, ok := number(disk, "queue/dma_alignment", 0, 1<<20); ok && mask&(mask+1) == 0 {
		in.BufAlign = mask + 1
	}
	kb, ok1 := number(disk, "queue/max_sectors_kb", 1, math.MaxUint32)
	if sectors, ok := number(disk, "queue/chunk_sectors", 1, math.MaxUint32); ok {
		in.Boundary = sectors << 9
	}
	segments, ok2 := number(disk, "queue/max_segments", 1, math.MaxUint32)
	segmentSize, ok3 := number(disk, "queue/max_segment_size", 1, math.MaxUint32)
	if ok1 && ok2 && ok3 {
		in.LimitsKnown = true
		in.MaxSectorsBytes, in.MaxSegments, in.MaxSegmentSize = kb<<10, segments, segmentSize
	}
	in.WriteThrough = text(disk, "queue/write_cache") == "write through"
	in.FUA = text(disk, "queue/fua") == "1"
	in.Rotational = text(disk, "queue/rotational") == "1"
	in.Scheduler = scheduler(text(disk, "queue/scheduler"))

	poll, known := number(disk, "queue/io_poll", 0, 1)
	in.PollKnown, in.PollQueues = known, poll == 1
	leaves := h.leaves(disk, 0)
	in.NrRequests = smallestNrRequests(leaves)
	in.Transport = text(leaves[0], "device/transport")
	for _, leaf := range leaves {
		if leaf == disk {
			continue
		}
		// A multipath head says yes when its first path has poll queues, whatever
		// the others have.
		if poll, ok := number(leaf, "queue/io_poll", 0, 1); ok && poll == 0 {
			in.PollQueues = false
			in.Below, in.BelowDriver = filepath.Base(leaf), driverOf(leaf)
			in.Transport = text(leaf, "device/transport")
			break
		}
	}
}

func (h host) blockDir(major, minor uint32) (string, error) {
	return filepath.EvalSymlinks(h.devLink(major, minor))
}

func (h host) devLink(major, minor uint32) string {
	return filepath.Join(h.sys, "dev/block", fmt.Sprintf("%d:%d", major, minor))
}

// vanished says that sysfs works and does not have the device.
func (h host) vanished(major, minor uint32) bool {
	link := h.devLink(major, minor)
	if _, err := os.Lstat(link); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, err := os.Stat(filepath.Dir(link))
	return err == nil
}

func (h host) markedReadOnly(in Info) bool {
	if !in.Block {
		return false
	}
	dir, err := h.blockDir(in.Major, in.Minor)
	return err == nil && text(dir, "ro") == "1"
}

// wholeDisk returns the directory of the disk that a partition is on; of any
// other device, its own.
func wholeDisk(dir string) string {
	if _, err := os.Stat(filepath.Join(dir, "partition")); err == nil {
		return filepath.Dir(dir)
	}
	return dir
}

// wwidOf returns the worldwide identifier of a disk, which SCSI has at the device.
func wwidOf(disk string) string {
	if wwid := text(disk, "wwid"); wwid != "" {
		return wwid
	}
	return text(disk, "device/wwid")
}

// leaves returns the directories of the disks at the bottom of a stack, at
// least one: the disk itself when it stands on nothing.
func (h host) leaves(disk string, depth int) []string {
	below := h.below(disk)
	if len(below) == 0 || depth == maxStack {
		return []string{disk}
	}
	var all []string
	for _, dir := range below {
		all = append(all, h.leaves(dir, depth+1)...)
	}
	return all
}

// headName matches a namespace that may be a multipath head: nvme, subsystem,
// n, namespace. Its hidden paths have the controller between the two numbers.
var headName = regexp.MustCompile(`^nvme(\d+)n(\d+)$`)

func (h host) below(disk string) []string {
	pattern := filepath.Join(disk, "slaves/*")
	if m := headName.FindStringSubmatch(filepath.Base(disk)); m != nil {
		pattern = filepath.Join(h.sys, "block", "nvme"+m[1]+"c*n"+m[2])
	}
	// The pattern is well formed, the only thing Glob can object to.
	links, _ := filepath.Glob(pattern)
	var dirs []string
	for _, link := range links {
		if dir, err := filepath.EvalSymlinks(link); err == nil {
			dirs = append(dirs, wholeDisk(dir))
		}
	}
	return dirs
}

// smallestNrRequests returns the smallest known figure, or 0. A disk that does
// not tell counts as the kernel's default (BLKDEV_DEFAULT_RQ) beside one that
// does.
func smallestNrRequests(disks []string) int {
	const kernelDefault = 128
	smallest, known := int64(math.MaxInt64), false
	for _, disk := range disks {
		n, ok := number(disk, "queue/nr_requests", 1, 1<<24)
		if !ok {
			n = kernelDefault
		}
		smallest, known = min(smallest, n), known || ok
	}
	if !known {
		return 0
	}
	return int(smallest)
}

// driverOf goes by the name first, because virtual devices have no driver link.
func driverOf(disk string) Driver {
	name := filepath.Base(disk)
	for _, k := range []struct {
		prefix string
		driver Driver
	}{
		{"nvme", DriverNVMe}, {"nullb", DriverNull}, {"dm-", DriverDM}, {"md", DriverMD},
		{"loop", DriverLoop}, {"vd", DriverVirtio}, {"sd", DriverSCSI}, {"ublkb", DriverUblk},
	} {
		if strings.HasPrefix(name, k.prefix) {
			return k.driver
		}
	}
	target, err := os.Readlink(filepath.Join(disk, "device/driver"))
	if err != nil {
		return ""
	}
	return Driver(filepath.Base(target))
}

// scheduler takes the one in brackets from a line such as "none [kyber] bfq".
func scheduler(line string) string {
	_, rest, found := strings.Cut(line, "[")
	if !found {
		if strings.ContainsAny(line, " \n") {
			return ""
		}
		return line
	}
	name, _, _ := strings.Cut(rest, "]")
	return name
}

// text returns a sysfs attribute without the blanks around it, or "".
func text(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns a sysfs attribute that is a decimal number from low to high.
func number(dir, name string, low, high int64) (int64, bool) {
	n, err := strconv.ParseInt(text(dir, name), 10, 64)
	if err != nil || n < low || n > high {
		return 0, false
	}
	return n, true
}
