// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"pollux/internal/assembly"
	"pollux/internal/blockdev"
	"pollux/internal/superblock"
	"pollux/multipath"
	"pollux/poller"
	"pollux/volume"
)

// stack is a volume and the drives it stands on.
type stack struct {
	*volume.Volume
	drives []drive
	// handle owns the volume where it was opened by name; nil where it was built.
	handle *volume.Handle
}

// drive is a member: one disk, or all paths to it.
type drive struct {
	device poller.Device
	paths  []*poller.Disk
}

// driveOf returns the drive that a member of a volume is.
func driveOf(member poller.Device) (drive, bool) {
	switch m := member.(type) {
	case *poller.Disk:
		return drive{m, []*poller.Disk{m}}, true
	case *multipath.Multipath:
		d := drive{device: m}
		for _, p := range m.Paths() {
			disk, ok := p.(*poller.Disk)
			if !ok {
				return d, false
			}
			d.paths = append(d.paths, disk)
		}
		return d, true
	}
	return drive{}, false
}

// info is what the kernel tells over the first path.
func (d drive) info() blockdev.Info { return d.paths[0].Info() }

// disks are those of all members, with all their paths.
func (s stack) disks() (all []*poller.Disk) {
	for _, d := range s.drives {
		all = append(all, d.paths...)
	}
	return all
}

// Close closes the volume and the drives.
func (s stack) Close() error {
	if s.handle != nil {
		return s.handle.Close()
	}
	return s.Volume.Close()
}

// refuseMember refuses to write a report over a drive of the volume, under whatever
// name.
func (s stack) refuseMember(path string) error {
	report, err := os.Stat(path)
	if err != nil {
		return nil // there is none
	}
	for _, d := range s.disks() {
		if drive, err := os.Stat(d.Info().Path); err == nil && os.SameFile(report, drive) {
			return refusal(fmt.Sprintf("%s: is %s, a drive of the volume; write the report to another file", printable(path), d.Info().Path))
		}
	}
	return nil
}

// open opens the volume of the command line, or builds one of the devices.
func (f *benchFlags) open(args []string) (stack, error) {
	polling := poller.PollRequired
	switch {
	case !f.jobs.Polls():
		polling = poller.PollNever
	case f.allowUnpolled:
		polling = poller.PollIfPossible
	}
	if f.build {
		return f.buildStack(args, poller.OpenOptions{Write: f.writes(), Exclusive: f.writes(), Polling: polling})
	}
	where, err := f.search.where()
	if err != nil {
		return stack{}, err
	}
	return openVolume(volume.Options{
		Volume:   args[0],
		Devices:  where.Devices,
		ReadOnly: !f.writes(),
		Force:    f.force,
		Polling:  polling,
		Paths:    f.paths.options(),
	})
}

// openVolume opens a volume that was created.
func openVolume(opts volume.Options) (stack, error) {
	h, err := volume.Open(opts)
	if err != nil {
		return stack{}, err
	}
	s := stack{handle: h}
	ok := false
	if s.Volume, ok = h.Device().(*volume.Volume); ok {
		for _, m := range s.Members() {
			d, isDrive := driveOf(m)
			ok = ok && isDrive
			s.drives = append(s.drives, d)
		}
	}
	if !ok {
		return stack{}, errors.Join(fmt.Errorf("volume %s: its members are no drives: an error in pollux", opts.Volume), h.Close())
	}
	return s, nil
}

