// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// newHandle makes a handle that is closed at the end of the test.
func newHandle(t testing.TB, dev poller.Device, opts volume.Options) *volume.Handle {
	t.Helper()
	if opts.Polling == poller.PollRequired && dev.Limits().NotPollable != nil {
		opts.Polling = poller.PollIfPossible
	}
	h, err := volume.NewHandle(dev, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Errorf("closing the handle: %v", err)
		}
	})
	return h
}

// handleKinds are the devices that a handle must behave the same over.
var handleKinds = []struct {
	name string
	make func(t testing.TB) poller.Device
}{
	{"memory", func(testing.TB) poller.Device { return faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}) }},
	{"memory in random order", func(testing.TB) poller.Device {
		return faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Seed: 1, Lateness: 5})
	}},
	{"memory with blocks of 4096", func(testing.TB) poller.Device { return faultdev.NewMemory(testSize, 4096, faultdev.MemoryOptions{}) }},
	{"memory that holds 3 short requests", func(testing.TB) poller.Device {
		return faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Budget: 3, Unit: 1536})
	}},
	{"memory that holds one block", func(testing.TB) poller.Device {
		return faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Budget: 1, Unit: 512})
	}},
	{"file", func(t testing.TB) poller.Device { return devtest.OpenDisk(t, devtest.TempFile(t, testSize)) }},
	{"volume over memory", func(t testing.TB) poller.Device { return newMemoryVolume(t, 3).Volume }},
	{"volume over files", func(t testing.TB) poller.Device {
		return stripeOver2(t, devtest.OpenDisk(t, devtest.TempFile(t, testSize)), devtest.OpenDisk(t, devtest.TempFile(t, testSize)))
	}},
}

// stripeOver2 makes a volume that its handle closes.
func stripeOver2(t testing.TB, members ...poller.Device) *volume.Volume {
	t.Helper()
	v, err := volume.New(members, volume.Geometry{Chunk: testChunk})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// within fails the test if f takes longer than patience.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	end := make(chan struct{})
	go func() {
		defer close(end)
		f()
	}()
	select {
	case <-end:
	case <-time.After(devtest.Patience):
		t.Fatalf("%s does not end", what)
	}
}

// together runs f(0) to f(n-1), each in a goroutine.
func together(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
