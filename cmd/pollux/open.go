// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"pollux/poller"
	"pollux/volume"
)

// stack is a volume and the drives it stands on.
type stack struct {
	*volume.Volume
	disks []*poller.Disk
}

// openStack opens the devices and stripes over them.
func openStack(paths []string, opts poller.OpenOptions, chunk int64) (_ stack, err error) {
	// What is wrong with the choice of devices is found while none is open for
	// writing, and told before what a drive cannot do. An exclusive open of the
	// same drive a second time would blame another program.
	looked, err := openDisks(paths, poller.OpenOptions{Polling: poller.PollNever})
	closeDisks(looked)
	if err != nil {
		return stack{}, err
	}
	disks, err := openDisks(paths, opts)
	if err != nil {
		closeDisks(disks)
		return stack{}, err
	}
	members := make([]poller.Device, len(disks))
	for i, d := range disks {
		members[i] = d
	}
	v, err := volume.New(members, volume.Geometry{Chunk: chunk})
	if err != nil {
		closeDisks(disks)
		return stack{}, err
	}
	return stack{v, disks}, nil
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
