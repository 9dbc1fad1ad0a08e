// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"testing"
	"testing/iotest"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// A handle is to be read and written like a byte slice: any offset and any length,
// on a block, across blocks, across pieces, at the end and beyond it (case 5).
func TestHandleLikeBytes(t *testing.T) {
	for _, kind := range handleKinds {
		t.Run(kind.name, func(t *testing.T) {
			h := newHandle(t, kind.make(t), volume.Options{})
			size := h.Size()
			if want := h.Device().Limits().Size; size != want || size == 0 {
				t.Fatalf("Size is %d, the device's %d", size, want)
			}
			want := make([]byte, size)
			count(want, 7)
			if n, err := h.WriteAt(want, 0); n != len(want) || err != nil {
				t.Fatalf("writing all: %d, %v", n, err)
			}
			got := make([]byte, size+1000)
			offsets := []int64{0, 1, 511, 512, 513, 4095, 4096, 4097, testChunk - 1, testChunk, 64<<10 + 100,
				size - 4097, size - 4096, size - 513, size - 512, size - 1}
			lengths := []int64{1, 2, 511, 512, 513, 4096, 4097, 8192, testChunk, testChunk + 1, 64 << 10, 64<<10 + 1, 150_001}
			for _, off := range offsets {
				for _, n := range lengths {
					p := got[3 : 3+n] // an odd address
					clear(p)
					back, err := h.ReadAt(p, off)
					wantN := min(n, size-off)
					if int64(back) != wantN || (wantN < n) != errors.Is(err, io.EOF) || wantN == n && err != nil {
						t.Fatalf("read of %d at %d: %d, %v", n, off, back, err)
					}
					if !bytes.Equal(p[:wantN], want[off:off+wantN]) {
						t.Fatalf("read of %d at %d brought other bytes", n, off)
					}
					if !bytes.Equal(p[wantN:], make([]byte, n-wantN)) {
						t.Fatalf("read of %d at %d changed what is behind the end", n, off)
					}
					mod := make([]byte, n)
					count(mod, int(off+n))
					back, err = h.WriteAt(mod, off)
					if off+n > size {
						if back != 0 || !errors.Is(err, poller.ErrRange) {
							t.Fatalf("write of %d at %d: %d, %v", n, off, back, err)
						}
						continue
					}
					if back != len(mod) || err != nil {
						t.Fatalf("write of %d at %d: %d, %v", n, off, back, err)
					}
					copy(want[off:], mod)
				}
				if n, err := h.ReadAt(got[:size], 0); int64(n) != size || err != nil || !bytes.Equal(got[:size], want) {
					t.Fatalf("after the writes at %d: read of all %d, %v, equal %v", off, n, err, bytes.Equal(got[:size], want))
				}
			}
			if err := h.Flush(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestHandleRanges(t *testing.T) {
	h := newHandle(t, faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}), volume.Options{})
	p, size := make([]byte, 1024), h.Size()
	for _, c := range []struct {
		off           int64
		len           int
		n             int
		read, written error
	}{
		{0, 0, 0, nil, nil},
		{size, 0, 0, nil, nil},
		{size + 1, 0, 0, nil, poller.ErrRange},
		{size - 512, 1024, 512, io.EOF, poller.ErrRange},
		{size - 1, 2, 1, io.EOF, poller.ErrRange},
		{size, 1, 0, io.EOF, poller.ErrRange},
		{size + 512, 512, 0, io.EOF, poller.ErrRange},
		{math.MaxInt64, 1, 0, io.EOF, poller.ErrRange},
		{math.MaxInt64 - 511, 1024, 0, io.EOF, poller.ErrRange},
		{-1, 1, 0, poller.ErrRange, poller.ErrRange},
		{-1, 0, 0, poller.ErrRange, poller.ErrRange},
		{-512, 1024, 0, poller.ErrRange, poller.ErrRange},
		{math.MinInt64, 512, 0, poller.ErrRange, poller.ErrRange},
	} {
		if n, err := h.ReadAt(p[:c.len], c.off); n != c.n || !errors.Is(err, c.read) {
			t.Errorf("read of %d at %d: %d, %v; want %d, %v", c.len, c.off, n, err, c.n, c.read)
		}
		if n, err := h.WriteAt(p[:c.len], c.off); n != 0 || !errors.Is(err, c.written) {
			t.Errorf("write of %d at %d: %d, %v; want 0, %v", c.len, c.off, n, err, c.written)
		}
	}
	if n := devtest.LeafIO(h.Device().Stats()); n != 2 {
		t.Errorf("%d I/Os reached the device, want the two that read up to its end", n)
	}
}

// What the standard library does with an io.ReaderAt and an io.WriterAt.
func TestHandleReaders(t *testing.T) {
	for _, kind := range handleKinds {
		t.Run(kind.name, func(t *testing.T) {
			h := newHandle(t, kind.make(t), volume.Options{})
			want := make([]byte, h.Size())
			count(want, 3)
			n, err := io.Copy(io.NewOffsetWriter(h, 0), bytes.NewReader(want))
			if n != h.Size() || err != nil {
				t.Fatalf("io.Copy to it: %d, %v", n, err)
			}
			var got bytes.Buffer
			if n, err = io.Copy(&got, io.NewSectionReader(h, 0, h.Size())); n != h.Size() || err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Fatalf("io.Copy from it: %d, %v, equal %v", n, err, bytes.Equal(got.Bytes(), want))
			}
			// Small and odd reads, seeks, the end: all that an io.Reader may be asked.
			if err := iotest.TestReader(io.NewSectionReader(h, 1000, 3001), want[1000:4001]); err != nil {
				t.Error(err)
			}
			// A section that is longer than the device ends where that does.
			all, err := io.ReadAll(io.NewSectionReader(h, h.Size()-700, math.MaxInt32))
			if err != nil || !bytes.Equal(all, want[h.Size()-700:]) {
				t.Errorf("reading across the end: %d bytes, %v", len(all), err)
			}
		})
	}
}

func TestHandleReadOnly(t *testing.T) {
	for name, h := range map[string]*volume.Handle{
		"by option": newHandle(t, faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}), volume.Options{ReadOnly: true}),
		"device": newHandle(t, devtest.OpenDiskWith(t, devtest.TempFile(t, testSize), poller.OpenOptions{Polling: poller.PollNever}),
			volume.Options{Polling: poller.PollNever}),
	} {
		p := make([]byte, 512)
		if n, err := h.WriteAt(p, 0); n != 0 || !errors.Is(err, poller.ErrReadOnly) {
			t.Errorf("%s: write: %d, %v", name, n, err)
		}
		if n, err := h.WriteAt(p[:5], 3); n != 0 || !errors.Is(err, poller.ErrReadOnly) {
			t.Errorf("%s: write within a block: %d, %v", name, n, err)
		}
		if err := h.Flush(); !errors.Is(err, poller.ErrReadOnly) {
			t.Errorf("%s: flush: %v", name, err)
		}
		if n, err := h.ReadAt(p, 0); n != 512 || err != nil {
			t.Errorf("%s: read: %d, %v", name, n, err)
		}
	}
}

