// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"pollux/internal/blockdev"
)

// Guest is the machine that was measured: the lab's, or the host itself.
type Guest struct {
	CPUs   int    `json:"cpus"`
	Kernel string `json:"kernel"`
	// Drives is what sysfs calls the models.
	Drives []string `json:"drives"`
	Pollux string   `json:"pollux"`
	Fio    string   `json:"fio"`
	// IOPolicy is how a native head chooses among its paths, "" without one.
	IOPolicy string `json:"iopolicy,omitempty"`
}

// Host is the machine that a report is written on, which is the lab's host.
type Host struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	// QEMU is its version, "" where nothing was emulated.
	QEMU string `json:"qemu"`
}

func findGuest(ctx context.Context, c Config) (Guest, error) {
	g := Guest{CPUs: runtime.NumCPU()}
	_, _, g.Kernel = blockdev.KernelVersion()
	var err error
	if g.Pollux, err = version(ctx, c.Pollux); err != nil {
		return g, err
	}
	if g.Fio, err = version(ctx, c.Fio); err != nil {
		return g, err
	}
	for _, d := range c.Devices {
		g.Drives = append(g.Drives, model(d))
	}
	return g, nil
}

// version asks a program for its own, of which the first line counts.
func version(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, slack)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s: cannot be run: %w; install it, or name it", program, err)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, nil
}

// model returns what a drive calls itself, "unknown" if it does not.
func model(device string) string {
	if s := attribute(blockName(device), "device/model"); s != "" {
		return s
	}
	return "unknown"
}

// blockName is the name in sysfs of a device that may be given by a link.
func blockName(device string) string {
	if real, err := filepath.EvalSymlinks(device); err == nil {
		device = real
	}
	return filepath.Base(device)
}

// attribute reads a file below a block device in sysfs; "" if there is none.
func attribute(name, file string) string {
	data, err := os.ReadFile(filepath.Join("/sys/class/block", name, file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// FindHost describes this machine. QEMU is that of the lab if emulated is true.
func FindHost(ctx context.Context, emulated bool) Host {
	h := Host{CPU: "unknown", Cores: runtime.NumCPU()}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if name, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				h.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if !emulated {
		return h
	}
	h.QEMU = "unknown"
	if v, err := version(ctx, "qemu-system-x86_64"); err == nil {
		h.QEMU = strings.TrimPrefix(v, "QEMU emulator version ")
	}
	return h
}

// waitFor looks every so often whether something is there by now.
func waitFor(ctx context.Context, limit time.Duration, there func() bool) bool {
	for end := time.Now().Add(limit); !there(); {
		if ctx.Err() != nil || time.Now().After(end) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}
