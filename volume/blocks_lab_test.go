// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"strings"
	"testing"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// TestLab4KnMember makes a volume of drives with blocks of 512 and 4096 bytes:
// the larger one counts for all of it.
func TestLab4KnMember(t *testing.T) {
	byBlock := make(map[int64]string)
	for _, path := range labDevices(t, blockdev.DriverNVMe, 2) {
		disk := openDisk(t, path, poller.PollRequired)
		byBlock[disk.Limits().BlockSize] = path
		if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if byBlock[512] == "" || byBlock[4096] == "" {
		t.Fatalf("this needs a drive with blocks of 512 bytes and one of 4096, the lab has %v", byBlock)
	}
	v := stripeOver(t, 64*kib,
		openDisk(t, byBlock[512], poller.PollRequired), openDisk(t, byBlock[4096], poller.PollRequired))
	closing(t, v)
	if got := v.Limits().BlockSize; got != 4096 {
		t.Errorf("the block size is %d, want 4096", got)
	}
	q := newQueue(t, v, poller.QueueConfig{Depth: 4, MaxTransfer: 64 * kib})
	mem := q.Limits().Arena.Bytes()
	// On either member.
	for _, offset := range []int64{0, 64 * kib} {
		r := &poller.Request{Op: poller.Read, Flags: poller.HiPri, Offset: offset, Buf: mem[:512:512]}
		do(t, q, r)
		if !errors.Is(r.Err, poller.ErrAlignment) || !strings.Contains(r.Err.Error(), "4096") {
			t.Errorf("512 bytes at %d: error %v, want one that names 4096", offset, r.Err)
		}
	}
	quiet(t, func() {
		for _, offset := range []int64{0, 64*kib - 4*kib, 64 * kib} {
			mustDo(t, q, true, &poller.Request{Op: poller.Read, Flags: poller.HiPri, Offset: offset, Buf: mem[: 8*kib : 8*kib]})
		}
	})
}
