// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"testing"

	"pollux/internal/labtest"
	"pollux/poller"
	"pollux/volume"
)

const patience = labtest.Patience

// Short names for what all lab tests use.
var (
	labDevices = labtest.Devices
	closing    = labtest.Closing
	newQueue   = labtest.Queue
	do         = labtest.Do
	mustDo     = labtest.MustDo
	interrupts = labtest.Interrupts
	quiet      = labtest.Quiet
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// openDisk opens a disk that somebody else closes.
func openDisk(t *testing.T, path string, polling poller.Polling) *poller.Disk {
	t.Helper()
	d, err := poller.Open(path, poller.OpenOptions{Write: true, Polling: polling})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// stripeOver makes a volume of devices; whoever has it closes it.
func stripeOver(t *testing.T, chunk int64, members ...poller.Device) *volume.Volume {
	t.Helper()
	v, err := volume.New(members, volume.Geometry{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	return v
}
