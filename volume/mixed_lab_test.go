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

// TestLabNoPollQueuesMixed makes a volume of a drive that cannot be polled and
// one that can. The volume says which of them is not, and polls the other.
func TestLabNoPollQueuesMixed(t *testing.T) {
	plain := labDevices(t, blockdev.DriverNVMe, 1)[0]
	polled := labDevices(t, blockdev.DriverNull, 1)[0]
	const chunk = 64 * kib
	v := stripeOver(t, chunk, openDisk(t, polled, poller.PollRequired), openDisk(t, plain, poller.PollIfPossible))
	closing(t, v)
	q := newQueue(t, v, poller.QueueConfig{Depth: 4, MaxTransfer: 2 * chunk})
	for what, l := range map[string]poller.Limits{"volume": v.Limits(), "queue": q.Limits()} {
		if err := l.NotPollable; !errors.Is(err, poller.ErrNotPollable) ||
			!strings.Contains(err.Error(), "member 1") || !strings.Contains(err.Error(), plain) {
			t.Errorf("Limits().NotPollable of the %s is %v, want one that names member 1, %s", what, err, plain)
		}
	}
	mem := q.Limits().Arena.Bytes()
	read := func(offset int64, n int) *poller.Request {
		return &poller.Request{Op: poller.Read, Flags: poller.HiPri, Offset: offset, Buf: mem[:n:n]}
	}
	const count = 50
	for range count {
		mustDo(t, q, true, read(0, 4*kib))
		mustDo(t, q, false, read(chunk, 4*kib))
		// Not all of it is polled, so it does not say that it was.
		mustDo(t, q, false, read(chunk-512, kib))
	}
	members := v.Stats().Members
	if n := members[0].IO[poller.Read][poller.Polled].Latency.Count(); n != 2*count {
		t.Errorf("%d polled reads of member 0, want %d", n, 2*count)
	}
	if n := members[1].Fallbacks[poller.FallbackNotPollable]; n != 2*count {
		t.Errorf("%d reads of member 1 counted as asked for polled and sent plain, want %d", n, 2*count)
	}
	if n := members[0].Fallbacks[poller.FallbackNotPollable]; n != 0 {
		t.Errorf("%d reads of member 0 counted as sent plain, want none", n)
	}
}
