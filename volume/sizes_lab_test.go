// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// mostBytes is the longest request of these tests.
const mostBytes = 4 * mib

// labSizes are every power of two from a block to 4 MiB, and what lies beside
// the boundaries: a chunk, three of them, 1 MiB, where the kernel splits.
func labSizes() []int {
	var sizes []int
	for n := 512; n <= mostBytes; n *= 2 {
		sizes = append(sizes, n)
	}
	return append(sizes, 1536, 64*kib-512, 64*kib+512, 3*64*kib+512, mib-512, mib+512, 2*mib+4*kib+512, mostBytes-512)
}

func sizeName(n int) string {
	switch {
	case n%mib == 0:
		return fmt.Sprintf("%dMiB", n/mib)
	case n%kib == 0:
		return fmt.Sprintf("%dKiB", n/kib)
	}
	return fmt.Sprintf("%d", n)
}

// TestLabPolledSizes writes and reads every size from every alignment through a
// volume of two drives and compares with a flat array, without one interrupt or
// worker thread.
func TestLabPolledSizes(t *testing.T) {
	paths := labDevices(t, blockdev.DriverNVMe, 2)[:2]
	for _, c := range []struct {
		chunk int64
		sizes []int
	}{
		{64 * kib, labSizes()},
		{4 * kib, []int{512, 4*kib + 512, 12*kib + 512, 64*kib + 512, mib + 512, mostBytes}},
		{4 * mib, []int{512, 3*mib + 512, mostBytes}},
	} {
		t.Run("chunk="+sizeName(int(c.chunk)), func(t *testing.T) {
			v := stripeOver(t, c.chunk,
				openDisk(t, paths[0], poller.PollRequired), openDisk(t, paths[1], poller.PollRequired))
			closing(t, v)
			checkSizes(t, v, c.sizes)
		})
	}
}

// TestLabNestedVolumes is the same for a volume whose members are volumes.
func TestLabNestedVolumes(t *testing.T) {
	paths := labDevices(t, blockdev.DriverNVMe, 4)[:4]
	var halves []poller.Device
	for i := 0; i < len(paths); i += 2 {
		halves = append(halves, stripeOver(t, 16*kib,
			openDisk(t, paths[i], poller.PollRequired), openDisk(t, paths[i+1], poller.PollRequired)))
	}
	v := stripeOver(t, 64*kib, halves...)
	closing(t, v)
	before := v.Stats()
	checkSizes(t, v, []int{512, 4 * kib, 16*kib + 512, 64*kib + 512, 3*64*kib + 512, mib, mib + 512, mostBytes})
	for i, half := range v.Stats().Sub(before).Members {
		for j, disk := range half.Members {
			for op := poller.Read; op <= poller.Write; op++ {
				plain, polled := disk.IO[op][poller.Plain].Latency.Count(), disk.IO[op][poller.Polled].Latency.Count()
				if plain != 0 || polled == 0 {
					t.Errorf("disk %d of volume %d: %d plain and %d polled of %v, want all polled and some", j, i, plain, polled, op)
				}
			}
		}
	}
}

// checkSizes writes and reads v at each of sizes, several requests at once,
// their buffers at every distance from a page that direct I/O allows and their
// offsets anywhere in a chunk, and compares v with a model.
func checkSizes(t *testing.T, v poller.Device, sizes []int) {
	l := v.Limits()
	page, align := os.Getpagesize(), int(l.BufAlign)
	aligns := []int{0, 512, 3 * 512, page - 512, align, page - align}
	const stride = mostBytes + 64*kib // between buffers, and between offsets
	arena, err := poller.NewArena(int64(len(aligns) * stride))
	if err != nil {
		t.Fatal(err)
	}
	closing(t, arena)
	mem := arena.Bytes()
	// With small chunks a long request takes more children than a drive has
	// room for in six of them.
	depth := min(len(aligns), max(l.QueueDepth*int(l.MaxTransfer/mostBytes)/2, 1))
	q := newQueue(t, v, poller.QueueConfig{Depth: depth, MaxTransfer: mostBytes, Arena: arena})
	seed := rand.Uint64()
	t.Logf("seed %d, depth %d, fixed buffers %v", seed, q.Limits().QueueDepth, q.Limits().FixedBuffers)
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	source := rand.NewChaCha8(key)
	rng := rand.New(source)

	// The model is of the first bytes of v, which other tests may have written.
	model := make([]byte, len(aligns)*stride)
	readAll := func(t *testing.T) []byte {
		for pos := 0; pos < len(model); pos += mostBytes {
			n := min(mostBytes, len(model)-pos)
			mustDo(t, q, true, &poller.Request{Op: poller.Read, Flags: poller.HiPri, Offset: int64(pos), Buf: mem[pos:][:n]})
		}
		return mem[:len(model)]
	}
	copy(model, readAll(t))
	block := int(l.BlockSize)
	for _, size := range sizes {
		t.Run(sizeName(size), func(t *testing.T) {
			reqs := make([]*poller.Request, len(aligns))
			for i, align := range aligns {
				buf := mem[i*stride+align:][:size:size]
				offset := i*stride + rng.IntN(64*kib/block)*block
				_, _ = source.Read(buf)
				copy(model[offset:], buf)
				reqs[i] = &poller.Request{Op: poller.Write, Flags: poller.HiPri, Offset: int64(offset), Buf: buf}
			}
			quiet(t, func() { mustDo(t, q, true, reqs...) })
			for _, r := range reqs {
				r.Op = poller.Read
				clear(r.Buf)
			}
			quiet(t, func() { mustDo(t, q, true, reqs...) })
			for i, r := range reqs {
				if !bytes.Equal(r.Buf, model[r.Offset:][:size]) {
					t.Errorf("at %d, buffer %d bytes off a page: what was read is not what was written", r.Offset, aligns[i])
				}
			}
		})
	}
	if !bytes.Equal(readAll(t), model) {
		t.Error("the volume differs from the model: something was written beside where it belongs")
	}
}

// TestLabPlainInterrupts shows that the count of interrupts tells something: a
// plain I/O at depth 1 raises one.
func TestLabPlainInterrupts(t *testing.T) {
	paths := labDevices(t, blockdev.DriverNVMe, 2)
	v := stripeOver(t, 64*kib,
		openDisk(t, paths[0], poller.PollRequired), openDisk(t, paths[1], poller.PollRequired))
	closing(t, v)
	q := newQueue(t, v, poller.QueueConfig{Depth: 1, MaxTransfer: 4 * kib})
	r := &poller.Request{Op: poller.Read, Buf: q.Limits().Arena.Bytes()[: 4*kib : 4*kib]}
	const count = 300
	n := interrupts(t, func() {
		for i := range count {
			r.Offset = int64(i) * 64 * kib
			mustDo(t, q, false, r)
		}
	})
	ratio := float64(n) / count
	t.Logf("%.3f interrupts per plain I/O at depth 1", ratio)
	if ratio < 0.9 || ratio > 1.1 {
		t.Errorf("%d interrupts for %d plain reads at depth 1, want one each", n, count)
	}
}
