// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
	"pollux/volume"
)

const (
	manyGoroutines = 256
	handleBlock    = 4 * kib
	// What a handle is meant to reach of the rate of a queue, in instructions.
	leastOfQueue = 0.7
	// leastOfMean is what every goroutine gets at least of what they get on the
	// mean.
	leastOfMean = 0.5
)

// TestLabCountingHandle compares a handle with a queue of the same volume where a
// nanosecond is an instruction: 256 goroutines in ReadAt with one goroutine at depth
// 256, and one goroutine with depth 1.
func TestLabCountingHandle(t *testing.T) {
	null := labDevices(t, blockdev.DriverNull, 2)
	dev := stripeOver(t, 64*kib, openDisk(t, null[0], poller.PollRequired), openDisk(t, null[1], poller.PollRequired))
	closing(t, dev)
	const rounds, turn = 5, 100 * time.Millisecond
	queue, handle, _ := compareHandle(t, dev, 1, rounds, turn)
	t.Logf("depth 1: %.0f instructions by the queue, %.0f by the handle, ratio %.3f", 1e9/queue, 1e9/handle, queue/handle)
	if most := mostOfQueue(); queue/handle > most {
		t.Errorf("a lone ReadAt costs %.3f times what the queue does, want %.2f at most", queue/handle, most)
	}
	queue, handle, _ = compareHandle(t, dev, manyGoroutines, rounds, turn)
	t.Logf("%d goroutines: %.0f instructions by the queue, %.0f by the handle, ratio %.3f", manyGoroutines, 1e9/queue, 1e9/handle, handle/queue)
	if handle/queue < leastOfQueue {
		t.Errorf("%d goroutines reach %.3f of the queue's rate, want %.2f", manyGoroutines, handle/queue, leastOfQueue)
	}
	testHandleFair(t, dev, time.Second)
}

// mostOfQueue is what a lone ReadAt may cost at most of the instructions of a queue at
// depth 1: a tenth more on 6.12, where instructions are held to limits. Of some 600
// more, 465 are the copy of 4 KiB. On 6.1 they are as many, and the kernel's own part is
// 300 less.
func mostOfQueue() float64 {
	if major, minor, _ := blockdev.KernelVersion(); major == 6 && minor < 12 {
		return 1.12
	}
	return 1.10
}

// TestLabOneCPUHandle does so on drives, where the rates are the host's and only their
// ratio means anything. How fast the host emulates a CPU, beside how fast it emulates
// drives, decides over it: 0.77 to 1.1 was seen on one host and 0.67 to 0.72 on another;
// where the handle's goroutines keep both of two CPUs busy, and the drives starve, 0.61.
func TestLabOneCPUHandle(t *testing.T) {
	const least = 0.6
	drives := labDevices(t, blockdev.DriverNVMe, 2)
	dev := stripeOver(t, 64*kib, openDisk(t, drives[0], poller.PollRequired), openDisk(t, drives[1], poller.PollRequired))
	closing(t, dev)
	// A handle that is too slow is so in each of three runs.
	var ratio float64
	for run := 0; run < 3 && ratio < least; run++ {
		queue, handle, _ := compareHandle(t, dev, manyGoroutines, 15, 300*time.Millisecond)
		ratio = handle / queue
		t.Logf("%d goroutines: %.0f reads/s by the queue, %.0f by the handle, ratio %.3f", manyGoroutines, queue, handle, ratio)
	}
	if ratio < least {
		t.Errorf("%d goroutines reach %.3f of the queue's rate, want %.2f", manyGoroutines, ratio, least)
	}
}

// TestLabHandle has what has to do with threads and time.
func TestLabHandle(t *testing.T) {
	drives := labDevices(t, blockdev.DriverNVMe, 2)
	dev := stripeOver(t, 64*kib, openDisk(t, drives[0], poller.PollRequired), openDisk(t, drives[1], poller.PollRequired))
	closing(t, dev)
	_, _, tasks := compareHandle(t, dev, manyGoroutines, 3, 300*time.Millisecond)
	if most := runtime.GOMAXPROCS(0) + 8; tasks >= most {
		t.Errorf("%d threads with %d goroutines in ReadAt, want fewer than %d", tasks, manyGoroutines, most)
	}
	testHandleFair(t, dev, 5*time.Second)

	const idle = 5 * time.Second
	without := cpuTime(t, idle) // of the Go runtime, which is not nothing on an emulated CPU
	h := newHandle(t, kept{dev}, volume.Options{})
	if _, err := h.ReadAt(make([]byte, handleBlock), 0); err != nil {
		t.Fatal(err)
	}
	used := cpuTime(t, idle)
	t.Logf("CPU in %v with nothing in flight: %v, without a handle %v", idle, used, without)
	if used-without > idle/100 {
		t.Errorf("with nothing in flight it used %v of CPU in %v, without a handle %v", used, idle, without)
	}
}

