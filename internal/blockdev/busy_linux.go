// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// InUse says what holds the device now, as far as the kernel tells: a mount, swap
// or a stacked device. It is nil, or answers to ErrBusy. It claims nothing, and what
// it does not see an exclusive open may still run into.
func (d *Device) InUse() error {
	if !d.info.Block {
		return nil
	}
	cause, cure, ok := machine.holder(d.info)
	if !ok {
		return nil
	}
	return &Error{Path: d.info.Path, Kind: ErrBusy, Cause: cause, Cure: cure}
}

// whoHolds says what keeps a busy device and how to make it let go.
func (h host) whoHolds(in Info) (cause, cure string) {
	cause, cure, ok := h.holder(in)
	if !ok {
		cause = "busy: held by another program (another pollux, ZFS, or a mount in another namespace)"
		cure = "find it with fuser -v " + printable(in.Path) + " and stop it"
	}
	return cause, cure
}

// holder finds what keeps a device, which may be through a partition of it, or
// through the disk it is on.
func (h host) holder(in Info) (cause, cure string, ok bool) {
	devs := map[string]string{fmt.Sprintf("%d:%d", in.Major, in.Minor): in.Name}
	var dirs []string
	if dir, err := h.blockDir(in.Major, in.Minor); err == nil {
		dirs = append(dirs, dir)
		if disk := wholeDisk(dir); disk != dir {
			dirs = append(dirs, disk)
		} else {
			parts, _ := filepath.Glob(filepath.Join(dir, "*/partition"))
			for _, p := range parts {
				dirs = append(dirs, filepath.Dir(p))
			}
		}
		for _, dir := range dirs {
			if dev := text(dir, "dev"); dev != "" {
				devs[dev] = filepath.Base(dir)
			}
		}
	}
	subject := func(name string) string {
		if name == in.Name {
			return "busy: "
		}
		return "busy: " + name + " is "
	}
	if name, where, ok := h.mounted(devs); ok {
		return subject(name) + "mounted on " + printable(where), "umount " + printable(where) + " first", true
	}
	if name, path, ok := h.swap(devs); ok {
		return subject(name) + "in use as swap", "swapoff " + printable(path) + " first", true
	}
	for _, dir := range dirs {
		holders, _ := filepath.Glob(filepath.Join(dir, "holders/*"))
		if len(holders) > 0 {
			what, cure := describeHolder(holders[0])
			return subject(filepath.Base(dir)) + "held by " + what, cure, true
		}
	}
	return "", "", false
}

func describeHolder(dir string) (what, cure string) {
	name := filepath.Base(dir)
	if dm := text(dir, "dm/name"); dm != "" {
		return name + " (device mapper " + printable(dm) + ")", "dmsetup remove " + printable(dm) + " first (vgchange -an for LVM)"
	}
	if strings.HasPrefix(name, "md") {
		return name, "mdadm --stop /dev/" + name + " first"
	}
	return name, "stop " + name + " first"
}

// mounted looks for one of devs, number to name, among the mounts.
func (h host) mounted(devs map[string]string) (name, where string, ok bool) {
	for line := range strings.Lines(text(h.proc, "self/mountinfo")) {
		// proc_pid_mountinfo(5): id parent major:minor root mountpoint options
		// [optional ...] - type source options
		head, tail, _ := strings.Cut(line, " - ")
		fields, source := strings.Fields(head), strings.Fields(tail)
		if len(fields) < 5 {
			continue
		}
		if name, ok := devs[fields[2]]; ok {
			return name, unescape(fields[4]), true
		}
		// Btrfs shows a number that it made up, so the source has to tell.
		if len(source) >= 2 {
			if name, ok := match(devs, unescape(source[1])); ok {
				return name, unescape(fields[4]), true
			}
		}
	}
	return "", "", false
}

func (h host) swap(devs map[string]string) (name, path string, ok bool) {
	for line := range strings.Lines(text(h.proc, "swaps")) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[1] != "partition" {
			continue
		}
		path := unescape(fields[0])
		if name, ok := match(devs, path); ok {
			return name, path, true
		}
	}
	return "", "", false
}

// match looks for the device at path among devs.
func match(devs map[string]string, path string) (name string, ok bool) {
	short, ok := strings.CutPrefix(path, "/dev/")
	if !ok {
		return "", false
	}
	for _, name := range devs {
		if name == short {
			return name, true
		}
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return "", false
	}
	name, ok = devs[fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))]
	return name, ok
}

// unescape undoes the octal escapes that /proc uses for blanks in paths.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
