// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"pollux/internal/blockdev"
)

// pathJSON is a path to a drive: a device, an NVMe controller, or both.
type pathJSON struct {
	// Path is the device; "" for one that the kernel hides under its multipath head, and
	// for a controller that shows none.
	Path string `json:"path"`
	// Name is the kernel's name of the block device, hidden or not.
	Name       string `json:"name"`
	Controller string `json:"controller"`
	Transport  string `json:"transport"`
	Address    string `json:"address"`
	// State is that of the controller, ANAState that of the drive over it; both in the
	// kernel's words.
	State    string `json:"state"`
	ANAState string `json:"ana_state"`
}

// pathsOf returns the paths to the drive that some devices show: those of its
// controllers, and the devices that have none.
func pathsOf(devices []blockdev.Info) []pathJSON {
	paths := []pathJSON{}
	known := make(map[string]bool)
	for _, c := range devices[0].Paths() {
		p := pathJSON{Name: c.Name, Controller: c.Controller, Transport: c.Transport, Address: c.Address, State: c.State, ANAState: c.ANAState}
		if c.Name != "" && devices[0].Controller != "" {
			p.Path = "/dev/" + c.Name + strings.TrimPrefix(devices[0].Name, devices[0].Disk)
		}
		known[c.Controller] = true
		paths = append(paths, p)
	}
	for _, d := range devices {
		if len(devices) > 1 && (d.Controller == "" || !known[d.Controller]) {
			paths = append(paths, pathJSON{Path: d.Path, Name: d.Name, Controller: d.Controller, Transport: d.Transport, Address: d.Address})
		}
	}
	return paths
}

// pathsNote says over how many of the paths to a drive the devices reach it, "" where
// there is one way only.
func pathsNote(devices []blockdev.Info, paths []pathJSON) string {
	switch {
	case len(paths) < 2:
		return ""
	case devices[0].Driver == blockdev.DriverNVMe && devices[0].Controller == "":
		return fmt.Sprintf("%d paths, joined by the kernel", len(paths))
	case len(devices) < len(paths):
		return fmt.Sprintf("%d of %d paths", len(devices), len(paths))
	}
	return fmt.Sprintf("%d paths", len(paths))
}

// cells are the path's columns for people: the device, and how it is reached.
func (p pathJSON) cells() (device, way string) {
	device = p.Path
	if device == "" {
		device = p.Name
	}
	if device == "" {
		device = "-"
	}
	var words []string
	for _, w := range []string{p.Controller, strings.TrimSpace(p.Transport + " " + p.Address), p.State, p.ANAState} {
		if w != "" {
			words = append(words, printable(w))
		}
	}
	return printable(device), strings.Join(words, ", ")
}
