// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"syscall"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

func flushes(m *faultdev.Memory) uint64 {
	return m.Stats().IO[poller.Flush][poller.Plain].Latency.Count()
}

// Case 22: when one member's flush fails, so does the volume's, and all others
// are flushed. After that later flushes and FUA writes fail with the same
// error, on every queue, and no member sees them; reads and plain writes go on.
func TestFlushFails(t *testing.T) {
	for failing := range 3 {
		v := newMemoryVolume(t, 3)
		v.faults[failing].SetRules(faultdev.Rule{Ops: faultdev.Flushes, Times: 1, Err: syscall.EIO})
		first := devtest.Open(t, v, poller.QueueConfig{Queues: 2})
		second := devtest.Open(t, v, poller.QueueConfig{Queues: 2})

		flush := &poller.Request{Op: poller.Flush}
		first.Do(flush)
		var typed *poller.Error
		if !errors.Is(flush.Err, syscall.EIO) || !errors.As(flush.Err, &typed) || typed.Member != failing || typed.Op != poller.Flush {
			t.Fatalf("flush with member %d failing: %v", failing, flush.Err)
		}
		for i, m := range v.memories {
			if want := i != failing; (flushes(m) == 1) != want {
				t.Errorf("member %d was flushed %d times", i, flushes(m))
			}
		}

		for _, r := range []*devtest.Rig{first, second} {
			buf := r.Buf(2 * testChunk)
			for _, req := range []*poller.Request{
				{Op: poller.Flush},
				{Op: poller.Write, Flags: poller.FUA, Buf: buf[:512]},
				{Op: poller.Write, Flags: poller.FUA | poller.HiPri, Buf: buf},
			} {
				r.Do(req)
				if !errors.Is(req.Err, syscall.EIO) || !errors.As(req.Err, &typed) || typed.Member != failing {
					t.Errorf("%v after a failed flush: %v", req.Op, req.Err)
				}
			}
			r.MustDo(&poller.Request{Op: poller.Write, Buf: buf})
			r.MustDo(&poller.Request{Op: poller.Read, Buf: buf})
			r.MustDo(&poller.Request{Op: poller.Read, Flags: poller.FUA, Buf: buf}) // means nothing to a read
		}
		for i, m := range v.memories {
			if flushes(m) > 1 {
				t.Errorf("member %d was flushed again", i)
			}
		}
	}
}

// A failed write is no failed flush.
func TestWriteErrorDoesNotStick(t *testing.T) {
	v := newMemoryVolume(t, 2)
	v.faults[0].SetRules(faultdev.Rule{Ops: faultdev.Writes, Times: 1, Err: syscall.EIO})
	r := devtest.Open(t, v, poller.QueueConfig{})
	write := &poller.Request{Op: poller.Write, Buf: r.Buf(2 * testChunk)}
	r.Do(write)
	if !errors.Is(write.Err, syscall.EIO) {
		t.Fatalf("write: %v", write.Err)
	}
	r.MustDo(&poller.Request{Op: poller.Flush})
	write.Flags = poller.FUA
	r.MustDo(write)
}

// A flush goes to every member of every layer once.
func TestFlushReachesAll(t *testing.T) {
	var memories []*faultdev.Memory
	mem := func() poller.Device {
		m := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{})
		memories = append(memories, m)
		return m
	}
	inner := newVolume(t, testChunk, mem(), mem())
	v := newVolume(t, testChunk, inner, mem())
	r := devtest.Open(t, v, poller.QueueConfig{Depth: 1})
	r.MustDo(&poller.Request{Op: poller.Flush, Flags: poller.HiPri})
	for i, m := range memories {
		if n := flushes(m); n != 1 {
			t.Errorf("memory %d: %d flushes", i, n)
		}
	}
}
