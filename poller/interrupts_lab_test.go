// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pollux/internal/blockdev"
	"pollux/poller"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// labSizes are the lengths of I/O that the tests go through: every power of two
// from a block to 4 MiB, and what lies beside the limits where the kernel splits.
func labSizes() []int {
	var sizes []int
	for n := 512; n <= 4*mib; n *= 2 {
		sizes = append(sizes, n)
	}
	return append(sizes, 1536, 64*kib-512, 3*64*kib+512, 504*kib+512, 508*kib, 512*kib+512,
		mib-512, mib+512, 2*mib+4*kib+512, 4*mib-512)
}

// labAligns are offsets of a buffer from a page: every kind that direct I/O allows.
func labAligns(bufAlign int64) []int {
	page := os.Getpagesize()
	return []int{0, 512, 3 * 512, page - 512, int(bufAlign), page - int(bufAlign)}
}

func sizeName(n int) string {
	switch {
	case n%mib == 0:
		return fmt.Sprintf("%dMiB", n/mib)
	case n%kib == 0:
		return fmt.Sprintf("%dKiB", n/kib)
	}
	return fmt.Sprintf("%d", n)
}

// TestLabPolledSizes writes and reads back every size from every alignment on
// one drive: whatever the drive's limits, no child may need a split by the
// kernel, which on Linux 6.1 never completes and on 6.12 goes through workers.
func TestLabPolledSizes(t *testing.T) {
	path := labDevices(t, blockdev.DriverNVMe, 1)[0]
	checkSizes(t, path, labSizes())
}

// TestLabPolledLowLimits is the same with limits that real drives have and the
// emulated one has not.
func TestLabPolledLowLimits(t *testing.T) {
	path := labDevices(t, blockdev.DriverNVMe, 1)[0]
	for _, limit := range []string{"4", "20", "128"} {
		t.Run("max_sectors_kb="+limit, func(t *testing.T) {
			setQueueFile(t, path, "max_sectors_kb", limit)
			checkSizes(t, path, []int{512, 4 * kib, 20 * kib, 20*kib + 512, 128 * kib, mib + 512})
		})
	}
}

func checkSizes(t *testing.T, path string, sizes []int) {
	disk := openDisk(t, path, poller.PollRequired)
	aligns := labAligns(disk.Info().BufAlign)
	const (
		most   = 4 * mib
		stride = most + 64*kib
	)
	arena, err := poller.NewArena(int64(len(aligns) * stride))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := arena.Close(); err != nil {
			t.Error(err)
		}
	})
	depth := len(aligns)
	// With the lowest limits one request takes all that the drive holds.
	if room := int(disk.Limits().MaxTransfer / most); room < depth {
		depth = max(room, 1)
	}
	maxTransfer := min(most, disk.Limits().MaxTransfer)
	q := newQueue(t, disk, poller.QueueConfig{Depth: depth, MaxTransfer: maxTransfer, Arena: arena})
	seed := rand.Uint64()
	t.Logf("seed %d, depth %d, fixed buffers %v", seed, q.Limits().QueueDepth, q.Limits().FixedBuffers)
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	want := make([]byte, len(arena.Bytes()))
	for _, size := range sizes {
		if int64(size) > maxTransfer {
			continue
		}
		t.Run(sizeName(size), func(t *testing.T) {
			reqs := make([]*poller.Request, len(aligns))
			for i, align := range aligns {
				at := i*stride + align
				buf := arena.Bytes()[at:][:size:size]
				_, _ = rng.Read(buf)
				copy(want[at:], buf)
				// Off the page on the drive as well, in whole blocks.
				offset := int64(i*stride) + int64(i)*disk.Info().BlockSize
				reqs[i] = &poller.Request{Op: poller.Write, Flags: poller.HiPri, Offset: offset, Buf: buf}
			}
			quiet(t, func() { mustDo(t, q, true, reqs...) })
			for _, r := range reqs {
				r.Op = poller.Read
				clear(r.Buf)
			}
			quiet(t, func() { mustDo(t, q, true, reqs...) })
			for i, align := range aligns {
				if at := i*stride + align; !bytes.Equal(arena.Bytes()[at:][:size], want[at:][:size]) {
					t.Errorf("buffer %d bytes off a page: what was read is not what was written", align)
				}
			}
		})
	}
}

// setQueueFile sets a limit of the drive's request queue for the length of the test.
func setQueueFile(t *testing.T, path, name, value string) {
	t.Helper()
	node, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("/sys/block", filepath.Base(node), "queue", name)
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, []byte(strings.TrimSpace(string(old))), 0); err != nil {
			t.Error(err)
		}
	})
}

// TestLabPlainInterrupts shows that the count of interrupts tells something: a
// plain I/O at depth 1 raises one.
func TestLabPlainInterrupts(t *testing.T) {
	disk := openDisk(t, labDevices(t, blockdev.DriverNVMe, 1)[0], poller.PollRequired)
	q := newQueue(t, disk, poller.QueueConfig{Depth: 1, MaxTransfer: 4 * kib})
	const count = 300
	n := interrupts(t, func() {
		for range count {
			mustDo(t, q, false, readRequests(q, 1, 4*kib, 0)...)
		}
	})
	ratio := float64(n) / count
	t.Logf("%.3f interrupts per plain I/O at depth 1", ratio)
	if ratio < 0.9 || ratio > 1.1 {
		t.Errorf("%d interrupts for %d plain reads at depth 1, want one each", n, count)
	}
}
