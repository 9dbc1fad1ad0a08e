// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// TestLabStats counts I/O that was counted before: every one is in the latency
// histogram of its operation and mode, once, and with a credible time.
func TestLabStats(t *testing.T) {
	disk := openDisk(t, labDevices(t, blockdev.DriverNVMe, 1)[0], poller.PollRequired)
	q := newQueue(t, disk, poller.QueueConfig{Depth: 32, MaxTransfer: 4 * kib})
	const count = 500
	for op := poller.Read; op <= poller.Write; op++ {
		for mode, flags := range []poller.Flags{poller.Plain: 0, poller.Polled: poller.HiPri} {
			before := disk.Stats()
			start := time.Now()
			reqs := readRequests(q, 25, 4*kib, flags)
			for range count / len(reqs) {
				for _, r := range reqs {
					r.Op = op
				}
				mustDo(t, q, flags != 0, reqs...)
			}
			took := time.Since(start)
			s := disk.Stats().Sub(before)
			for o := range s.IO {
				for m := range s.IO[o] {
					want := uint64(0)
					if o == int(op) && m == mode {
						want = count
					}
					io := s.IO[o][m]
					if got := io.Latency.Count(); got != want || io.Bytes != want*4*kib || io.Errors != 0 {
						t.Errorf("%v %v: counted %d of %v %v with %d bytes and %d errors, want %d",
							op, poller.Mode(mode), got, poller.Op(o), poller.Mode(m), io.Bytes, io.Errors, want)
					}
				}
			}
			h := s.IO[op][mode].Latency
			t.Logf("%v %v: mean %v, p50 %v, p99 %v", op, poller.Mode(mode), h.Mean(), h.Percentile(50), h.Percentile(99))
			if h.Min() <= 0 || h.Mean() > took {
				t.Errorf("%v %v: from %v, mean %v, in a run of %v", op, poller.Mode(mode), h.Min(), h.Mean(), took)
			}
			if s.Retries != 0 || s.Splits != 0 || s.Fallbacks != [len(s.Fallbacks)]uint64{} {
				t.Errorf("%v %v: %+v, want no retry, split or fallback", op, poller.Mode(mode), s.Counters)
			}
		}
	}
}
