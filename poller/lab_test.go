// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// The tests named TestLab run on the drives of the lab, which scripts/test-lab
// names in POLLUX_LAB, separated by spaces. They read and write them.

// patience is how long an I/O may take before the test calls it lost. Emulated
// drives on a busy host are slow, but not that slow.
const patience = 20 * time.Second

// labDevices returns the first n of the lab's devices of the given kind.
func labDevices(t *testing.T, driver blockdev.Driver, n int) []string {
	t.Helper()
	list := strings.Fields(os.Getenv("POLLUX_LAB"))
	if len(list) == 0 {
		t.Skip("POLLUX_LAB is not set: this needs the drives of the lab (scripts/test-lab)")
	}
	var found []string
	for _, path := range list {
		dev, err := blockdev.Open(path, blockdev.Mode{})
		if err != nil {
			t.Fatal(err)
		}
		if dev.Info().Driver == driver {
			found = append(found, path)
		}
		if err := dev.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < n {
		t.Fatalf("POLLUX_LAB=%q has %d %s devices, this needs %d", list, len(found), driver, n)
	}
	return found[:n]
}

// openDisk opens a disk for the length of the test.
func openDisk(t *testing.T, path string, polling poller.Polling) *poller.Disk {
	t.Helper()
	d, err := poller.Open(path, poller.OpenOptions{Write: true, Polling: polling})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// newQueue makes a queue for the length of the test.
func newQueue(t *testing.T, d poller.Device, cfg poller.QueueConfig) poller.Queue {
	t.Helper()
	q, err := d.NewQueue(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// do sends reqs through q, as many at once as it takes, and fails the test
// unless every one comes back.
func do(t *testing.T, q poller.Queue, reqs ...*poller.Request) {
	t.Helper()
	done := make([]*poller.Request, len(reqs))
	for sent, back := 0, 0; back < len(reqs); {
		n, err := q.Submit(reqs[sent:])
		if err != nil {
			t.Fatal(err)
		}
		sent += n
		n, err = q.Wait(1, done, patience)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			t.Fatalf("%d of %d requests did not come back within %v", sent-back, len(reqs), patience)
		}
		back += n
	}
}

// mustDo is do for requests that have to succeed, polled or plain as said.
func mustDo(t *testing.T, q poller.Queue, polled bool, reqs ...*poller.Request) {
	t.Helper()
	do(t, q, reqs...)
	for _, r := range reqs {
		if r.Err != nil || r.N != len(r.Buf) || r.Polled != polled {
			t.Fatalf("%v of %d bytes at %d: N %d, Polled %v, error %v; want all of it and Polled %v",
				r.Op, len(r.Buf), r.Offset, r.N, r.Polled, r.Err, polled)
		}
	}
}

// interrupts returns how many interrupts fn made the NVMe drives raise.
func interrupts(t *testing.T, fn func()) int {
	t.Helper()
	before, ok, err := blockdev.NVMeInterrupts()
	if err != nil || !ok {
		t.Fatalf("cannot count the interrupts of NVMe drives: listed %v, error %v", ok, err)
	}
	fn()
	after, _, err := blockdev.NVMeInterrupts()
	if err != nil {
		t.Fatal(err)
	}
	return int(after - before)
}

// quiet fails the test when fn makes an NVMe drive raise an interrupt, or makes
// the kernel start a worker thread: what a polled read or write never does.
func quiet(t *testing.T, fn func()) {
	t.Helper()
	if workers(t) != 0 {
		// The kernel keeps the last worker of a process for good.
		t.Fatal("worker threads of an earlier test are there: run each lab test in a process of its own, as scripts/test-lab does")
	}
	if n := interrupts(t, fn); n != 0 {
		t.Errorf("%d interrupts, want none", n)
	}
	if n := workers(t); n != 0 {
		t.Errorf("%d io_uring worker threads, want none", n)
	}
}

func workers(t *testing.T) int {
	t.Helper()
	n, err := blockdev.WorkerThreads()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// load keeps the requests out on q, each sent again as it comes back, until d
// has passed, and returns how many came back per second.
func load(q poller.Queue, reqs []*poller.Request, d time.Duration) (perSecond float64, err error) {
	done := make([]*poller.Request, len(reqs))
	ready := slices.Clone(reqs)
	count, start := 0, time.Now()
	var elapsed time.Duration
	for out := 0; len(ready) > 0 || out > 0; {
		if elapsed == 0 {
			if elapsed = time.Since(start); elapsed < d {
				elapsed = 0
			}
		}
		if elapsed == 0 {
			n, err := q.Submit(ready)
			if err != nil {
				return 0, err
			}
			out += n
			ready = ready[:copy(ready, ready[n:])]
		} else if out == 0 {
			break
		}
		n, err := q.Wait(1, done, patience)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, os.ErrDeadlineExceeded
		}
		out -= n
		for _, r := range done[:n] {
			if r.Err != nil {
				return 0, r.Err
			}
		}
		if elapsed == 0 {
			count += n
			ready = append(ready, done[:n]...)
		}
	}
	return float64(count) / elapsed.Seconds(), nil
}

// readRequests makes n reads of size bytes each, spread over the device, with
// buffers in q's arena.
func readRequests(q poller.Queue, n, size int, flags poller.Flags) []*poller.Request {
	l := q.Limits()
	mem := l.Arena.Bytes()
	reqs := make([]*poller.Request, n)
	stride := l.Size / int64(n) / int64(size) * int64(size)
	for i := range reqs {
		reqs[i] = &poller.Request{Op: poller.Read, Flags: flags, Offset: int64(i) * stride, Buf: mem[i*size:][:size:size]}
	}
	return reqs
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