// kept is a device that survives the handle over it.
type kept struct{ poller.Device }

func (kept) Close() error { return nil }

// compareHandle returns how many reads per second, the median of rounds that
// alternate, one queue with n requests out does, and one handle with n goroutines. The
// queue is as large as the handle's: one of a single short request would cost about 100
// instructions less. Only one of them is there at a time: each wants all of the budget.
func compareHandle(t *testing.T, dev poller.Device, n, rounds int, turn time.Duration) (queue, handle float64, tasks int) {
	t.Helper()
	var queues, handles []float64
	for range rounds {
		q, err := dev.NewQueue(poller.QueueConfig{Depth: manyGoroutines, MaxTransfer: 64 * kib})
		if err != nil {
			t.Fatal(err)
		}
		rate, err := queueReads(q, n, turn)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		queues = append(queues, rate)
		h, err := volume.NewHandle(kept{dev}, volume.Options{})
		if err != nil {
			t.Fatal(err)
		}
		counts, elapsed, seen := handleReads(t, h, n, turn)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		tasks = max(tasks, seen)
		sum := 0
		for _, c := range counts {
			sum += c
		}
		handles = append(handles, float64(sum)/elapsed.Seconds())
	}
	t.Logf("%d at once, reads/s: queue %.0f, handle %.0f", n, queues, handles)
	return median(queues), median(handles), tasks
}

// randomBlock is a generator of offsets that costs next to nothing.
type randomBlock struct{ state, mask uint64 }

func newRandomBlock(seed int) randomBlock {
	return randomBlock{uint64(seed)*0x9e3779b97f4a7c15 + 1, 64<<20/handleBlock - 1}
}

func (r *randomBlock) next() int64 {
	r.state ^= r.state << 13
	r.state ^= r.state >> 7
	r.state ^= r.state << 17
	return int64(r.state>>8&r.mask) * handleBlock
}

// clockEvery is after how many turns a load looks at the clock. A timer would make the
// Go scheduler look at it for each switch of goroutines, which a queue's single
// goroutine does not pay for.
const clockEvery = 16

// queueReads keeps n random reads out on q for d and returns how many came back per
// second.
func queueReads(q poller.Queue, n int, d time.Duration) (float64, error) {
	random := newRandomBlock(1)
	mem := q.Limits().Arena.Bytes()
	batch, done := make([]*poller.Request, n), make([]*poller.Request, n)
	for i := range batch {
		batch[i] = &poller.Request{Op: poller.Read, Flags: poller.HiPri, Offset: random.next(), Buf: mem[i*handleBlock:][:handleBlock:handleBlock]}
	}
	total, out := 0, 0
	start := time.Now()
	for turn := 0; turn%clockEvery != 0 || time.Since(start) < d; turn++ {
		sent, err := q.Submit(batch)
		if err != nil || sent != len(batch) {
			return 0, fmt.Errorf("took %d of %d: %v", sent, len(batch), err)
		}
		out += sent
		back, err := q.Wait(1, done, -1)
		if err != nil {
			return 0, err
		}
		batch = done[:back]
		for _, r := range batch {
			if r.Err != nil {
				return 0, r.Err
			}
			r.Offset = random.next()
		}
		total, out = total+back, out-back
	}
	elapsed := time.Since(start)
	spare := make([]*poller.Request, n)
	for out > 0 {
		back, err := q.Wait(1, spare, patience)
		if err != nil || back == 0 {
			return 0, fmt.Errorf("%d reads do not come back: %v", out, err)
		}
		out -= back
	}
	return float64(total) / elapsed.Seconds(), nil
}

