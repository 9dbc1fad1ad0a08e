// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// Cases 5, 6 and 18, as far as queues go: a request that is wrong in itself is
// accepted, does no I/O, and comes back with an error that says what would be
// right.
func TestBadRequests(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		l := dev.Limits()
		block, longest := l.BlockSize, int64(2*kindChunk)
		r := devtest.Open(t, dev, poller.QueueConfig{Depth: 8, MaxTransfer: longest})
		buf, long := r.Buf(2*kindChunk), r.Buf(longest+block)
		heap := make([]byte, 2*block)
		blocks, buffers := fmt.Sprint(block), fmt.Sprint(l.BufAlign)

		for _, c := range []struct {
			name   string
			op     poller.Op
			offset int64
			buf    []byte
			want   error
			says   string
		}{
			{"unknown operation", 7, 0, buf[:block], poller.ErrOp, "op(7)"},
			{"offset -1", poller.Read, -1, buf[:block], poller.ErrRange, ""},
			{"offset -1, length 0", poller.Read, -1, nil, poller.ErrRange, ""},
			{"before the beginning", poller.Write, -block, buf[:block], poller.ErrRange, ""},
			{"across the beginning", poller.Write, -block, buf[:2*block], poller.ErrRange, ""},
			{"across the end", poller.Write, l.Size - block, buf[:2*block], poller.ErrRange, fmt.Sprint(l.Size)},
			{"past the end", poller.Read, l.Size, buf[:block], poller.ErrRange, ""},
			{"past the end, length 0", poller.Read, l.Size + block, nil, poller.ErrRange, ""},
			{"sum overflows", poller.Read, math.MaxInt64 &^ (block - 1), buf[:block], poller.ErrRange, ""},
			{"smallest offset", poller.Write, math.MinInt64, buf[:block], poller.ErrRange, ""},
			{"misaligned offset", poller.Read, block / 2, buf[:block], poller.ErrAlignment, blocks},
			{"misaligned length", poller.Write, 0, buf[:block/2], poller.ErrAlignment, blocks},
			{"misaligned length, two chunks", poller.Write, 0, buf[:kindChunk+block/2], poller.ErrAlignment, blocks},
			{"length and offset of one byte", poller.Read, 1, buf[:1], poller.ErrAlignment, blocks},
			{"misaligned buffer", poller.Write, 0, buf[1 : block+1], poller.ErrAlignment, buffers},
			{"misaligned buffer, two chunks", poller.Write, kindChunk - block, buf[1 : 2*block+1], poller.ErrAlignment, buffers},
			{"buffer on the heap", poller.Read, 0, heap[:block], poller.ErrArena, ""},
			{"buffer on the heap, two chunks", poller.Read, kindChunk - block, heap, poller.ErrArena, ""},
			{"too long", poller.Read, 0, long, poller.ErrTooLong, fmt.Sprint(longest)},
		} {
			if c.want == poller.ErrAlignment && strings.Contains(c.name, "buffer") && l.BufAlign == 1 {
				continue
			}
			for _, flags := range []poller.Flags{0, poller.HiPri, poller.FUA | poller.NoWait} {
				req := &poller.Request{Op: c.op, Flags: flags, Offset: c.offset, Buf: c.buf, N: 5, Err: errors.New("old")}
				r.Do(req)
				if !errors.Is(req.Err, c.want) {
					t.Errorf("%s: %v", c.name, req.Err)
				} else if !strings.Contains(req.Err.Error(), c.says) {
					t.Errorf("%s: %q does not say %q", c.name, req.Err, c.says)
				}
			}
		}
		if n := devtest.LeafIO(dev.Stats()); n != 0 {
			t.Errorf("%d I/Os were done for requests that are all bad", n)
		}
	})
}

// A bad request does not keep those beside it from succeeding.
func TestBadBesideGood(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		block := dev.Limits().BlockSize
		r := devtest.Open(t, dev, poller.QueueConfig{Depth: 8})
		good := []*poller.Request{
			{Op: poller.Write, Offset: 0, Buf: r.Buf(block)},
			{Op: poller.Write, Offset: kindChunk, Buf: r.Buf(block)},
		}
		for _, g := range good {
			fill(g.Buf, byte(g.Offset/kindChunk)+1)
		}
		bad := &poller.Request{Op: poller.Write, Offset: -1, Buf: r.Buf(block)}
		r.Do(good[0], bad, good[1])
		if good[0].Err != nil || good[1].Err != nil || !errors.Is(bad.Err, poller.ErrRange) {
			t.Fatalf("errors %v, %v, %v", good[0].Err, bad.Err, good[1].Err)
		}
		for _, g := range good {
			read := &poller.Request{Op: poller.Read, Offset: g.Offset, Buf: r.Buf(block)}
			r.MustDo(read)
			if !bytes.Equal(read.Buf, g.Buf) {
				t.Errorf("at %d: other bytes than were written", g.Offset)
			}
		}
	})
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// A length of 0 is no I/O and no error, anywhere up to the end.
func TestLengthZero(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{})
		for _, op := range []poller.Op{poller.Read, poller.Write} {
			for _, off := range []int64{0, dev.Limits().BlockSize, dev.Limits().Size} {
				r.MustDo(&poller.Request{Op: op, Flags: poller.HiPri, Offset: off, N: 9})
				r.MustDo(&poller.Request{Op: op, Flags: poller.FUA, Offset: off, Buf: r.Buf(0)})
			}
		}
		if n := devtest.LeafIO(dev.Stats()); n != 0 {
			t.Errorf("%d I/Os for nothing", n)
		}
	})
}

// A flush uses neither Offset nor Buf, so no value of them is wrong.
func TestFlushIgnoresRange(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{})
		for _, off := range []int64{0, -1, math.MaxInt64} {
			r.MustDo(&poller.Request{Op: poller.Flush, Flags: poller.HiPri, Offset: off})
			r.MustDo(&poller.Request{Op: poller.Flush, Offset: off, Buf: make([]byte, 100), N: 7})
		}
	})
}

func TestReadOnly(t *testing.T) {
	readOnlyDisk := func(t testing.TB) poller.Device {
		return devtest.OpenDiskWith(t, devtest.TempFile(t, kindSize), poller.OpenOptions{Polling: poller.PollNever})
	}
	readOnlyMemory := func(testing.TB) poller.Device {
		return faultdev.NewMemory(kindSize, 512, faultdev.MemoryOptions{ReadOnly: true})
	}
	for name, mk := range map[string]func(testing.TB) poller.Device{
		"disk":              readOnlyDisk,
		"memory":            readOnlyMemory,
		"fault over disk":   func(t testing.TB) poller.Device { return faultdev.New(readOnlyDisk(t)) },
		"volume":            striped(readOnlyDisk, readOnlyMemory),
		"volume of volumes": striped(striped(readOnlyDisk), striped(readOnlyMemory)),
	} {
		t.Run(name, func(t *testing.T) {
			dev := mk(t)
			devtest.Close(t, dev)
			r := devtest.Open(t, dev, poller.QueueConfig{})
			buf := r.Buf(2 * kindChunk)
			for _, req := range []*poller.Request{
				{Op: poller.Write, Buf: buf[:dev.Limits().BlockSize]},
				{Op: poller.Write, Flags: poller.HiPri, Buf: buf},
			} {
				r.Do(req)
				if !errors.Is(req.Err, poller.ErrReadOnly) {
					t.Errorf("write of %d bytes: %v", len(req.Buf), req.Err)
				}
			}
			r.MustDo(&poller.Request{Op: poller.Read, Buf: buf})
		})
	}
}
