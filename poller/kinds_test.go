// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// The rules of the contract hold for every kind of device, so their tests run
// over this table. Members are small, so that the ends are near.
const (
	kindSize  = 512 << 10
	kindChunk = 16 << 10
)

var kinds = []struct {
	name string
	make func(t testing.TB) poller.Device
}{
	{"memory", memoryKind},
	{"memory in random order", func(testing.TB) poller.Device {
		return faultdev.NewMemory(kindSize, 512, faultdev.MemoryOptions{Seed: 1, Lateness: 4})
	}},
	{"fault over memory", func(t testing.TB) poller.Device { return faultdev.New(memoryKind(t)) }},
	{"fault over disk", func(t testing.TB) poller.Device { return faultdev.New(diskKind(t)) }},
	{"disk", diskKind},
	{"volume of 1 disk", striped(diskKind)},
	{"volume of 2 disks", striped(diskKind, diskKind)},
	{"volume of 3 memories", striped(memoryKind, memoryKind, memoryKind)},
	{"volume of 4, mixed", striped(diskKind, memoryKind, diskKind, func(t testing.TB) poller.Device { return faultdev.New(memoryKind(t)) })},
	{"volume of volumes", striped(striped(memoryKind, diskKind), striped(diskKind), striped(memoryKind, memoryKind, memoryKind))},
}

func memoryKind(testing.TB) poller.Device {
	return faultdev.NewMemory(kindSize, 512, faultdev.MemoryOptions{})
}

func diskKind(t testing.TB) poller.Device {
	return devtest.OpenDisk(t, devtest.TempFile(t, kindSize))
}

// striped returns a maker of volumes.
func striped(makers ...func(testing.TB) poller.Device) func(testing.TB) poller.Device {
	return func(t testing.TB) poller.Device {
		t.Helper()
		var members []poller.Device
		for _, mk := range makers {
			members = append(members, mk(t))
		}
		v, err := volume.New(members, volume.Geometry{Chunk: kindChunk})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// eachKind runs a test on one device of every kind, which is closed at the end.
func eachKind(t *testing.T, test func(t *testing.T, dev poller.Device)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			dev := kind.make(t)
			devtest.Close(t, dev)
			test(t, dev)
		})
	}
}
