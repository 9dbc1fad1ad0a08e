// SPDX-License-Identifier: Apache-2.0

// Package labtest helps the tests named TestLab, which run on the drives of the
// lab. scripts/test-lab names those in POLLUX_LAB, separated by spaces. The tests
// read and write them.
package labtest

import (
	"os"
	"strings"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// Patience is how long an I/O may take before a test calls it lost. Emulated
// drives on a busy host are slow, but not that slow.
const Patience = 20 * time.Second

// Devices returns the lab's devices of the given kind, at least n of them.
func Devices(t *testing.T, driver blockdev.Driver, n int) []string {
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
	return found
}

// Closing closes a device or a queue at the end of the test.
func Closing(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Queue makes a queue for the length of the test.
func Queue(t *testing.T, d poller.Device, cfg poller.QueueConfig) poller.Queue {
	t.Helper()
	q, err := d.NewQueue(cfg)
	if err != nil {
		t.Fatal(err)
	}
	Closing(t, q)
	return q
}

// Do sends reqs through q, as many at once as it takes, and fails the test
// unless every one comes back.
func Do(t *testing.T, q poller.Queue, reqs ...*poller.Request) {
	t.Helper()
	done := make([]*poller.Request, len(reqs))
	for sent, back := 0, 0; back < len(reqs); {
		n, err := q.Submit(reqs[sent:])
		if err != nil {
			t.Fatal(err)
		}
		sent += n
		n, err = q.Wait(1, done, Patience)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			t.Fatalf("%d of %d requests did not come back within %v", sent-back, len(reqs), Patience)
		}
		back += n
	}
}

// MustDo is Do for requests that have to succeed, polled or plain as said.
func MustDo(t *testing.T, q poller.Queue, polled bool, reqs ...*poller.Request) {
	t.Helper()
	Do(t, q, reqs...)
	for _, r := range reqs {
		if r.Err != nil || r.N != len(r.Buf) || r.Polled != polled {
			t.Fatalf("%v of %d bytes at %d: N %d, Polled %v, error %v; want all of it and Polled %v",
				r.Op, len(r.Buf), r.Offset, r.N, r.Polled, r.Err, polled)
		}
	}
}

// Interrupts returns how many interrupts fn made the NVMe drives raise.
func Interrupts(t *testing.T, fn func()) int {
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

// Quiet fails the test when fn makes an NVMe drive raise an interrupt, or makes
// the kernel start a worker thread: what a polled read or write never does.
func Quiet(t *testing.T, fn func()) {
	t.Helper()
	if Workers(t) != 0 {
		// The kernel keeps the last worker of a process for good.
		t.Fatal("worker threads of an earlier test are there: run each lab test in a process of its own, as scripts/test-lab does")
	}
	if n := Interrupts(t, fn); n != 0 {
		t.Errorf("%d interrupts, want none", n)
	}
	if n := Workers(t); n != 0 {
		t.Errorf("%d io_uring worker threads, want none", n)
	}
}

// Workers returns how many io_uring worker threads this process has.
func Workers(t *testing.T) int {
	t.Helper()
	n, err := blockdev.WorkerThreads()
	if err != nil {
		t.Fatal(err)
	}
	return n
}
