// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// All returns the paths of the block devices on which a volume's member could
// be, disks and partitions, in the order of their names. Those without a medium,
// RAM disks, optical drives, the hidden paths of multipath heads, and whatever
// another device stands on are left out: they hold no member, or another device
// shows the same bytes. It opens none of them.
func All() ([]string, error) { return machine.all() }

func (h host) all() ([]string, error) {
	class := filepath.Join(h.sys, "class/block")
	entries, err := os.ReadDir(class)
	if err != nil {
		return nil, fmt.Errorf("cannot list the block devices, is sysfs mounted on /sys: %w", err)
	}
	var paths []string
	for _, e := range entries {
		dir, err := filepath.EvalSymlinks(filepath.Join(class, e.Name()))
		if err == nil && couldBeMember(dir) {
			paths = append(paths, devNode(e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// couldBeMember goes by the kernel's names where no attribute tells: brd and sr
// have had theirs since before sysfs.
func couldBeMember(dir string) bool {
	name := filepath.Base(wholeDisk(dir))
	for _, prefix := range []string{"ram", "sr", "fd"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && strings.Trim(rest, "0123456789") == "" {
			return false
		}
	}
	if text(dir, "hidden") == "1" || text(dir, "size") == "0" {
		return false
	}
	holders, _ := filepath.Glob(filepath.Join(dir, "holders/*"))
	return len(holders) == 0
}
