// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Paths returns the controllers of the NVMe subsystem that the disk's namespace is in,
// by number, as they are now: each is a way to the drive, or will be when it has found
// the namespace. It is nil for what is no NVMe drive, and where sysfs does not tell.
func (in Info) Paths() []Path { return machine.paths(in) }

var controllerName = regexp.MustCompile(`^nvme(\d+)$`)

func (h host) paths(in Info) []Path {
	dir := h.subsystem(in.Disk)
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var paths []Path
	for _, e := range entries {
		if !controllerName.MatchString(e.Name()) {
			continue
		}
		controller, err := filepath.EvalSymlinks(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // it went this moment
		}
		p := Path{
			Controller:   e.Name(),
			Transport:    text(controller, "transport"),
			Address:      text(controller, "address"),
			State:        text(controller, "state"),
			ControllerID: -1,
		}
		if id, ok := number(controller, "cntlid", 0, 1<<16-1); ok {
			p.ControllerID = int(id)
		}
		if node := h.namespace(controller, in.WWID); node != "" {
			p.Name = filepath.Base(node)
			p.ANAState = text(node, "ana_state")
		}
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(a, b Path) int {
		return cmp.Compare(controllerNumber(a.Controller), controllerNumber(b.Controller))
	})
	return paths
}

func controllerNumber(name string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "nvme"))
	return n
}

// namespace returns the directory of the block device that a controller has for the
// drive: hidden, or a node of its own.
func (h host) namespace(controller, wwid string) string {
	found, _ := filepath.Glob(filepath.Join(controller, "nvme*n*")) // the pattern is well formed
	for _, dir := range found {
		if wwid != "" && text(dir, "wwid") == wwid {
			return dir
		}
	}
	return ""
}

// subsystem returns the directory of the NVMe subsystem that a disk is in, or "". A
// multipath head is below it; other namespaces are below their controller, and the
// subsystem has a link to that.
func (h host) subsystem(disk string) string {
	if disk == "" || !strings.HasPrefix(disk, "nvme") {
		return ""
	}
	parent, err := filepath.EvalSymlinks(filepath.Join(h.sys, "block", disk, "device"))
	if err != nil {
		return ""
	}
	if !controllerName.MatchString(filepath.Base(parent)) {
		if text(parent, "subsysnqn") == "" {
			return ""
		}
		return parent
	}
	all, _ := filepath.Glob(filepath.Join(h.sys, "class/nvme-subsystem/*", filepath.Base(parent)))
	if len(all) == 0 {
		return ""
	}
	return filepath.Dir(all[0])
}

// describeController fills in what is known of the controller of a namespace that has
// one: a multipath head has several.
func (h host) describeController(in *Info, disk string) {
	parent, err := filepath.EvalSymlinks(filepath.Join(disk, "device"))
	if err != nil || in.Driver != DriverNVMe {
		return
	}
	in.Subsystem = text(parent, "subsysnqn")
	if name := filepath.Base(parent); controllerName.MatchString(name) {
		in.Controller, in.Address = name, text(parent, "address")
		if id, ok := number(parent, "cntlid", 0, 1<<16-1); ok {
			in.ControllerID, in.ControllerKnown = int(id), true
		}
	}
}

// NodesOf returns the paths of the disks, not of their partitions, that show the drive
// of a worldwide identifier, in the order of their names. It opens none of them. A
// multipath head's hidden paths are left out.
func NodesOf(wwid string) []string { return machine.nodesOf(wwid) }

func (h host) nodesOf(wwid string) []string {
	if wwid == "" {
		return nil
	}
	dirs, _ := filepath.Glob(filepath.Join(h.sys, "block/*")) // the pattern is well formed
	var nodes []string
	for _, dir := range dirs {
		if wwidOf(dir) == wwid && text(dir, "hidden") != "1" && text(dir, "size") != "0" {
			nodes = append(nodes, devNode(filepath.Base(dir)))
		}
	}
	return nodes
}
