// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pollux/internal/assembly"
	"pollux/internal/blockdev"
	"pollux/multipath"
	"pollux/poller"
	"pollux/volume"
)

// These run in a machine whose drives have two controllers each, and a kernel that
// does not join them (nvme_core.multipath=N). POLLUX_LAB has the paths: both of the
// first drive, both of the second.

// TestLabTwoPaths reads over both paths of a drive: polled, without an interrupt, and
// shared as the policy says.
func TestLabTwoPaths(t *testing.T) {
	paths := labDevices(t, blockdev.DriverNVMe, 4)
	for _, policy := range []multipath.Policy{multipath.QueueDepth, multipath.RoundRobin, multipath.Failover} {
		t.Run(policy.String(), func(t *testing.T) {
			m := joinPaths(t, multipath.Options{Policy: policy}, openDisk(t, paths[0], poller.PollRequired), openDisk(t, paths[1], poller.PollRequired))
			closing(t, m)
			const depth, total = 32, 4000
			q := newQueue(t, m, poller.QueueConfig{Depth: depth, MaxTransfer: 4 * kib})
			reqs := make([]*poller.Request, total)
			for i := range reqs {
				at := i % depth
				reqs[i] = &poller.Request{Op: poller.Read, Flags: poller.HiPri, Offset: int64(i) * 4 * kib,
					Buf: q.Limits().Arena.Bytes()[at*4*kib:][: 4*kib : 4*kib]}
			}
			quiet(t, func() { mustDo(t, q, true, reqs...) })
			s := m.Stats()
			var did [2]uint64
			for i, p := range s.Members {
				did[i] = p.IO[poller.Read][poller.Polled].Latency.Count()
			}
			t.Logf("%d reads over one path, %d over the other", did[0], did[1])
			if did[0]+did[1] != total || s.IO[poller.Read][poller.Polled].Latency.Count() != total {
				t.Errorf("%d and %d are not %d", did[0], did[1], total)
			}
			switch policy {
			case multipath.RoundRobin:
				if diff := int64(did[0]) - int64(did[1]); max(diff, -diff)*20 >= total/2 {
					t.Errorf("they differ by more than 5 %%")
				}
			case multipath.QueueDepth:
				if did[0] == 0 || did[1] == 0 {
					t.Error("one path stood by")
				}
			case multipath.Failover:
				if did[1] != 0 {
					t.Error("the second path did not stand by")
				}
			}
		})
	}
}