// Polled or not is what the options say, never silently something else.
func TestHandlePolling(t *testing.T) {
	file := func() poller.Device { return devtest.OpenDisk(t, devtest.TempFile(t, testSize)) }
	dev := file()
	if _, err := volume.NewHandle(dev, volume.Options{}); !errors.Is(err, poller.ErrNotPollable) {
		t.Errorf("polling required of a file: %v", err)
	}
	if err := dev.Close(); err != nil {
		t.Errorf("the device is the caller's after that: %v", err)
	}
	for polling, fallbacks := range map[poller.Polling]uint64{poller.PollIfPossible: 1, poller.PollNever: 0} {
		h := newHandle(t, file(), volume.Options{Polling: polling})
		if _, err := h.ReadAt(make([]byte, 512), 0); err != nil {
			t.Fatal(err)
		}
		if err := h.Flush(); err != nil {
			t.Fatal(err)
		}
		s := h.Device().Stats()
		if s.Fallbacks[poller.FallbackNotPollable] != fallbacks || s.Fallbacks[poller.FallbackFlush] != 0 {
			t.Errorf("polling %d: fallbacks %v, want %d", polling, s.Fallbacks, fallbacks)
		}
	}
	mem := newHandle(t, faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}), volume.Options{})
	if _, err := mem.ReadAt(make([]byte, 512), 0); err != nil {
		t.Fatal(err)
	}
	if n := mem.Device().Stats().IO[poller.Read][poller.Polled].Latency.Count(); n != 1 {
		t.Errorf("%d polled reads, want 1", n)
	}
}

