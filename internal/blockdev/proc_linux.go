// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// KernelVersion returns the running kernel's version, and its release string as
// uname -r prints it.
func KernelVersion() (major, minor int, release string) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return 0, 0, ""
	}
	release = unix.ByteSliceToString(u.Release[:])
	major, minor = parseRelease(release)
	return major, minor, release
}

// parseRelease takes the first two numbers from a kernel release such as
// 6.12.43+deb13-amd64. What is missing or no number is 0.
func parseRelease(release string) (major, minor int) {
	first, rest, _ := strings.Cut(release, ".")
	return leadingInt(first), leadingInt(rest)
}

func leadingInt(s string) int {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		return 0
	}
	return n
}

// WorkerThreads counts the io_uring worker threads of this process. There is
// one when the kernel could not start an I/O at once; for polled I/O that means
// more requests in flight than the drive has room for, or a request that the
// kernel had to split. Fsync always takes one.
func WorkerThreads() (int, error) { return machine.workerThreads() }

func (h host) workerThreads() (int, error) {
	dir := filepath.Join(h.proc, "self/task")
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("cannot list the threads of this process, is proc mounted on /proc: %w", err)
	}
	n := 0
	for _, task := range tasks {
		// A thread that ended since the directory was read has no name.
		if strings.HasPrefix(text(dir, filepath.Join(task.Name(), "comm")), "iou-wrk") {
			n++
		}
	}
	return n, nil
}

// NVMeInterrupts returns how many interrupts the NVMe drives have raised since
// boot, over all CPUs. ok is false when the kernel lists no NVMe interrupt, so
// that nothing can be concluded from the sum. Polled I/O leaves it unchanged.
func NVMeInterrupts() (sum uint64, ok bool, err error) {
	f, err := os.Open(filepath.Join(machine.proc, "interrupts"))
	if err != nil {
		return 0, false, fmt.Errorf("cannot read the interrupt counts: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading: nothing can be lost
	return sumInterrupts(f, "nvme")
}
