// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// TestLabGoneMember pulls a drive out of the bus under load.
func TestLabGoneMember(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags poller.Flags
	}{{"plain", 0}, {"polled", poller.HiPri}} {
		t.Run(c.name, func(t *testing.T) { testGoneMember(t, c.flags) })
	}
}

func testGoneMember(t *testing.T, flags poller.Flags) {
	const (
		depth = 32
		chunk = 64 * kib
		gone  = 1 // the slot of the member that vanishes
	)
	paths := labDevices(t, blockdev.DriverNVMe, 2)
	paths = paths[len(paths)-2:]
	v := stripeOver(t, chunk,
		openDisk(t, paths[0], poller.PollRequired), openDisk(t, paths[1], poller.PollRequired))
	q, err := v.NewQueue(poller.QueueConfig{Depth: depth, MaxTransfer: 4 * kib})
	if err != nil {
		t.Fatal(err)
	}
	mem := q.Limits().Arena.Bytes()
	ready := make([]*poller.Request, depth)
	for i := range ready {
		// Reads and writes, each kind on both members.
		r := &poller.Request{Op: poller.Op(i / 2 % 2), Flags: flags, Offset: int64(i) * chunk, Buf: mem[i*4*kib:][: 4*kib : 4*kib]}
		ready[i] = r
	}

	var failed []*poller.Request
	sent, back, good := 0, 0, 0
	done := make([]*poller.Request, depth)
	// turn submits what is ready and takes what has come back.
	turn := func() {
		t.Helper()
		n, err := q.Submit(ready)
		if err != nil {
			t.Fatal(err)
		}
		sent += n
		ready = ready[:copy(ready, ready[n:])]
		if n, err = q.Wait(1, done, patience); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			t.Fatalf("%d of %d requests did not come back within %v", sent-back, sent, patience)
		}
		back += n
		for _, r := range done[:n] {
			if r.Err != nil {
				failed = append(failed, r)
				continue
			}
			good++
			ready = append(ready, r)
		}
	}
	for start := time.Now(); time.Since(start) < 200*time.Millisecond; {
		turn()
	}
	if len(failed) > 0 {
		t.Fatalf("before anything was pulled: %v", failed[0].Err)
	}
	pulled := time.Now()
	restore := pull(t, paths[gone])
	// Every request goes on until it has failed: at first those that the drive
	// had, then those that the broken volume refuses.
	for len(failed) < depth {
		turn()
	}
	t.Logf("%d requests done, then %d failed within %v, the first: %v", good, len(failed), time.Since(pulled), failed[0].Err)
	if sent != back {
		t.Errorf("%d requests were taken and %d came back", sent, back)
	}
	for _, r := range failed {
		var where *poller.Error
		if !errors.Is(r.Err, poller.ErrGone) || !errors.As(r.Err, &where) || where.Member != gone || r.N != 0 {
			t.Errorf("%v at %d: N %d, error %v; want %v of member %d", r.Op, r.Offset, r.N, r.Err, poller.ErrGone, gone)
		}
	}
	// Broken once: all that comes now fails for one and the same reason.
	again := []*poller.Request{failed[0], failed[1]}
	for i, r := range again {
		r.Op, r.Offset = poller.Read, int64(i)*chunk
	}
	do(t, q, again...)
	var first, second *poller.Error
	if !errors.As(again[0].Err, &first) || !errors.As(again[1].Err, &second) || first.Err != second.Err || !errors.Is(first, poller.ErrGone) {
		t.Errorf("after the member is gone: %v and %v, want one and the same reason", again[0].Err, again[1].Err)
	}
	t.Logf("from then on: %v", again[0].Err)
	if err := q.Close(); err != nil {
		t.Errorf("closing the queue: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Errorf("closing the volume: %v", err)
	}
	restore()
	// Opened again, it works.
	v = stripeOver(t, chunk,
		openDisk(t, paths[0], poller.PollRequired), openDisk(t, paths[1], poller.PollRequired))
	closing(t, v)
	q = newQueue(t, v, poller.QueueConfig{Depth: depth, MaxTransfer: 4 * kib})
	for i, r := range failed {
		r.Offset, r.Buf = int64(i)*chunk, q.Limits().Arena.Bytes()[i*4*kib:][:4*kib:4*kib]
	}
	mustDo(t, q, flags != 0, failed...)
}

// pull removes the drive at path from the PCI bus, in the background. What it returns
// brings the drive back, under the same path.
func pull(t *testing.T, path string) (restore func()) {
	t.Helper()
	node, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	serial := readFile(t, filepath.Join("/sys/block", filepath.Base(node), "device/serial"))
	wait := removeFunction(t, pciOf(t, path))
	return func() {
		t.Helper()
		wait()
		rescan(t)
		for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if name := findSerial(t, serial); name != "" {
				// The kernel may have given it another name, and the alias is
				// what later tests know it by.
				if err := errors.Join(os.Remove(path), os.Symlink("/dev/"+name, path)); err != nil {
					t.Fatal(err)
				}
				return
			}
			if time.Since(start) > patience {
				t.Fatalf("the drive with serial %s did not come back within %v", serial, patience)
			}
		}
	}
}

// findSerial returns the kernel's name of the namespace with that serial number.
func findSerial(t *testing.T, serial string) string {
	t.Helper()
	found, err := filepath.Glob("/sys/block/nvme*/device/serial")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		text, err := os.ReadFile(file)
		name := filepath.Base(filepath.Dir(filepath.Dir(file)))
		if _, missing := os.Stat("/dev/" + name); err == nil && missing == nil && strings.TrimSpace(string(text)) == serial {
			return name
		}
	}
	return ""
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}
