// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"pollux/internal/blockdev"
	"pollux/metrics"
	"pollux/poller"
)

// TestLabCountingStraggler has one member that dm-delay slows down among three that it
// does not: the metrics name it.
func TestLabCountingStraggler(t *testing.T) {
	const slow, chunk = 1, 16 * kib
	null := labDevices(t, blockdev.DriverNull, 4)
	var members []poller.Device
	for i, path := range null[:4] {
		if i == slow {
			path = delayed(t, path)
		}
		members = append(members, openDisk(t, path, poller.PollNever))
	}
	v := stripeOver(t, chunk, members...)
	closing(t, v)
	q := newQueue(t, v, poller.QueueConfig{Depth: 1, MaxTransfer: 4 * chunk})
	for range 10 {
		mustDo(t, q, false, &poller.Request{Op: poller.Read, Buf: q.Limits().Arena.Bytes()[: 4*chunk : 4*chunk]})
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(v))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	late := make(map[string]float64)
	for _, f := range families {
		if f.GetName() != "pollux_member_straggler_seconds_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "member" {
					late[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	t.Logf("seconds that reads waited for a member: %v", late)
	// The kernel counts the delay in ticks, and the first may be a short one.
	if least := 10 * slowness.Seconds() / 2; len(late) != 4 || late["1"] < least || late["0"]+late["2"]+late["3"] > least/10 {
		t.Errorf("the slow member is to be 1, by %v s at least", least)
	}
}
