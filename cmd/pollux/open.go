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
	"pollux/poller"
	"pollux/volume"
)

// stack is a volume and the drives it stands on.
type stack struct {
	*volume.Volume
	disks []*poller.Disk
	// handle owns the volume where it was opened by name; nil where it was built.
	handle *volume.Handle
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
	for _, d := range s.disks {
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
			d, isDisk := m.(*poller.Disk)
			ok = ok && isDisk
			s.disks = append(s.disks, d)
		}
	}
	if !ok {
		return stack{}, errors.Join(fmt.Errorf("volume %s: its members are no drives: an error in pollux", opts.Volume), h.Close())
	}
	return s, nil
}

// buildStack opens the devices and stripes over them.
func (f *benchFlags) buildStack(paths []string, opts poller.OpenOptions) (_ stack, err error) {
	// What is wrong with the choice of devices is found while none is open for
	// writing, and told before what a drive cannot do. An exclusive open of the
	// same drive a second time would blame another program.
	looked, err := openDisks(paths, poller.OpenOptions{Polling: poller.PollNever})
	closeDisks(looked)
	if err == nil && opts.Write {
		err = f.refuseTraces(paths)
	}
	if err != nil {
		return stack{}, err
	}
	var disks []*poller.Disk
	if opts.Write {
		disks, err = assembly.OpenBare(paths, opts, f.force)
	} else {
		disks, err = openDisks(paths, opts)
	}
	if err != nil {
		closeDisks(disks)
		return stack{}, err
	}
	members := make([]poller.Device, len(disks))
	for i, d := range disks {
		members[i] = d
	}
	v, err := volume.New(members, volume.Geometry{Chunk: int64(f.chunk)})
	if err != nil {
		closeDisks(disks)
		return stack{}, err
	}
	return stack{Volume: v, disks: disks}, nil
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
func openDisks(paths []string, opts poller.OpenOptions) ([]*poller.Disk, error) {
	var disks []*poller.Disk
	for _, path := range paths {
		d, err := poller.Open(path, opts)
		if err != nil {
			return disks, err
		}
		for i, other := range disks {
			if d.Overlaps(other) {
				_ = d.Close()
				return disks, refusal(fmt.Sprintf("%s: the same drive as %s; name every drive once", path, paths[i]))
			}
		}
		disks = append(disks, d)
	}
	return disks, nil
}

func closeDisks(disks []*poller.Disk) {
	for _, d := range disks {
		_ = d.Close()
	}
}