// handleReads lets n goroutines read at random for d, and returns how many reads
// each did, in what time, and how many threads the process had then.
func handleReads(t *testing.T, h *volume.Handle, n int, d time.Duration) (counts []int, elapsed time.Duration, tasks int) {
	t.Helper()
	// Its queue is made by the first call.
	if _, err := h.ReadAt(make([]byte, handleBlock), 0); err != nil {
		t.Fatal(err)
	}
	counts = make([]int, n)
	var all, ready sync.WaitGroup
	var stop atomic.Bool
	start := make(chan struct{})
	var begin time.Time
	ready.Add(n)
	for i := range n {
		all.Go(func() {
			random, p := newRandomBlock(i), make([]byte, handleBlock)
			ready.Done()
			<-start
			did := 0
			for !stop.Load() {
				if i == 0 && did%clockEvery == 0 {
					if elapsed = time.Since(begin); elapsed >= d {
						tasks = threads()
						stop.Store(true)
						break
					}
				}
				if n, err := h.ReadAt(p, random.next()); n != len(p) || err != nil {
					t.Errorf("ReadAt: %d, %v", n, err)
					break
				}
				did++
			}
			counts[i] = did
		})
	}
	ready.Wait()
	begin = time.Now()
	close(start)
	all.Wait()
	return counts, elapsed, tasks
}

// threads returns how many threads the process has.
func threads() int {
	dir, _ := os.ReadDir("/proc/self/task")
	return len(dir)
}

// testHandleFair lets 256 goroutines read for d: none may get less than half of what
// they get on the mean.
func testHandleFair(t *testing.T, dev poller.Device, d time.Duration) {
	t.Helper()
	h := newHandle(t, kept{dev}, volume.Options{})
	counts, _, _ := handleReads(t, h, manyGoroutines, d)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, c := range counts {
		sum += c
	}
	mean, least := float64(sum)/float64(len(counts)), slices.Min(counts)
	t.Logf("in %v each goroutine did %.0f reads on the mean, %d at least, %d at most", d, mean, least, slices.Max(counts))
	if float64(least) < leastOfMean*mean {
		t.Errorf("a goroutine did %d reads, %.2f of the mean, want %.2f at least", least, float64(least)/mean, leastOfMean)
	}
}

// cpuTime returns how much CPU the process uses in d.
func cpuTime(t *testing.T, d time.Duration) time.Duration {
	t.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	runtime.GC() // lest one falls into the time
	time.Sleep(d / 20)
	before := used()
	time.Sleep(d)
	return used() - before
}

// TestLabCountingHandleSlowCaller has one goroutine read plainly from a member that
// takes 20 ms, and another from one that is fast. While the first sleeps in the kernel
// for both, the second's requests have to get it out of there: with a sleep that
// nobody ends it would do one read for each of the first's.
func TestLabCountingHandleSlowCaller(t *testing.T) {
	null := labDevices(t, blockdev.DriverNull, 2)
	slow := delayed(t, null[1])
	const chunk = 64 * kib
	v := stripeOver(t, chunk, openDisk(t, null[0], poller.PollNever), openDisk(t, slow, poller.PollNever))
	closing(t, v)
	h := newHandle(t, kept{v}, volume.Options{Polling: poller.PollNever, Queues: 1})
	read := func(slot int64, d time.Duration, stop *atomic.Bool) float64 {
		p, n, start := make([]byte, handleBlock), 0, time.Now()
		for time.Since(start) < d && !stop.Load() {
			if _, err := h.ReadAt(p, slot*chunk); err != nil {
				t.Error(err)
				break
			}
			n++
		}
		return float64(n) / time.Since(start).Seconds()
	}
	var stop atomic.Bool
	const turn = 400 * time.Millisecond
	read(0, turn/10, &stop) // makes the queue
	alone := read(0, turn, &stop)
	var slowRate float64
	var all sync.WaitGroup
	all.Go(func() { slowRate = read(1, time.Hour, &stop) })
	beside := read(0, turn, &stop)
	stop.Store(true)
	all.Wait()
	t.Logf("reads/s: %.0f alone, %.0f beside one that does %.0f", alone, beside, slowRate)
	if slowRate == 0 || slowRate > 2/slowness.Seconds() {
		t.Errorf("the slow member did %.0f reads/s: that is not slow", slowRate)
	}
	// Each of its reads is handed over to the one who sleeps: two wakes, and the
	// switches between them.
	if beside < alone/8 {
		t.Errorf("the fast one is left with %.3f of its rate, want 0.125 at least", beside/alone)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
