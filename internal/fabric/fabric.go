// SPDX-License-Identifier: Apache-2.0

// Package fabric exports a block device over NVMe/TCP on the loopback address and connects
// to it, for tests and measurements in a machine that goes away afterwards: nothing is
// undone.
package fabric

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	configfs  = "/sys/kernel/config"
	nqn       = "pollux"
	firstPort = 4420
	// patience is how long the kernel may take to show what was connected.
	patience = 20 * time.Second
)

// Connect exports a block device on as many ports of the loopback address as there are
// to be paths, connects to each, and returns the node. The kernel must have its modules
// nvmet, nvmet-tcp and nvme-tcp loaded; whether it joins the paths is its own setting. Of
// each path polled are all queues but one, with 1024 requests: the default of 127 would
// not hold 16 jobs of 32.
func Connect(disk string, paths int) (string, error) {
	if info, err := os.Stat(disk); err != nil || info.Mode()&(os.ModeDevice|os.ModeCharDevice) != os.ModeDevice {
		return "", fmt.Errorf("%s: no such block device", disk)
	}
	if _, err := os.Stat(configfs + "/nvmet"); err != nil {
		if out, err := exec.Command("mount", "-t", "configfs", "none", configfs).CombinedOutput(); err != nil {
			return "", fmt.Errorf("cannot mount configfs: %w: %s", err, out)
		}
	}
	subsystem := filepath.Join(configfs, "nvmet/subsystems", nqn)
	if err := export(disk, subsystem, paths); err != nil {
		return "", err
	}
	for i := range paths {
		link := filepath.Join(configfs, "nvmet/ports", strconv.Itoa(i+1), "subsystems", nqn)
		if err := os.Symlink(subsystem, link); err != nil {
			return "", fmt.Errorf("cannot listen: %w; load nvmet-tcp", err)
		}
		options := fmt.Sprintf("transport=tcp,traddr=127.0.0.1,trsvcid=%d,nqn=%s,nr_io_queues=1,nr_poll_queues=1,queue_size=1024", firstPort+i, nqn)
		if err := os.WriteFile("/dev/nvme-fabrics", []byte(options), 0o600); err != nil {
			return "", fmt.Errorf("cannot connect: %w; load nvme-tcp", err)
		}
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if n := node(paths); n != "" {
			return n, nil
		}
	}
	return "", fmt.Errorf("connected to %s, and its %d paths are not there", nqn, paths)
}

// export makes a subsystem of the disk, and ports.
func export(disk, subsystem string, paths int) error {
	namespace := filepath.Join(subsystem, "namespaces/1")
	if err := os.MkdirAll(namespace, 0o755); err != nil {
		return fmt.Errorf("cannot export %s: %w; load nvmet", disk, err)
	}
	type setting struct{ file, value string }
	settings := []setting{{subsystem + "/attr_allow_any_host", "1"}, {namespace + "/device_path", disk}, {namespace + "/enable", "1"}}
	for i := range paths {
		port := filepath.Join(configfs, "nvmet/ports", strconv.Itoa(i+1))
		if err := os.Mkdir(port, 0o755); err != nil {
			return err
		}
		settings = append(settings, setting{port + "/addr_trtype", "tcp"}, setting{port + "/addr_adrfam", "ipv4"},
			setting{port + "/addr_traddr", "127.0.0.1"}, setting{port + "/addr_trsvcid", strconv.Itoa(firstPort + i)})
	}
	for _, s := range settings {
		if err := os.WriteFile(s.file, []byte(s.value), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// node finds the node that leads to the exported disk over so many paths; "" while there
// is none. Where the kernel joins paths, each is a block device without a node.
func node(paths int) string {
	node, hidden := "", 0
	names, _ := filepath.Glob("/sys/class/block/nvme*n*") // the pattern is right
	for _, dir := range names {
		name := filepath.Base(dir)
		if text, err := os.ReadFile(filepath.Join(dir, "device/subsysnqn")); err != nil || strings.TrimSpace(string(text)) != nqn {
			continue
		}
		if strings.Contains(strings.TrimPrefix(name, "nvme"), "c") {
			hidden++
		} else if _, err := os.Stat("/dev/" + name); err == nil {
			node = "/dev/" + name
		}
	}
	if paths > 1 && hidden < paths {
		return ""
	}
	return node
}