// createPaths makes a volume of the two drives of the machine.
func createPaths(t *testing.T, name string, devices ...string) {
	t.Helper()
	c, err := assembly.PrepareCreate(context.Background(), assembly.CreateOptions{Name: name, Devices: devices, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Commit(), c.Close()); err != nil {
		t.Fatal(err)
	}
}

func destroyVolume(t *testing.T, name string) {
	t.Helper()
	d, err := assembly.PrepareDestroy(context.Background(), name, assembly.Where{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Commit(), d.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestLabTwoPathsOpen makes a volume over one path of each drive and opens it over both:
// all of them are used, and locked.
func TestLabTwoPathsOpen(t *testing.T) {
	paths := labDevices(t, blockdev.DriverNVMe, 4)
	// Case 9: the second path is the same drive.
	if _, err := assembly.PrepareCreate(context.Background(), assembly.CreateOptions{Name: "twice", Devices: paths[:2]}); !errors.Is(err, assembly.ErrTwice) {
		t.Errorf("two paths to one drive as two members: %v, want %v", err, assembly.ErrTwice)
	}
	createPaths(t, "paths.vol", paths[0], paths[3])
	defer destroyVolume(t, "paths.vol")
	h := mustOpen(t, volume.Options{Volume: "paths.vol"})
	for slot, m := range h.Device().Stats().Members {
		if len(m.Members) != 2 || len(m.Paths) != 2 {
			t.Fatalf("member %d has %d paths: %s", slot, len(m.Members), m.Name)
		}
	}
	for _, path := range paths {
		dev, err := blockdev.Open(path, blockdev.Mode{Write: true, Exclusive: true})
		if err == nil {
			t.Errorf("%s is not claimed", path)
			_ = dev.Close()
		}
		if dev, err = blockdev.Open(path, blockdev.Mode{}); err != nil {
			t.Fatal(err)
		}
		if locked, toWrite, err := dev.Locked(); !locked || !toWrite || err != nil {
			t.Errorf("%s is not locked: %v %v %v", path, locked, toWrite, err)
		}
		_ = dev.Close()
	}
	text := []byte("over every path")
	if _, err := h.WriteAt(text, 100*kib); err != nil {
		t.Fatal(err)
	}
	closeHandle(t, h)
	// Each path alone shows it too.
	for _, two := range [][]string{{paths[0], paths[2]}, {paths[1], paths[3]}} {
		h := mustOpen(t, volume.Options{Volume: "paths.vol", Devices: two, ReadOnly: true})
		got := make([]byte, len(text))
		if _, err := h.ReadAt(got, 100*kib); err != nil || string(got) != string(text) {
			t.Errorf("over %v: %q, %v", two, got, err)
		}
		closeHandle(t, h)
	}
}

// TestLabTwoPathsGone takes one path of a drive away under load, and brings it back,
// and then takes both.
func TestLabTwoPathsGone(t *testing.T) {
	paths := labDevices(t, blockdev.DriverNVMe, 4)
	createPaths(t, "paths.vol", paths[0], paths[2])
	for _, c := range []struct {
		name    string
		flags   poller.Flags
		policy  multipath.Policy
		removed int
	}{
		{"polled, queue-depth", poller.HiPri, multipath.QueueDepth, 0},
		{"polled, round-robin", poller.HiPri, multipath.RoundRobin, 1},
		{"plain, failover", 0, multipath.Failover, 0},
	} {
		if !t.Run(c.name, func(t *testing.T) { testPathGone(t, c.flags, c.policy, c.removed) }) {
			return
		}
	}
	t.Run("both", func(t *testing.T) { testNoPath(t) })
}

// member0 are the statistics of the member whose paths go.
func member0(h *volume.Handle) poller.Stats { return h.Device().Stats().Members[0] }

// carried is how many requests each path has done.
func carried(s poller.Stats) (did [2]uint64) {
	for i, p := range s.Members {
		for op := range p.IO {
			for mode := range p.IO[op] {
				did[i] += p.IO[op][mode].Latency.Count()
			}
		}
	}
	return did
}

func testPathGone(t *testing.T, flags poller.Flags, policy multipath.Policy, removed int) {
	const depth = 32
	h := mustOpen(t, volume.Options{Volume: "paths.vol", Paths: multipath.Options{Policy: policy}})
	defer closeHandle(t, h)
	q, err := h.Device().NewQueue(poller.QueueConfig{Depth: depth, MaxTransfer: verifiedBlock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}()
	lost := member0(h).Members[removed].Name
	v := newVerified(t, q, depth, flags, 1)
	v.run(500*time.Millisecond, nil)
	v.gap = 0
	wait := removeFunction(t, pciOf(t, lost))
	if !v.run(5*time.Second, func() bool { return !member0(h).Paths[removed].Live }) {
		t.Fatal("the path's loss was not noticed")
	}
	v.run(time.Second, nil)
	t.Logf("%s lost: %v; %+v", lost, v, member0(h).Paths)
	if v.gap > time.Second {
		t.Errorf("I/O went on after %v, want 1 s at most", v.gap)
	}
	if other := member0(h).Paths[1-removed]; !other.Live || other.Changes != 0 {
		t.Errorf("the other path: %+v", other)
	}
	v.finish()
	flush := &poller.Request{Op: poller.Flush}
	do(t, q, flush)
	if !errors.Is(flush.Err, poller.ErrPathLost) || !strings.Contains(flush.Err.Error(), lost) {
		t.Errorf("the first flush: %v, want %v of %s", flush.Err, poller.ErrPathLost, lost)
	} else {
		t.Logf("the first flush: %v", flush.Err)
	}
	mustDo(t, q, false, flush)
	wait()
	rescan(t)
	back := time.Now()
	before := carried(member0(h))
	if !v.run(10*time.Second, func() bool {
		did := carried(member0(h))
		return did[removed] > before[removed]+100 && (policy == multipath.Failover || did[1-removed] > before[1-removed]+100)
	}) {
		t.Errorf("10 s after its return the path does nothing: %+v", member0(h).Paths)
	}
	t.Logf("back after %v as %s: %v", time.Since(back).Round(time.Millisecond), member0(h).Members[removed].Name, v)
	v.finish()
}

func testNoPath(t *testing.T) {
	const depth, patience = 32, 2 * time.Second
	h := mustOpen(t, volume.Options{Volume: "paths.vol", Paths: multipath.Options{NoPathTimeout: patience}})
	defer closeHandle(t, h)
	q, err := h.Device().NewQueue(poller.QueueConfig{Depth: depth, MaxTransfer: verifiedBlock})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}()
	v := newVerified(t, q, depth, poller.HiPri, 2)
	v.run(300*time.Millisecond, nil)
	start := time.Now()
	var waits []func()
	for _, p := range member0(h).Members {
		waits = append(waits, removeFunction(t, pciOf(t, p.Name)))
	}
	for len(v.failed) < depth && time.Since(start) < 20*time.Second {
		v.turn()
	}
	took := time.Since(start)
	t.Logf("both lost, %v; all ended after %v: %v", v, took.Round(time.Millisecond), v.failed[0].Err)
	if len(v.failed) < depth || took > patience+5*time.Second {
		t.Errorf("%d of %d ended within %v", len(v.failed), depth, took)
	}
	for _, r := range v.failed {
		var where *poller.Error
		if !errors.Is(r.Err, poller.ErrGone) || !errors.As(r.Err, &where) || where.Member != 0 {
			t.Errorf("%v: want %v of member 0", r.Err, poller.ErrGone)
		}
	}
	for _, wait := range waits {
		wait()
	}
	rescan(t)
}

// pciOf returns the directory of the PCI function that a controller is.
func pciOf(t *testing.T, path string) string {
	t.Helper()
	node, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Join("/sys/block", filepath.Base(node), "device/device"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// removeFunction takes a PCI function away, in the background: the kernel waits there
// for I/O that the caller has yet to reap. What it returns waits for the kernel.
func removeFunction(t *testing.T, dir string) (wait func()) {
	t.Helper()
	removed := make(chan error, 1)
	go func() { removed <- os.WriteFile(filepath.Join(dir, "remove"), []byte("1"), 0) }()
	return func() {
		t.Helper()
		select {
		case err := <-removed:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatalf("the kernel is not done with removing %s after %v", dir, patience)
		}
	}
}

func rescan(t *testing.T) {
	t.Helper()
	if err := os.WriteFile("/sys/bus/pci/rescan", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
}
