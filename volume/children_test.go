// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"fmt"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// A parent whose own part is back keeps its place while a sibling is out, and its
// member has room for more by then. An application that submits as long as Submit
// takes all must come to a Submit that is short, never to one that finds no child.
func TestChildrenNeverRunOut(t *testing.T) {
	const chunk, half = 4 << 10, 2 << 10
	// across is a read of the second half of a chunk and the first of the next,
	// so that the parent's own part is always a second half of a member's chunk
	// and the sibling, which is held, a first half.
	across := func(firstChunk int64) int64 { return firstChunk*chunk + half }
	for _, c := range []struct {
		name    string
		members int
		chunks  []int64 // in which the reads begin, in this order again and again
		want    int     // how many are taken
	}{
		{"2 members, each holding siblings of the other's", 2, []int64{0, 1}, 3},
		{"3 members, one after the other filled with siblings", 3, []int64{0, 0, 2, 2, 1, 1}, 4},
		{"3 members in turn", 3, []int64{0, 1, 2}, 4},
		{"4 members in turn", 4, []int64{0, 1, 2, 3}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			gate := new(faultdev.Gate)
			var rules []faultdev.Rule
			for at := int64(0); at < 4*chunk; at += chunk {
				rules = append(rules, faultdev.Rule{From: at, To: at + half, Hold: gate})
			}
			var devs []poller.Device
			var memories []*faultdev.Memory
			for i := range c.members {
				mem := faultdev.NewMemory(16*chunk, 512, faultdev.MemoryOptions{Name: fmt.Sprintf("memory%d", i)})
				count(mem.Bytes(), i)
				memories, devs = append(memories, mem), append(devs, faultdev.New(mem, rules...))
			}
			v := newVolume(t, chunk, devs...)
			arena, err := poller.NewArena(64 * chunk)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := arena.Close(); err != nil {
					t.Error(err)
				}
			})
			r := devtest.Open(t, v, poller.QueueConfig{Depth: 2, MaxTransfer: chunk, Arena: arena})
			t.Cleanup(gate.Release)
			if got := r.Queue.Limits().QueueDepth; got != 2 {
				t.Fatalf("granted %d requests a member, the test is about 2", got)
			}
			var taken []*poller.Request
			for short := false; !short; {
				req := &poller.Request{Op: poller.Read, Offset: across(c.chunks[len(taken)%len(c.chunks)]), Buf: r.Buf(chunk)}
				if short = r.Try(req) == 0; !short {
					taken = append(taken, req)
				}
				for range 3 { // the parent's own part comes back
					if n, err := r.Queue.Poll(make([]*poller.Request, 4)); n != 0 || err != nil {
						t.Fatalf("Poll with every sibling held: %d, %v", n, err)
					}
				}
			}
			if len(taken) != c.want {
				t.Errorf("%d requests were taken, want %d", len(taken), c.want)
			}
			gate.Release()
			r.Drain()
			for _, req := range taken {
				first := req.Offset / chunk
				want := bytes.Clone(memories[first%int64(c.members)].Bytes()[first/int64(c.members)*chunk+half:][:half])
				first++
				want = append(want, memories[first%int64(c.members)].Bytes()[first/int64(c.members)*chunk:][:half]...)
				if req.Err != nil || !bytes.Equal(req.Buf, want) {
					t.Errorf("read at %d: wrong bytes or %v", req.Offset, req.Err)
				}
			}
			// All of them are free again.
			r.MustDo(&poller.Request{Op: poller.Read, Offset: across(0), Buf: r.Buf(chunk)},
				&poller.Request{Op: poller.Read, Offset: across(1), Buf: r.Buf(chunk)})
		})
	}
}
