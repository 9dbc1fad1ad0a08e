// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"fmt"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// The steady path allocates nothing: not for reads, writes, flushes, requests
// of many chunks, nor for Wait; alone and 32 at once; over memory, and through
// the kernel.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	memory := func(testing.TB) poller.Device {
		return faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Budget: 512})
	}
	file := func(t testing.TB) poller.Device { return devtest.OpenDisk(t, devtest.TempFile(t, testSize)) }
	for _, kind := range []struct {
		name string
		dev  func(t testing.TB) poller.Device
	}{
		{"volume over memory", func(t testing.TB) poller.Device { return newVolume(t, testChunk, memory(t), memory(t)) }},
		{"volume of volumes", func(t testing.TB) poller.Device {
			return newVolume(t, testChunk, newVolume(t, testChunk, memory(t), memory(t)), memory(t))
		}},
		{"disk", file},
		{"volume over disks", func(t testing.TB) poller.Device { return newVolume(t, testChunk, file(t), file(t)) }},
	} {
		for _, depth := range []int{1, 32} {
			for _, c := range []struct {
				name  string
				op    poller.Op
				flags poller.Flags
				len   int64
			}{
				{"read", poller.Read, 0, 4096},
				{"read, polled", poller.Read, poller.HiPri, 4096},
				{"write", poller.Write, 0, 4096},
				{"read of 3 chunks", poller.Read, 0, 3 * testChunk},
				{"write of 3 chunks, polled", poller.Write, poller.HiPri, 3 * testChunk},
				{"flush", poller.Flush, 0, 0},
			} {
				t.Run(fmt.Sprintf("%s/%s, depth %d", kind.name, c.name, depth), func(t *testing.T) {
					dev := kind.dev(t)
					if _, ok := dev.(*poller.Disk); ok {
						devtest.Close(t, dev)
					}
					r := devtest.Open(t, dev, poller.QueueConfig{Depth: depth, MaxTransfer: 3 * testChunk})
					reqs, done := make([]*poller.Request, depth), make([]*poller.Request, depth)
					for i := range reqs {
						reqs[i] = &poller.Request{Op: c.op, Flags: c.flags, Offset: testChunk / 2, Buf: r.Buf(c.len)}
					}
					batch := func() {
						for sent, got := 0, 0; got < depth; {
							n, err := r.Queue.Submit(reqs[sent:])
							if err != nil {
								t.Fatal(err)
							}
							sent += n
							if n, err = r.Queue.Wait(1, done, -1); err != nil {
								t.Fatal(err)
							}
							got += n
						}
					}
					batch() // the first makes histograms
					if n := testing.AllocsPerRun(10, batch); n != 0 {
						t.Errorf("%v allocations for %d requests", n, depth)
					}
					for _, req := range reqs {
						if req.Err != nil {
							t.Fatal(req.Err)
						}
					}
				})
			}
		}
	}
}
