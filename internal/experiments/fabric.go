// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	configfs   = "/sys/kernel/config"
	fabricDisk = "/dev/nullb0"
	fabricNQN  = "pollux-experiments"
	firstPort  = 4420
)

// makeFabric exports a disk in memory over NVMe/TCP on as many ports of the loopback
// address as there are to be paths, connects to each, and returns the node. It is for
// the lab, whose machine goes away afterwards. With 127 requests, the default, 16 jobs
// of 32 would not fit, hence queue_size.
func (r *runner) makeFabric(paths int) (string, error) {
	if !isNode(fabricDisk) {
		return "", fmt.Errorf("%s: no such block device; load null_blk with memory_backed=1", fabricDisk)
	}
	if _, err := os.Stat(configfs + "/nvmet"); err != nil {
		if err := r.must("mount", "-t", "configfs", "none", configfs); err != nil {
			return "", err
		}
	}
	subsystem := filepath.Join(configfs, "nvmet/subsystems", fabricNQN)
	namespace := filepath.Join(subsystem, "namespaces/1")
	if err := os.MkdirAll(namespace, 0o755); err != nil {
		return "", fmt.Errorf("cannot export %s: %w; load nvmet", fabricDisk, err)
	}
	type setting struct{ file, value string }
	settings := []setting{{subsystem + "/attr_allow_any_host", "1"}, {namespace + "/device_path", fabricDisk}, {namespace + "/enable", "1"}}
	for i := range paths {
		port := filepath.Join(configfs, "nvmet/ports", strconv.Itoa(i+1))
		if err := os.Mkdir(port, 0o755); err != nil {
			return "", err
		}
		settings = append(settings, setting{port + "/addr_trtype", "tcp"}, setting{port + "/addr_adrfam", "ipv4"},
			setting{port + "/addr_traddr", "127.0.0.1"}, setting{port + "/addr_trsvcid", strconv.Itoa(firstPort + i)})
	}
	for _, s := range settings {
		if err := os.WriteFile(s.file, []byte(s.value), 0o644); err != nil {
			return "", err
		}
	}
	for i := range paths {
		link := filepath.Join(configfs, "nvmet/ports", strconv.Itoa(i+1), "subsystems", fabricNQN)
		if err := os.Symlink(subsystem, link); err != nil {
			return "", fmt.Errorf("cannot listen: %w; load nvmet-tcp", err)
		}
		options := fmt.Sprintf("transport=tcp,traddr=127.0.0.1,trsvcid=%d,nqn=%s,nr_io_queues=1,nr_poll_queues=1,queue_size=1024", firstPort+i, fabricNQN)
		if err := os.WriteFile("/dev/nvme-fabrics", []byte(options), 0o600); err != nil {
			return "", fmt.Errorf("cannot connect: %w; load nvme-tcp", err)
		}
	}
	var node string
	if !waitFor(r.ctx, slack, func() bool { node = fabricNode(paths); return node != "" }) {
		return "", fmt.Errorf("connected to %s, and its %d paths are not there", fabricNQN, paths)
	}
	return node, nil
}

// fabricNode finds the node that leads to the exported disk over so many paths; "" while
// there is none. Where the kernel joins paths, each is a block device without a node.
func fabricNode(paths int) string {
	node, hidden := "", 0
	names, _ := filepath.Glob("/sys/class/block/nvme*n*") // the pattern is right
	for _, n := range names {
		name := filepath.Base(n)
		if attribute(name, "device/subsysnqn") != fabricNQN {
			continue
		}
		if strings.Contains(strings.TrimPrefix(name, "nvme"), "c") {
			hidden++
		} else if isNode("/dev/" + name) {
			node = "/dev/" + name
		}
	}
	if paths > 1 && hidden < paths {
		return ""
	}
	return node
}
