// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"errors"
	"strings"
	"testing"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// TestLab4Kn does I/O to a drive with logical blocks of 4096 bytes.
func TestLab4Kn(t *testing.T) {
	path := labDevices(t, blockdev.DriverNVMe, 1)[0]
	disk := openDisk(t, path, poller.PollRequired)
	if got := disk.Limits().BlockSize; got != 4096 {
		t.Fatalf("the block size of %s is %d, want 4096", path, got)
	}
	q := newQueue(t, disk, poller.QueueConfig{Depth: 4, MaxTransfer: 16 * kib})
	mem := q.Limits().Arena.Bytes()
	for _, flags := range []poller.Flags{0, poller.HiPri} {
		for _, r := range []*poller.Request{
			{Op: poller.Read, Flags: flags, Buf: mem[:512]},
			{Op: poller.Write, Flags: flags, Buf: mem[:4096+512]},
			{Op: poller.Read, Flags: flags, Offset: 512, Buf: mem[:4096]},
		} {
			do(t, q, r)
			if !errors.Is(r.Err, poller.ErrAlignment) || !strings.Contains(r.Err.Error(), "4096") || r.N != 0 {
				t.Errorf("%v of %d bytes at %d: N %d, error %v, want one that names 4096", r.Op, len(r.Buf), r.Offset, r.N, r.Err)
			}
		}
	}
	checkSizes(t, path, []int{4 * kib, 12 * kib, 64 * kib, 512*kib + 4*kib, mib, 4*mib - 4*kib, 4 * mib})
}
