// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// tagsOf returns what one hardware queue of the device at path has room for.
func tagsOf(t *testing.T, path string) int {
	t.Helper()
	node, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(node), "queue/nr_requests"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLabManyQueues opens many queues whose depths add up to far more than the
// device holds. They are granted what it holds and no more; beyond that the
// kernel would retry in worker threads, at a third of the throughput.
func TestLabManyQueues(t *testing.T) {
	const (
		few, many = 4, 16
		rounds    = 11
		turn      = 100 * time.Millisecond
	)
	path := labDevices(t, blockdev.DriverNull, 1)[0]
	tags := tagsOf(t, path)
	if tags != 256 {
		t.Fatalf("%s holds %d requests, this wants hw_queue_depth=256", path, tags)
	}
	// One disk each, so that each set of queues has the whole budget. Only one
	// set is at work at a time.
	sets := make(map[int][]poller.Queue)
	for _, count := range []int{few, many} {
		disk := openDisk(t, path, poller.PollRequired)
		granted := 0
		for range count {
			q := newQueue(t, disk, poller.QueueConfig{Depth: tags, MaxTransfer: 4 * kib, Queues: count})
			granted += q.Limits().QueueDepth
			sets[count] = append(sets[count], q)
		}
		if granted != tags {
			t.Errorf("%d queues were granted %d requests, the device holds %d", count, granted, tags)
		}
		if _, err := disk.NewQueue(poller.QueueConfig{}); !errors.Is(err, poller.ErrBudget) {
			t.Errorf("one queue more: error %v, want %v", err, poller.ErrBudget)
		}
	}
	together := func(queues []poller.Queue) float64 {
		var mu sync.Mutex
		var sum float64
		var wg sync.WaitGroup
		for _, q := range queues {
			wg.Go(func() {
				perSecond, err := load(q, readRequests(q, q.Limits().QueueDepth, 4*kib, poller.HiPri), turn)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				sum += perSecond
			})
		}
		wg.Wait()
		return sum
	}
	rates := make(map[int][]float64)
	quiet(t, func() {
		for range rounds {
			for _, count := range []int{few, many} {
				rates[count] = append(rates[count], together(sets[count]))
				if n := workers(t); n != 0 {
					t.Fatalf("%d io_uring worker threads with %d queues", n, count)
				}
			}
		}
	})
	ratios := make([]float64, rounds)
	for i := range ratios {
		// Of neighbours in time, so that a busy host slows both.
		ratios[i] = rates[many][i] / rates[few][i]
	}
	ratio := median(ratios)
	t.Logf("%d queues: %.0f reads/s, %d queues: %.0f reads/s, ratio %.3f", few, median(rates[few]), many, median(rates[many]), ratio)
	if ratio < 0.9 {
		t.Errorf("%d queues have %.3f of the throughput of %d, want at least 0.9", many, ratio, few)
	}
}

// TestLabDepthCapped asks for more than a drive holds, is told what there is,
// and uses all of it.
func TestLabDepthCapped(t *testing.T) {
	path := labDevices(t, blockdev.DriverNVMe, 1)[0]
	disk := openDisk(t, path, poller.PollRequired)
	tags := tagsOf(t, path)
	if got := disk.Limits().QueueDepth; got != tags {
		t.Errorf("the disk says it holds %d requests, the kernel %d", got, tags)
	}
	q := newQueue(t, disk, poller.QueueConfig{Depth: 4 * tags, MaxTransfer: 4 * kib})
	if got := q.Limits().QueueDepth; got != tags {
		t.Errorf("a queue of depth %d was granted %d, want the drive's %d", 4*tags, got, tags)
	}
	quiet(t, func() {
		reqs := readRequests(q, tags+1, 4*kib, poller.HiPri)
		n, err := q.Submit(reqs)
		if err != nil || n != tags {
			t.Errorf("Submit took %d requests and said %v, want %d", n, err, tags)
		}
		done := make([]*poller.Request, len(reqs))
		for back := 0; back < n; {
			got, err := q.Wait(n-back, done, patience)
			if err != nil || got == 0 {
				t.Fatalf("%d of %d came back, then none within %v, error %v", back, n, patience, err)
			}
			back += got
		}
		for _, r := range reqs[:n] {
			if r.Err != nil || !r.Polled {
				t.Fatalf("read at %d: Polled %v, error %v", r.Offset, r.Polled, r.Err)
			}
		}
	})
}
