// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/internal/fabric"
	"pollux/poller"
	"pollux/volume"
)

// These run in a machine whose kernel joins the paths to a drive itself: the member is a
// multipath head, and pollux sees one device.

// TestLabHead makes a volume of two heads and does polled I/O to it, without an interrupt
// on any path.
func TestLabHead(t *testing.T) {
	heads := labDevices(t, blockdev.DriverNVMe, 2)
	createPaths(t, "heads.vol", heads[:2]...)
	defer destroyVolume(t, "heads.vol")
	h := mustOpen(t, volume.Options{Volume: "heads.vol"})
	defer closeHandle(t, h)
	for slot, m := range h.Device().Stats().Members {
		if len(m.Members) != 0 || len(m.Paths) != 0 {
			t.Errorf("member %d (%s) has paths: the head is one device", slot, m.Name)
		}
	}
	quiet(t, func() { verifyPolled(t, h.Device(), 32, time.Second) })
}

// TestLabHeadRemote does the same to a drive behind two NVMe/TCP paths.
func TestLabHeadRemote(t *testing.T) {
	null := labDevices(t, blockdev.DriverNull, 1)
	node, err := fabric.Connect(null[0], 2)
	if err != nil {
		t.Fatal(err)
	}
	d := openDisk(t, node, poller.PollRequired)
	info := d.Info()
	if paths := info.Paths(); info.Transport != "tcp" || info.Controller != "" || len(paths) != 2 || d.Limits().GoneIsFinal {
		t.Errorf("%s is reached by %s over %+v, gone is final: %v", node, info.Transport, paths, d.Limits().GoneIsFinal)
	}
	v := stripeOver(t, 64*kib, d)
	closing(t, v)
	verifyPolled(t, v, 32, time.Second)
}

// verifyPolled does verified I/O and insists that all of it was polled.
func verifyPolled(t *testing.T, dev poller.Device, depth int, d time.Duration) {
	t.Helper()
	q, err := dev.NewQueue(poller.QueueConfig{Depth: depth, MaxTransfer: verifiedBlock})
	if err != nil {
		t.Fatal(err)
	}
	v := newVerified(t, q, depth, poller.HiPri, 3)
	v.run(d, nil)
	v.finish()
	s := q.Stats()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	polled := s.IO[poller.Read][poller.Polled].Latency.Count() + s.IO[poller.Write][poller.Polled].Latency.Count()
	plain := s.IO[poller.Read][poller.Plain].Latency.Count() + s.IO[poller.Write][poller.Plain].Latency.Count()
	t.Logf("%v; %d polled, %d not", v, polled, plain)
	if polled != uint64(v.good) || plain != 0 {
		t.Errorf("of %d requests %d were polled and %d not", v.good, polled, plain)
	}
}
