// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"testing"

	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// The histogram's count is the I/O completed without error; bytes and errors
// agree with what came back, at every moment between two calls, and after Close.
func TestStatsCount(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{Depth: 8, MaxTransfer: 4 * kindChunk})
		block := dev.Limits().BlockSize
		read, write := r.Buf(3*kindChunk), r.Buf(block)
		check := func(when string, s poller.Stats, rounds uint64) {
			t.Helper()
			for op, want := range map[poller.Op]struct{ n, bytes, errors uint64 }{
				poller.Read:  {2 * rounds, 2 * rounds * uint64(len(read)), rounds},
				poller.Write: {rounds, rounds * uint64(len(write)), rounds},
				poller.Flush: {rounds, 0, 0},
			} {
				var n, bytes, errs uint64
				for mode := range s.IO[op] {
					io := s.IO[op][mode]
					n, bytes, errs = n+io.Latency.Count(), bytes+io.Bytes, errs+io.Errors
				}
				if n != want.n || bytes != want.bytes || errs != want.errors {
					t.Errorf("%s, %v: %d I/Os, %d bytes, %d errors; want %+v", when, op, n, bytes, errs, want)
				}
			}
			if s.EmptyPolls > s.Polls || rounds > 0 && s.Polls == 0 {
				t.Errorf("%s: %d of %d polls are empty", when, s.EmptyPolls, s.Polls)
			}
		}
		round := func() {
			for _, req := range []*poller.Request{
				{Op: poller.Read, Offset: block, Buf: read},
				{Op: poller.Read, Flags: poller.HiPri, Offset: block, Buf: read},
				{Op: poller.Write, Flags: poller.HiPri, Buf: write},
				{Op: poller.Flush},
				{Op: poller.Read, Offset: -1, Buf: write},
				{Op: poller.Write, Offset: dev.Limits().Size, Buf: write},
			} {
				r.Do(req)
			}
		}
		check("before", dev.Stats(), 0)
		for range 3 {
			round()
		}
		three := dev.Stats()
		check("after 3 rounds", three, 3)
		check("of the queue", r.Queue.Stats(), 3)
		for range 2 {
			round()
		}
		check("of the last 2 rounds", dev.Stats().Sub(three), 2)
		if err := r.Queue.Close(); err != nil {
			t.Fatal(err)
		}
		check("after Close", dev.Stats(), 5)
		check("of the queue, after Close", r.Queue.Stats(), 5)
		check("3 rounds, looked at later", three, 3)
		if dev.Stats().Name == "" {
			t.Error("a device without a name")
		}
	})
}

// Two queues are summed up, and the members are below in the order of slots.
func TestStatsOfTwoQueues(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		cfg := poller.QueueConfig{Queues: 2, MaxTransfer: kindChunk}
		a, b := devtest.Open(t, dev, cfg), devtest.Open(t, dev, cfg)
		for _, r := range []*devtest.Rig{a, b} {
			r.MustDo(&poller.Request{Op: poller.Write, Flags: poller.HiPri, Buf: r.Buf(kindChunk)})
		}
		writes := func(s poller.Stats) uint64 {
			return s.IO[poller.Write][poller.Plain].Latency.Count() + s.IO[poller.Write][poller.Polled].Latency.Count()
		}
		s := dev.Stats()
		if n := writes(s); n != 2 {
			t.Errorf("%d writes, want 2", n)
		}
		for _, r := range []*devtest.Rig{a, b} {
			if own := r.Queue.Stats(); writes(own) != 1 || own.Members != nil {
				t.Errorf("a queue has %d writes and %d members, want 1 and none", writes(own), len(own.Members))
			}
		}
		// Both went to the first chunk, so to the first of the members.
		for i := range s.Members {
			want := uint64(0)
			if i == 0 {
				want = 2
			}
			if n := writes(s.Members[i]); n != want {
				t.Errorf("member %d: %d writes, want %d", i, n, want)
			}
		}
	})
}
