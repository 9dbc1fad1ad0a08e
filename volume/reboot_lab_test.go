// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pollux/internal/assembly"
	"pollux/internal/labtest"
	"pollux/poller"
	"pollux/volume"
)

// rebootSize is what is written and read back, over many stripes and to an end that
// is no whole block.
const rebootSize = 24<<20 + 123

// rebootBoot is what the first boot leaves on the volume for the others.
type rebootBoot struct {
	UUID string
	// Names and Addresses are the kernel's name and the PCI address by serial.
	Names, Addresses map[string]string
}

// TestLabReboot makes a volume in the first boot and finds it again in those that
// follow, in which the drives have each other's names, or other controllers.
func TestLabReboot(t *testing.T) {
	boot := os.Getenv("POLLUX_LAB_BOOT")
	here := placesOf(t, labtest.Devices(t, "nvme", 2)[:2])
	content := make([]byte, rebootSize)
	rand.NewChaCha8([32]byte{1}).Read(content)
	if boot == "1" {
		here.UUID = createReboot(t, labtest.Devices(t, "nvme", 2)[:2])
		h := mustOpen(t, volume.Options{Volume: "lab.vol"})
		head, err := json.Marshal(here)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range [][]byte{append(head, '\n'), content} {
			at := int64(0)
			if len(part) == len(content) {
				at = 4096
			}
			if n, err := h.WriteAt(part, at); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := h.Flush(); err != nil {
			t.Fatal(err)
		}
		closeHandle(t, h)
	}

	h := mustOpen(t, volume.Options{Volume: "lab.vol", ReadOnly: true})
	var first rebootBoot
	if err := json.NewDecoder(io.NewSectionReader(h, 0, 4096)).Decode(&first); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(io.NewSectionReader(h, 4096, rebootSize))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("boot %s: %d bytes, %v, and they are not those written", boot, len(got), err)
	}
	closeHandle(t, h)
	closeHandle(t, mustOpen(t, volume.Options{Volume: first.UUID}))

	for serial, name := range first.Names {
		t.Logf("boot %s: %s was %s at %s, is %s at %s", boot, serial, name, first.Addresses[serial], here.Names[serial], here.Addresses[serial])
		// What the boots are for: without it the test would show nothing.
		if boot == "2" && here.Names[serial] == name {
			t.Errorf("%s has kept its name", serial)
		}
	}
	if boot == "3" {
		moved := false
		for serial, address := range first.Addresses {
			moved = moved || here.Addresses[serial] != address
		}
		if !moved {
			t.Error("no drive was moved to another controller")
		}
	}
}

func createReboot(t *testing.T, paths []string) string {
	t.Helper()
	c, err := assembly.PrepareCreate(context.Background(), assembly.CreateOptions{Name: "lab.vol", Devices: paths})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return c.Plan.UUID.String()
}

// mustOpen insists that every member is polled, as Open does by default.
func mustOpen(t *testing.T, opts volume.Options) *volume.Handle {
	t.Helper()
	h, err := volume.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	if why := h.Device().Limits().NotPollable; why != nil || opts.Polling != poller.PollRequired {
		t.Fatal(why)
	}
	return h
}

func closeHandle(t *testing.T, h *volume.Handle) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func placesOf(t *testing.T, paths []string) rebootBoot {
	t.Helper()
	here := rebootBoot{Names: map[string]string{}, Addresses: map[string]string{}}
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(real)
		serial := sysText(t, name, "serial")
		here.Names[serial], here.Addresses[serial] = name, sysText(t, name, "address")
	}
	return here
}

func sysText(t *testing.T, name, attribute string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/sys/block", name, "device", attribute))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
