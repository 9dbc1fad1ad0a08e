// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	dmName = "pollux-experiments"
	mdNode = "/dev/md127"
)

// words is a command line of a format, split at its spaces.
func words(format string, args ...any) []string { return strings.Fields(fmt.Sprintf(format, args...)) }

// withDM makes a dm-stripe over the drives, hands its node to use, and removes it, also
// when ctx is cancelled: the drives may be a host's. It writes nothing.
func (r *runner) withDM(use func(node string)) (err error) {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if node := r.dmNode(); node != "" {
		return fmt.Errorf("%s is there already, as %s; if an earlier run has left it: dmsetup remove %s", dmName, node, dmName)
	}
	sectors, err := r.sectors()
	if err != nil {
		return err
	}
	table := fmt.Sprintf("0 %d striped 2 %d %s 0 %s 0", 2*sectors, chunkSectors, r.Devices[0], r.Devices[1])
	// Without udev nobody would answer the wait for it.
	if err := r.must("dmsetup", "create", dmName, "--noudevsync", "--readonly", "--table", table); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.must("dmsetup", "remove", "--noudevsync", dmName)) }()
	var node string
	if !waitFor(r.ctx, slack, func() bool { node = r.dmNode(); return node != "" }) {
		return fmt.Errorf("dmsetup has made %s, and there is no node of it in /dev", dmName)
	}
	use(node)
	return nil
}

// dmNode finds the stripe's node by its name in sysfs; "" if there is none.
func (r *runner) dmNode() string {
	names, _ := filepath.Glob("/sys/class/block/dm-*") // the pattern is right
	for _, n := range names {
		node := filepath.Join("/dev", filepath.Base(n))
		if attribute(filepath.Base(n), "dm/name") == dmName && isNode(node) {
			return node
		}
	}
	return ""
}

// sectors is the size of a drive's share of the stripe: whole chunks of the smaller one.
func (r *runner) sectors() (int64, error) {
	least := int64(0)
	for _, d := range r.Devices[:2] {
		n, err := strconv.ParseInt(attribute(blockName(d), "size"), 10, 64)
		if err != nil || n < chunkSectors {
			return 0, fmt.Errorf("%s: sysfs does not say how large it is; name a block device", d)
		}
		if least == 0 || n < least {
			least = n
		}
	}
	return least / chunkSectors * chunkSectors, nil
}

// withMD does so with an md raid0. It has no superblocks, so this writes nothing either.
func (r *runner) withMD(use func(node string)) (err error) {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if size := attribute(filepath.Base(mdNode), "size"); size != "" && size != "0" {
		return fmt.Errorf("%s is there already; if an earlier run has left it: mdadm --stop %s", mdNode, mdNode)
	}
	if err := r.must("mdadm", "--build", mdNode, "--level=0", "--raid-devices=2", "--chunk="+strconv.Itoa(chunkKiB), "--run", r.Devices[0], r.Devices[1]); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.must("mdadm", "--stop", mdNode)) }()
	if !waitFor(r.ctx, slack, func() bool { return isNode(mdNode) }) {
		return fmt.Errorf("mdadm has built an array, and there is no %s", mdNode)
	}
	use(mdNode)
	return nil
}

// isNode keeps fio from making a file in /dev and measuring memory.
func isNode(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice
}
