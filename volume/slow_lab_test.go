// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// slowness is what the slow member of these tests adds to every read.
const slowness = 20 * time.Millisecond

// TestLabCountingSlowMember keeps one request out to each member of a volume, a
// fast and a slow one. Nobody may wait for the slow one: the fast one does as much
// as when it alone has something to do. (The same volume is the measure, and not
// the bare disk, as what a volume costs is another question.) In the lab's
// counting mode the figures repeat, however busy the host is.
func TestLabCountingSlowMember(t *testing.T) {
	null := labDevices(t, blockdev.DriverNull, 2)
	slow := delayed(t, null[1])
	for _, c := range []struct {
		name    string
		flags   poller.Flags
		polling poller.Polling
	}{
		{"plain beside plain", 0, poller.PollNever},
		{"polled beside plain", poller.HiPri, poller.PollRequired},
	} {
		t.Run(c.name, func(t *testing.T) { testSlowMember(t, null[0], slow, c.flags, c.polling) })
	}
}

// testSlowMember tries up to three times: a process of Go's may have had bad luck with
// its scheduler's own threads, which are instructions too.
func testSlowMember(t *testing.T, fast, slow string, flags poller.Flags, polling poller.Polling) {
	const least = 0.9
	ratio := 0.0
	for try := 0; try < 3 && ratio < least; try++ {
		ratio = slowMemberRatio(t, fast, slow, flags, polling)
	}
	if ratio < least {
		t.Errorf("the fast member keeps %.3f of its own rate, want at least %.1f", ratio, least)
	}
}

// slowMemberRatio returns how much of its own rate the fast member keeps.
func slowMemberRatio(t *testing.T, fast, slow string, flags poller.Flags, polling poller.Polling) (ratio float64) {
	const (
		rounds = 9
		turn   = 100 * time.Millisecond
		chunk  = 64 * kib
	)
	v := stripeOver(t, chunk, openDisk(t, fast, polling), openDisk(t, slow, poller.PollNever))
	q, err := v.NewQueue(poller.QueueConfig{Depth: 2, MaxTransfer: 4 * kib})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(q.Close(), v.Close()); err != nil {
			t.Error(err)
		}
	}()

	reqs := make([]*poller.Request, 2)
	for i := range reqs {
		// Chunk i of the volume is on member i.
		reqs[i] = &poller.Request{Op: poller.Read, Flags: flags, Offset: int64(i) * chunk, Tag: uint64(i),
			Buf: q.Limits().Arena.Bytes()[i*4*kib:][: 4*kib : 4*kib]}
	}
	before := v.Stats()
	var own, shared, slowRate []float64
	for range rounds {
		own = append(own, mustKeepOut(t, q, reqs[:1], turn)[0])
		rates := mustKeepOut(t, q, reqs, turn)
		shared, slowRate = append(shared, rates[0]), append(slowRate, rates[1])
	}
	ratio = median(shared) / median(own)
	t.Logf("fast member alone %.0f reads/s, beside a slow one that does %.0f: %.0f, ratio %.3f",
		median(own), median(slowRate), median(shared), ratio)
	s := v.Stats().Sub(before)
	mode := poller.Plain
	if flags != 0 {
		mode = poller.Polled
	}
	if n := s.Members[0].IO[poller.Read][mode].Latency.Count(); n == 0 {
		t.Errorf("the fast member did no %v reads", mode)
	}
	h := s.Members[1].IO[poller.Read][poller.Plain].Latency
	// The kernel counts the delay in ticks, and the first may be a short one.
	if h.Count() == 0 || h.Min() < slowness/2 {
		t.Errorf("the slow member did %d plain reads, the fastest in %v: that is not slow", h.Count(), h.Min())
	}
	return ratio
}

// delayed makes a device that does what the one at path does, but slowly. Its
// writes are slower than its reads for one reason: since Linux 6.7 a dm-delay
// with no delay of 50 ms or more has a thread that spins while an I/O is out, on
// a CPU that the fast member needs.
func delayed(t *testing.T, path string) string {
	t.Helper()
	d, err := blockdev.Open(path, blockdev.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	size := d.Info().Size
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	const name = "pollux-slow"
	// Without udev nobody would answer the cookie that dmsetup waits for.
	dmsetup(t, "create", "--noudevsync", name, "--table",
		fmt.Sprintf("0 %d delay %[2]s 0 %[3]d %[2]s 0 60", size/512, path, slowness.Milliseconds()))
	// A ring lets go of its files some time after it was closed.
	t.Cleanup(func() { dmsetup(t, "remove", "--noudevsync", "--retry", name) })
	return "/dev/" + dmsetup(t, "info", "-c", "--noheadings", "-o", "blkdevname", name)
}

func dmsetup(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("dmsetup", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("dmsetup %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// keepOut keeps the requests out on q, each sent again as soon as it comes back,
// until d has passed, and returns how many of each came back per second.
func keepOut(q poller.Queue, reqs []*poller.Request, d time.Duration) (perSecond []float64, err error) {
	perSecond = make([]float64, len(reqs))
	done := make([]*poller.Request, len(reqs))
	start := time.Now()
	if n, err := q.Submit(reqs); err != nil || n != len(reqs) {
		return nil, fmt.Errorf("took %d of %d requests: %v", n, len(reqs), err)
	}
	out := len(reqs)
	var elapsed time.Duration
	for out > 0 {
		n, err := q.Wait(1, done, patience)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, fmt.Errorf("%d requests did not come back within %v", out, patience)
		}
		for _, r := range done[:n] {
			if r.Err != nil {
				return nil, r.Err
			}
		}
		if elapsed == 0 {
			for _, r := range done[:n] {
				perSecond[r.Tag]++
			}
			if now := time.Since(start); now >= d {
				elapsed = now
			}
		}
		if elapsed != 0 {
			out -= n
			continue
		}
		if got, err := q.Submit(done[:n]); err != nil || got != n {
			return nil, fmt.Errorf("took %d of %d requests again: %v", got, n, err)
		}
	}
	for i := range perSecond {
		perSecond[i] /= elapsed.Seconds()
	}
	return perSecond, nil
}

func mustKeepOut(t *testing.T, q poller.Queue, reqs []*poller.Request, d time.Duration) []float64 {
	t.Helper()
	rates, err := keepOut(q, reqs, d)
	if err != nil {
		t.Fatal(err)
	}
	return rates
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
