// SPDX-License-Identifier: Apache-2.0

package poller

import "testing"

// A list that always holds something needs no more room than the most that it held, and
// gives back in order what it was given.
func TestFifoNeverEmpty(t *testing.T) {
	f := (&Tree{}).NewFifo()
	f.Reserve(4)
	reqs := make([]Request, 1000)
	room := cap(f.items)
	done := make([]*Request, 1)
	f.Push(&reqs[0])
	for i := 1; i < len(reqs); i++ {
		f.Push(&reqs[i])
		if n := f.Pop(done); n != 1 || done[0] != &reqs[i-1] {
			t.Fatalf("%d: %d came back, or another", i, n)
		}
	}
	if f.Len() != 1 || f.tree.held != 1 || cap(f.items) != room {
		t.Errorf("%d held, %d counted, room for %d and not %d", f.Len(), f.tree.held, cap(f.items), room)
	}
}
