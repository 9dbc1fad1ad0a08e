// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/internal/labtest"
	"pollux/poller"
)

const patience = labtest.Patience

// Short names for what all lab tests use.
var (
	newQueue   = labtest.Queue
	do         = labtest.Do
	mustDo     = labtest.MustDo
	interrupts = labtest.Interrupts
	quiet      = labtest.Quiet
	workers    = labtest.Workers
)

// labDevices returns the first n of the lab's devices of the given kind.
func labDevices(t *testing.T, driver blockdev.Driver, n int) []string {
	t.Helper()
	return labtest.Devices(t, driver, n)[:n]
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
