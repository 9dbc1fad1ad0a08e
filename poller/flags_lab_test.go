// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"bytes"
	"fmt"
	"testing"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// TestLabFlags sends every flag and priority to a real drive, polled and plain.
// The polled ones raise no interrupt, FUA writes included.
func TestLabFlags(t *testing.T) {
	disk := openDisk(t, labDevices(t, blockdev.DriverNVMe, 1)[0], poller.PollRequired)
	q := newQueue(t, disk, poller.QueueConfig{Depth: 8, MaxTransfer: 16 * kib})
	mem := q.Limits().Arena.Bytes()
	var priorities []poller.Priority
	for class := poller.PriorityNone; class <= poller.PriorityIdle; class++ {
		p, err := poller.NewPriority(class, int(class))
		if err != nil {
			t.Fatal(err)
		}
		priorities = append(priorities, p)
	}
	for _, flags := range []poller.Flags{0, poller.FUA, poller.NoWait, poller.FUA | poller.NoWait} {
		for _, hipri := range []poller.Flags{0, poller.HiPri} {
			name := fmt.Sprintf("FUA=%v,NoWait=%v,HiPri=%v", flags&poller.FUA != 0, flags&poller.NoWait != 0, hipri != 0)
			t.Run(name, func(t *testing.T) {
				all := func() {
					for i, priority := range priorities {
						data := bytes.Repeat([]byte{byte(flags), byte(hipri), byte(i), 0xA5}, kib)
						buf := mem[:len(data):len(data)]
						copy(buf, data)
						r := &poller.Request{Op: poller.Write, Flags: flags | hipri, Priority: priority, Offset: int64(i) * mib, Buf: buf}
						mustDo(t, q, hipri != 0, r)
						clear(buf)
						r.Op = poller.Read
						mustDo(t, q, hipri != 0, r)
						if !bytes.Equal(buf, data) {
							t.Errorf("priority %#x: what was read is not what was written", priority)
						}
					}
				}
				if hipri != 0 {
					quiet(t, all)
				} else if interrupts(t, all) == 0 {
					t.Error("no interrupt for plain I/O")
				}
			})
		}
	}
}

// TestLabFlush asks for a polled flush: no IOPOLL ring takes one, so it goes
// plain, works, and is counted.
func TestLabFlush(t *testing.T) {
	disk := openDisk(t, labDevices(t, blockdev.DriverNVMe, 1)[0], poller.PollRequired)
	if disk.Info().WriteThrough {
		t.Fatal("the lab's drive has no volatile cache: a flush does nothing there")
	}
	q := newQueue(t, disk, poller.QueueConfig{Depth: 8, MaxTransfer: 16 * kib})
	before := disk.Stats()
	const count = 10
	n := interrupts(t, func() {
		for i := range count {
			w := readRequests(q, 1, 4*kib, poller.HiPri)[0]
			w.Op = poller.Write
			mustDo(t, q, true, w)
			flush := &poller.Request{Op: poller.Flush}
			if i%2 == 0 {
				flush.Flags = poller.HiPri
			}
			mustDo(t, q, false, flush)
		}
	})
	if n < count {
		t.Errorf("%d interrupts for %d flushes: they did not reach the drive", n, count)
	}
	s := disk.Stats().Sub(before)
	if got := s.IO[poller.Flush][poller.Plain].Latency.Count(); got != count {
		t.Errorf("%d plain flushes counted, want %d", got, count)
	}
	if got := s.Fallbacks[poller.FallbackFlush]; got != count/2 {
		t.Errorf("%d flushes counted as asked for polled, want %d", got, count/2)
	}
	if got := s.IO[poller.Write][poller.Polled].Latency.Count(); got != count {
		t.Errorf("%d polled writes counted, want %d", got, count)
	}
}