// buildStack opens the devices and stripes over them. An argument is a member: a device,
// or the paths to one drive with commas between them.
func (f *benchFlags) buildStack(args []string, opts poller.OpenOptions) (_ stack, err error) {
	paths, slots := splitPaths(args)
	sameDrive := func(i, j int) bool { return slots[i] == slots[j] }
	// What is wrong with the choice of devices is found while none is open for
	// writing, and told before what a drive cannot do. An exclusive open of the
	// same drive a second time would blame another program.
	looked, err := openDisks(paths, poller.OpenOptions{Polling: poller.PollNever}, sameDrive)
	closeDisks(looked)
	if err == nil && opts.Write {
		err = f.refuseTraces(paths)
	}
	if err != nil {
		return stack{}, err
	}
	var disks []*poller.Disk
	if opts.Write {
		disks, err = assembly.OpenBare(paths, opts, f.force, sameDrive)
	} else {
		disks, err = openDisks(paths, opts, sameDrive)
	}
	if err != nil {
		closeDisks(disks)
		return stack{}, err
	}
	s := stack{drives: make([]drive, len(args))}
	for i, d := range disks {
		s.drives[slots[i]].paths = append(s.drives[slots[i]].paths, d)
	}
	members := make([]poller.Device, len(args))
	for slot := range s.drives {
		d := &s.drives[slot]
		if d.device, err = f.join(d.paths); err != nil {
			closeDisks(disks)
			return stack{}, err
		}
		members[slot] = d.device
	}
	if s.Volume, err = volume.New(members, volume.Geometry{Chunk: int64(f.chunk)}); err != nil {
		closeDisks(disks)
		return stack{}, err
	}
	return s, nil
}

// splitPaths returns the devices of all arguments, and which argument each is of. What
// is there under its whole name has a comma in it.
func splitPaths(args []string) (paths []string, slots []int) {
	for slot, arg := range args {
		parts := []string{arg}
		if _, err := os.Lstat(arg); err != nil {
			parts = strings.Split(arg, ",")
		}
		for _, path := range parts {
			paths, slots = append(paths, path), append(slots, slot)
		}
	}
	return paths, slots
}

// join makes one device of the paths to a drive.
func (f *benchFlags) join(paths []*poller.Disk) (poller.Device, error) {
	if len(paths) == 1 {
		return paths[0], nil
	}
	devices := make([]poller.Device, len(paths))
	for i, d := range paths {
		devices[i] = d
	}
	return multipath.New(devices, f.paths.options())
}

// refuseTraces refuses devices that are in use, and unless it is forced those on
// which something is that writing would destroy.
func (f *benchFlags) refuseTraces(paths []string) error {
	var found []string
	for _, path := range paths {
		in, err := assembly.Inspect(path)
		switch {
		case err != nil:
			return err
		case in.Locked:
			return fmt.Errorf("%s: %w: another pollux uses it; stop that first", printable(path), blockdev.ErrBusy)
		case in.InUse != nil:
			return in.InUse
		}
		var what []string
		if in.Label.Verdict != superblock.Blank {
			what = append(what, sentence(in.Label))
		}
		for _, s := range in.Foreign {
			what = append(what, s.String())
		}
		if len(what) > 0 {
			found = append(found, fmt.Sprintf("%s: %s", printable(path), strings.Join(what, ", ")))
		}
	}
	if len(found) == 0 || f.force {
		return nil
	}
	return refusal(strings.Join(found, "; ") + "; if it is not needed, --force writes over it")
}

// openDisks returns those that it has opened, also when it fails.
func openDisks(paths []string, opts poller.OpenOptions, sameDrive func(i, j int) bool) ([]*poller.Disk, error) {
	var disks []*poller.Disk
	for i, path := range paths {
		d, err := poller.Open(path, opts)
		if err != nil {
			return disks, err
		}
		disks = append(disks, d)
		for j, other := range disks[:i] {
			switch a, b := d.Info(), other.Info(); {
			case !sameDrive(i, j):
				if a.Overlaps(b) {
					return disks, refusal(fmt.Sprintf("%s: the same drive as %s; name every drive once", path, paths[j]))
				}
			case a.ID() == b.ID():
				return disks, refusal(fmt.Sprintf("%s: the same device as %s, and no other path to it", path, paths[j]))
			case a.WWID == "" || a.Drive() != b.Drive():
				return disks, refusal(fmt.Sprintf("%s: no path to the drive that %s is: they have not the same worldwide identifier (see pollux inspect)", path, paths[j]))
			}
		}
	}
	return disks, nil
}

func closeDisks(disks []*poller.Disk) {
	for _, d := range disks {
		_ = d.Close()
	}
}
