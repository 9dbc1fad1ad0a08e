// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"fmt"

	"pollux/internal/assembly"
	"pollux/multipath"
	"pollux/poller"
)

// Why Open finds no volume, or refuses one. Test with errors.Is.
var (
	// ErrNotFound: no device that could be read names such a volume.
	ErrNotFound = assembly.ErrNotFound
	// ErrAmbiguous: several volumes answer to the name; the error lists their
	// UUIDs.
	ErrAmbiguous = assembly.ErrAmbiguous
	// ErrIncomplete: a member is missing, or a device that should be one is
	// doubled, a clone, stale, shrunk or reformatted. The error names each.
	ErrIncomplete = assembly.ErrIncomplete
	// ErrUnfinished: its creation was interrupted; there never was a volume.
	ErrUnfinished = assembly.ErrUnfinished
	// ErrForeign: opened for writing, a member has a signature of something else
	// on it, such as that of a filesystem. Options.Force opens all the same.
	ErrForeign = assembly.ErrForeign
)

// Open opens a volume that pollux create has made: by name or UUID, wherever its
// members are and whatever they are called by now, or by naming them. It locks the
// members until Close: for writing alone, for reading beside other readers.
//
// Nothing is written unless the volume is opened for writing and every check has
// passed: opts make sense, all members are there, once, as they were when the volume
// was created, with nothing of anybody else's on them, and, unless Options.Polling
// says otherwise, can be polled. Then superblocks that an interrupted creation or a
// torn write has left behind are completed.
//
// The error answers to one of those above, to poller.ErrNotPollable, or to
// fs.ErrPermission, and names the device, the cause and the cure.
func Open(opts Options) (*Handle, error) {
	if _, err := opts.withDefaults(); err != nil {
		return nil, fmt.Errorf("opening a volume: %w", err)
	}
	opened, err := assembly.Open(context.Background(), assembly.OpenOptions{
		Volume:  opts.Volume,
		Where:   assembly.Where{Devices: opts.Devices, Patience: opts.Patience},
		Write:   !opts.ReadOnly,
		Force:   opts.Force,
		Polling: opts.Polling,
	})
	if err != nil {
		return nil, err
	}
	h, err := openHandle(opened, opts)
	if err != nil {
		_ = opened.Close()
		return nil, fmt.Errorf("volume %s: %w", opened.Name, err)
	}
	return h, nil
}

// openHandle makes the volume of its members and a handle of it. On error their disks
// are open still.
func openHandle(opened *assembly.Opened, opts Options) (*Handle, error) {
	members := make([]poller.Device, len(opened.Members))
	for slot, paths := range opened.Members {
		m, err := onePerDrive(paths, opts.Paths)
		if err != nil {
			return nil, fmt.Errorf("member %d: %w", slot, err)
		}
		members[slot] = m
	}
	v, err := newNamed(opened.Name, members, Geometry{Chunk: opened.Chunk})
	if err != nil {
		return nil, err
	}
	v.uuid = opened.UUID.String()
	return NewHandle(v, opts)
}

// onePerDrive makes one device of the paths to a drive.
func onePerDrive(paths []*poller.Disk, opts multipath.Options) (poller.Device, error) {
	if len(paths) == 1 {
		return paths[0], nil
	}
	devices := make([]poller.Device, len(paths))
	for i, d := range paths {
		devices[i] = d
	}
	return multipath.New(devices, opts)
}
