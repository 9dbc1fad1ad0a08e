// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"fmt"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

const (
	testChunk = 16 << 10
	testSize  = 16 * testChunk // of a member
)

// memoryVolume is a volume over memory, each member of which can be disturbed.
type memoryVolume struct {
	*volume.Volume
	memories []*faultdev.Memory
	faults   []*faultdev.Device
}

func newMemoryVolume(t testing.TB, members int) *memoryVolume {
	t.Helper()
	v := new(memoryVolume)
	var devs []poller.Device
	for i := range members {
		mem := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Name: fmt.Sprintf("memory%d", i)})
		fault := faultdev.New(mem)
		v.memories, v.faults = append(v.memories, mem), append(v.faults, fault)
		devs = append(devs, fault)
	}
	v.Volume = newVolume(t, testChunk, devs...)
	return v
}

// newVolume makes a volume that is closed at the end of the test.
func newVolume(t testing.TB, chunk int64, members ...poller.Device) *volume.Volume {
	t.Helper()
	v, err := volume.New(members, volume.Geometry{Chunk: chunk})
	if err != nil {
		t.Fatal(err)
	}
	devtest.Close(t, v)
	return v
}

// count fills b with bytes that tell their position.
func count(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i>>9*7 + i + seed)
	}
}
