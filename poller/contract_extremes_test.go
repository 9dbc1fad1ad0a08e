// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"math"
	"testing"

	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// Figures too large for any device, or for an int once they are multiplied, give
// an error or a queue that works, and take nothing of the budget for good.
func TestExtremeConfigs(t *testing.T) {
	const huge = math.MaxInt64
	eachKind(t, func(t *testing.T, dev poller.Device) {
		arena := newArena(t, kindSize)
		block := dev.Limits().BlockSize
		full := 0
		for i, c := range []struct {
			cfg  poller.QueueConfig
			must string // be: "refused", "made", or either
		}{
			{poller.QueueConfig{Depth: 8, MaxTransfer: kindChunk, Arena: arena}, "made"}, // the normal one
			{poller.QueueConfig{MaxTransfer: huge, Arena: arena}, ""},
			{poller.QueueConfig{MaxTransfer: huge - 1<<20, Depth: 1, Arena: arena}, ""},
			{poller.QueueConfig{MaxTransfer: huge}, "refused"}, // an arena above MaxArena
			{poller.QueueConfig{MaxTransfer: poller.MaxArena + 1, Arena: arena}, ""},
			{poller.QueueConfig{Depth: math.MaxInt, Arena: arena}, "made"},
			{poller.QueueConfig{Depth: math.MaxInt}, "refused"},
			{poller.QueueConfig{Depth: math.MaxInt, MaxTransfer: huge}, "refused"},
			{poller.QueueConfig{Depth: math.MaxInt, MaxTransfer: huge, Queues: math.MaxInt, Arena: arena}, ""},
			{poller.QueueConfig{Queues: math.MaxInt, MaxTransfer: kindChunk, Arena: arena}, "made"},
			{poller.QueueConfig{MinDepth: math.MaxInt, Arena: arena}, "refused"},
			{poller.QueueConfig{MinDepth: math.MaxInt}, "refused"},
			{poller.QueueConfig{MinDepth: math.MaxInt, MaxTransfer: 256 << 10, Arena: arena}, "refused"}, // times 2 is -2
			{poller.QueueConfig{MinDepth: math.MaxInt, Depth: 1, MaxTransfer: huge, Arena: arena}, "refused"},
			{poller.QueueConfig{MinDepth: math.MinInt, Depth: math.MinInt, MaxTransfer: math.MinInt64, Queues: math.MinInt, CloseTimeout: math.MinInt64, Arena: arena}, "made"},
			{poller.QueueConfig{CloseTimeout: math.MaxInt64, MaxTransfer: kindChunk, Arena: arena}, "made"},
			{poller.QueueConfig{Depth: math.MaxInt/2 + 1, MinDepth: math.MaxInt/2 + 1, MaxTransfer: 1 << 62, Arena: arena}, "refused"},
		} {
			q, err := dev.NewQueue(c.cfg)
			if err != nil && c.must == "made" || err == nil && c.must == "refused" {
				t.Errorf("config %d must be %s: %v", i, c.must, err)
			}
			if err == nil {
				l := q.Limits()
				if l.QueueDepth < 1 || l.MaxTransfer < block || l.MaxTransfer > poller.MaxArena {
					t.Errorf("config %d: granted %d of %d bytes", i, l.QueueDepth, l.MaxTransfer)
				}
				req := &poller.Request{Op: poller.Read, Buf: l.Arena.Bytes()[:block]}
				devtest.Around(t, q).MustDo(req)
				if err := q.Close(); err != nil {
					t.Errorf("config %d: Close: %v", i, err)
				}
			}
			// All of the budget is there for the next.
			q, err = dev.NewQueue(poller.QueueConfig{Depth: math.MaxInt, MaxTransfer: kindChunk, Arena: arena})
			if err != nil {
				t.Fatalf("after config %d: %v", i, err)
			}
			got := q.Limits().QueueDepth
			if err := q.Close(); err != nil {
				t.Fatal(err)
			}
			if full == 0 {
				full = got
			}
			if got != full {
				t.Fatalf("after config %d the device grants %d, before %d", i, got, full)
			}
		}
	})
}
