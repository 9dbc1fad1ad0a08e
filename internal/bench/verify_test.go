// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"pollux/poller"
)

func TestVerifyFindsNothingWrong(t *testing.T) {
	for _, rw := range []RW{Write, RandWrite, RandRW} {
		for _, bs := range []int64{512, 4096, 1536, 1 << 20} {
			for _, depth := range []int{1, 7} {
				for _, room := range []int{0, 2} {
					dev := newFake(1<<20 + 512) // so that the last block is shorter
					dev.room, dev.batch = room, 2
					job := Job{RW: rw, BS: bs, IODepth: depth, Seed: 3, HiPri: 100}
					found, results, err := Verify(t.Context(), dev, job)
					if err != nil || found.Bytes != 1<<20+512 || found.WrongBlocks != 0 || len(results) != 2 {
						t.Fatalf("%v, bs %d, depth %d, room %d: %+v, %d results, %v", rw, bs, depth, room, found, len(results), err)
					}
					if results[0].Rates(poller.Write).Bytes != 1<<20+512 || results[1].Rates(poller.Read).Polled == 0 {
						t.Errorf("%v, bs %d: %+v", rw, bs, results)
					}
					if checkPattern(dev.data, patternStart(3), 0) >= 0 {
						t.Errorf("%v, bs %d: the device does not hold the pattern", rw, bs)
					}
					dev.checkClosed(t)
				}
			}
		}
	}
}

func TestVerifyFindsOneWrongByte(t *testing.T) {
	const seed, at = 9, 123_457
	dev := newFake(1 << 20)
	fillPattern(dev.data, patternStart(seed), 0)
	right := dev.data[at]
	dev.data[at] ^= 0x10
	dev.data[at+5_000] ^= 0x01 // in the block after the next
	found, _, err := Verify(t.Context(), dev, Job{RW: RandRead, IODepth: 4, Seed: seed})
	var wrong *Mismatch
	if !errors.As(err, &wrong) {
		t.Fatalf("error %v", err)
	}
	if wrong.Offset != at || wrong.Expected != right || wrong.Found != right^0x10 || found.WrongBlocks != 2 || found.Bytes != 1<<20 {
		t.Errorf("%+v, %+v", wrong, found)
	}
}

func TestVerifyFindsMisplacedBlocks(t *testing.T) {
	dev := newFake(1 << 20)
	fillPattern(dev.data, patternStart(0), 0)
	copy(dev.data[8192:12288], dev.data[40960:45056])
	found, _, err := Verify(t.Context(), dev, Job{RW: Read})
	if err == nil || found.WrongBlocks != 1 || found.First.Offset/4096 != 2 || found.First.BelongsAt/4096 != 10 {
		t.Errorf("%+v, first %+v, %v", found, found.First, err)
	}
}

// TestVerifyNoticesReadsThatBringNothing: the buffers still hold what was
// written.
func TestVerifyNoticesReadsThatBringNothing(t *testing.T) {
	dev := newFake(64 << 10)
	dev.lazy = true
	if found, _, err := Verify(t.Context(), dev, Job{RW: Write, IODepth: 16}); err == nil || found.WrongBlocks != 16 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestVerifyNoticesAnotherSeed(t *testing.T) {
	dev := newFake(64 << 10)
	if _, _, err := Verify(t.Context(), dev, Job{RW: Write, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if found, _, err := Verify(t.Context(), dev, Job{RW: Read, Seed: 2}); err == nil || found.WrongBlocks != 16 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestVerifyStopsAtAnError(t *testing.T) {
	dev := newFake(1 << 20)
	dev.failAt = 20
	_, results, err := Verify(t.Context(), dev, Job{RW: Write, IODepth: 4})
	if !errors.Is(err, syscall.ENODATA) || len(results) != 1 {
		t.Errorf("%d results, %v", len(results), err)
	}
	dev.checkClosed(t)
}

func TestVerifyCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dev := newFake(1 << 20)
	_, results, err := Verify(ctx, dev, Job{RW: Write})
	if err != nil || len(results) != 1 || !results[0].Interrupted {
		t.Errorf("%+v, %v", results, err)
	}
	dev.checkClosed(t)
}

// TestScatteredOrderMeetsEveryBlock for all small numbers of blocks.
func TestScatteredOrderMeetsEveryBlock(t *testing.T) {
	for blocks := int64(1); blocks < 300; blocks++ {
		for seed := range uint64(5) {
			v := newVerifier(Job{BS: 8, Size: blocks * 8, Seed: seed}, true, nil)
			met := make([]bool, blocks)
			r := poller.Request{Op: poller.Write, Buf: make([]byte, 8)}
			for range blocks {
				v.prepare(&r)
				met[r.Offset/8] = true
			}
			for block, ok := range met {
				if !ok {
					t.Fatalf("block %d of %d is never met (seed %d)", block, blocks, seed)
				}
			}
		}
	}
}
