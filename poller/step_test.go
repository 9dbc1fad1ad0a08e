// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller

import (
	"testing"
	"time"
)

// handing is a node with one request. It is on a list, as a member's EAGAIN is;
// the poll that takes it from there hands it down again, as polled I/O, and the
// next one finishes it.
type handing struct {
	*diskQueue
	list Fifo
	req  *Request
	out  int
}

func (h *handing) Poll(done []*Request) (int, error) {
	if h.list.Len() != 0 {
		h.list.Pop(make([]*Request, 1))
		h.tree.AddPolled(1)
		return 0, nil
	}
	if h.out == 0 || len(done) == 0 {
		return 0, nil
	}
	h.out = 0
	h.tree.AddPolled(-1)
	done[0] = h.req
	return 1, nil
}

func (h *handing) Stats() Stats     { return Stats{} }
func (h *handing) Outstanding() int { return h.out }

// A wait that hands polled I/O down while it takes requests from a list polls for
// it: it does not sleep for the plain I/O that is out beside it.
func TestWaitDoesNotSleepForHandedDown(t *testing.T) {
	l := newLeaf(t, QueueConfig{Depth: 1, MaxTransfer: leafBlock})
	tree := l.q.tree
	req := l.request(Read, HiPri, 1)
	h := &handing{diskQueue: l.q, list: tree.NewFifo(), req: req, out: 1}
	h.list.Push(req)
	tree.root = h
	tree.plainOut++ // plain I/O that takes for ever
	defer func() {
		tree.root = l.q
		tree.plainOut--
	}()
	const timeout = 600 * time.Millisecond
	start := time.Now()
	n, err := l.queue.Wait(1, make([]*Request, 1), timeout)
	if took := time.Since(start); n != 1 || err != nil || took > timeout/2 {
		t.Errorf("Wait: %d, %v after %v", n, err, took)
	}
}
