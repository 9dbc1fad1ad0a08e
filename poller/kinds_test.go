// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
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
	{"multipath of 1 memory", joined(func(t testing.TB) []poller.Device { return []poller.Device{memoryKind(t)} })},
	{"multipath of 2 memories", joined(sharedMemories)},
	{"multipath of 2 disks", joined(sameDisks)},
	{"volume of multipaths", striped(joined(sharedMemories), joined(sameDisks))},
	{"multipath of volumes", joined(func(t testing.TB) []poller.Device {
		a, b := sharedMemories(t), sharedMemories(t)
		over := func(members ...poller.Device) poller.Device {
			return striped(func(testing.TB) poller.Device { return members[0] }, func(testing.TB) poller.Device { return members[1] })(t)
		}
		return []poller.Device{over(a[0], b[0]), over(a[1], b[1])}
	})},
	{"volume of volumes", striped(striped(memoryKind, diskKind), striped(diskKind), striped(memoryKind, memoryKind, memoryKind))},
}

func memoryKind(testing.TB) poller.Device {
	return faultdev.NewMemory(kindSize, 512, faultdev.MemoryOptions{})
}

func diskKind(t testing.TB) poller.Device {
	return devtest.OpenDisk(t, devtest.TempFile(t, kindSize))
}

// sharedMemories are two paths to one memory.
func sharedMemories(testing.TB) []poller.Device {
	m := faultdev.NewMemory(kindSize, 512, faultdev.MemoryOptions{})
	return []poller.Device{m, m.Share(faultdev.MemoryOptions{Name: "other", Seed: 1, Lateness: 2})}
}

// sameDisks are two paths to one file.
func sameDisks(t testing.TB) []poller.Device {
	path := devtest.TempFile(t, kindSize)
	return []poller.Device{devtest.OpenDisk(t, path), devtest.OpenDisk(t, path)}
}

// joined returns a maker of multipaths.
func joined(paths func(testing.TB) []poller.Device) func(testing.TB) poller.Device {
	return func(t testing.TB) poller.Device {
		t.Helper()
		m, err := multipath.New(paths(t), multipath.Options{Policy: multipath.RoundRobin})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
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