func TestHandleBadOptions(t *testing.T) {
	mem := func() poller.Device { return faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}) }
	for name, opts := range map[string]volume.Options{
		"queues below 0":  {Queues: -1},
		"too many queues": {Queues: 1 << 40},
		"depth below 0":   {Depth: -1},
		"too deep":        {Depth: math.MaxInt},
		"timeout below 0": {Timeout: -1},
		"polling":         {Polling: 17},
	} {
		if _, err := volume.NewHandle(mem(), opts); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for name, change := range map[string]func(*poller.Limits){
		"no block":         func(l *poller.Limits) { l.BlockSize = 0 },
		"odd block":        func(l *poller.Limits) { l.BlockSize = 513 },
		"odd alignment":    func(l *poller.Limits) { l.BufAlign = 3 },
		"takes no block":   func(l *poller.Limits) { l.MaxTransfer = 511 },
		"size below 0":     func(l *poller.Limits) { l.Size = -1 },
		"nothing at all":   func(l *poller.Limits) { *l = poller.Limits{} },
		"enormous block":   func(l *poller.Limits) { l.BlockSize, l.MaxTransfer = 1<<40, 1<<41 },
		"enormous buffers": func(l *poller.Limits) { l.BufAlign = 1 << 62 },
	} {
		bad := foreign{Device: mem(), limits: mem().Limits()}
		change(&bad.limits)
		if _, err := volume.NewHandle(bad, volume.Options{}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for depth := 1; depth < 20; depth++ {
		h := newHandle(t, mem(), volume.Options{Depth: depth, Queues: 1})
		p := make([]byte, 200_000)
		if n, err := h.ReadAt(p, 1); n != len(p) || err != nil {
			t.Errorf("depth %d: %d, %v", depth, n, err)
		}
	}
}

// A piece that fails ends the call there: n says how much came through before.
func TestHandleCountsUpToTheError(t *testing.T) {
	const bad = 150_000 &^ 511
	boom := errors.New("boom")
	for _, off := range []int64{0, 1, 4096, 70_000, bad - 1000} {
		mem := faultdev.NewMemory(512<<10, 512, faultdev.MemoryOptions{})
		count(mem.Bytes(), 1)
		want := bytes.Clone(mem.Bytes())
		h := newHandle(t, faultdev.New(mem, faultdev.Rule{From: bad, To: bad + 512, Err: boom}), volume.Options{})
		p := make([]byte, 300_000-off)
		n, err := h.ReadAt(p, off)
		var typed *poller.Error
		if !errors.Is(err, boom) || !errors.As(err, &typed) || typed.Op != poller.Read {
			t.Fatalf("read at %d: %d, %v", off, n, err)
		}
		if end := off + int64(n); end > bad || end < bad-64<<10 || !bytes.Equal(p[:n], want[off:end]) {
			t.Errorf("read at %d: %d bytes came through, the error is at %d", off, n, bad)
		}
		n, err = h.WriteAt(make([]byte, len(p)), off)
		if !errors.Is(err, boom) {
			t.Fatalf("write at %d: %d, %v", off, n, err)
		}
		if end := off + int64(n); end > bad || end < bad-64<<10 || !bytes.Equal(mem.Bytes()[off:end], make([]byte, n)) {
			t.Errorf("write at %d: %d bytes, the error is at %d", off, n, bad)
		}
		if !bytes.Equal(mem.Bytes()[bad:bad+512], want[bad:bad+512]) {
			t.Errorf("write at %d: the bad block was written", off)
		}
	}
}

// Queues are made when they are needed, and no sooner: the budget is there for
// others.
func TestHandleMakesQueuesLate(t *testing.T) {
	mem := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Budget: 8, Unit: 64 << 10})
	h := newHandle(t, mem, volume.Options{Queues: 2})
	all, err := mem.NewQueue(poller.QueueConfig{Depth: 8, MaxTransfer: 512})
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 512)
	if _, err := h.ReadAt(p, 0); !errors.Is(err, poller.ErrBudget) {
		t.Errorf("without any budget left: %v", err)
	}
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.ReadAt(p, 0); err != nil {
		t.Errorf("with the budget back: %v", err)
	}
	// 4 of the 8 are the handle's now, and others may have the rest. Where it
	// does not suffice for long requests, short ones must do.
	rest, err := mem.NewQueue(poller.QueueConfig{Depth: 4, MaxTransfer: 512})
	if err != nil {
		t.Fatal(err)
	}
	together(32, func(i int) {
		if n, err := h.ReadAt(make([]byte, 100_000), int64(i)); n != 100_000 || err != nil {
			t.Errorf("a queue of two: %d, %v", n, err)
		}
	})
	if err := rest.Close(); err != nil {
		t.Fatal(err)
	}
}

// A budget that does not hold a long request, but short ones, is enough.
func TestHandleShortBudget(t *testing.T) {
	mem := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Budget: 20, Unit: 4096})
	h := newHandle(t, mem, volume.Options{})
	others, err := mem.NewQueue(poller.QueueConfig{Depth: 17, MaxTransfer: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	p := make([]byte, 100_000)
	if n, err := h.ReadAt(p, 77); n != len(p) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestHandleAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, kind := range handleKinds {
		h := newHandle(t, kind.make(t), volume.Options{})
		for _, n := range []int{512, 4096, 100_000} {
			p := make([]byte, n)
			for name, f := range map[string]func() error{
				"read":  func() error { _, err := h.ReadAt(p, 4096); return err },
				"odd":   func() error { _, err := h.ReadAt(p, 5); return err },
				"write": func() error { _, err := h.WriteAt(p[:n&^4095], 4096); return err },
				"flush": h.Flush,
			} {
				if allocs := testing.AllocsPerRun(50, func() {
					if err := f(); err != nil {
						t.Fatal(err)
					}
				}); allocs != 0 {
					t.Errorf("%s, %s of %d: %v allocations", kind.name, name, n, allocs)
				}
			}
		}
	}
}

func BenchmarkHandleReadAt(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			h := newHandle(b, faultdev.NewMemory(4<<20, 512, faultdev.MemoryOptions{Budget: 512}), volume.Options{})
			b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
			if goroutines == 1 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			}
			b.ReportAllocs()
			b.SetBytes(4096)
			b.RunParallel(func(pb *testing.PB) {
				p := make([]byte, 4096)
				for off := int64(0); pb.Next(); off = (off + 4096) & (4<<20 - 1) {
					if _, err := h.ReadAt(p, off); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
