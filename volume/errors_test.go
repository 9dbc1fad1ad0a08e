// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// One bad block fails one I/O: the error has the member, the offset on the
// volume and the cause, and others pass.
func TestBadBlock(t *testing.T) {
	v := newMemoryVolume(t, 3)
	v.faults[1].SetRules(faultdev.Rule{From: 512, To: 1024, Err: syscall.ENODATA})
	r := devtest.Open(t, v, poller.QueueConfig{MaxTransfer: 4 * testChunk})
	bad := &poller.Request{Op: poller.Read, Offset: testChunk / 2, Buf: r.Buf(3 * testChunk)}
	good := &poller.Request{Op: poller.Read, Offset: 4 * testChunk, Buf: r.Buf(3 * testChunk)}
	beside := &poller.Request{Op: poller.Read, Offset: testChunk + 1024, Buf: r.Buf(512)}
	r.Do(good, bad, beside)
	if good.Err != nil || beside.Err != nil {
		t.Errorf("the good reads: %v, %v", good.Err, beside.Err)
	}
	var typed *poller.Error
	if !errors.As(bad.Err, &typed) || typed.Member != 1 || typed.Offset != bad.Offset || !errors.Is(bad.Err, syscall.ENODATA) {
		t.Fatalf("the bad read: %v", bad.Err)
	}
	for _, want := range []string{"volume build", "member 1", "memory1"} {
		if !strings.Contains(bad.Err.Error(), want) {
			t.Errorf("%q does not say %q", bad.Err, want)
		}
	}
	r.Do(bad)
	if !errors.Is(bad.Err, syscall.ENODATA) {
		t.Errorf("read again: %v", bad.Err)
	}
}

// The first error of several is kept, with its member, and the request comes
// back only when all of its children have.
func TestFirstErrorIsKept(t *testing.T) {
	v := newMemoryVolume(t, 2)
	gate := new(faultdev.Gate)
	v.faults[0].SetRules(faultdev.Rule{Hold: gate, Err: syscall.EIO})
	v.faults[1].SetRules(faultdev.Rule{Err: syscall.ENODATA})
	r := devtest.Open(t, v, poller.QueueConfig{})
	t.Cleanup(gate.Release)
	req := &poller.Request{Op: poller.Read, Buf: r.Buf(2 * testChunk)}
	r.Submit(req)
	for range 10 {
		if n, err := r.Queue.Poll(make([]*poller.Request, 1)); n != 0 || err != nil {
			t.Fatalf("came back with a child out: %d, %v", n, err)
		}
	}
	gate.Release()
	r.Drain()
	var typed *poller.Error
	if !errors.Is(req.Err, syscall.ENODATA) || errors.Is(req.Err, syscall.EIO) || !errors.As(req.Err, &typed) || typed.Member != 1 {
		t.Errorf("got %v", req.Err)
	}
}

// A short transfer of a member is an error of that member.
func TestShortTransfer(t *testing.T) {
	for _, op := range []poller.Op{poller.Read, poller.Write} {
		v := newMemoryVolume(t, 2)
		v.faults[1].SetRules(faultdev.Rule{Short: true, Times: 1})
		r := devtest.Open(t, v, poller.QueueConfig{})
		req := &poller.Request{Op: op, Buf: r.Buf(2 * testChunk)}
		r.Do(req)
		var typed *poller.Error
		if !errors.Is(req.Err, poller.ErrShort) || !errors.As(req.Err, &typed) || typed.Member != 1 {
			t.Errorf("%v: %v", op, req.Err)
		}
		r.MustDo(req)
	}
}

// A member that is gone breaks the volume once: what is in flight comes back,
// that of other members with success, and everything later fails at once and
// reaches no member, on every queue.
func TestGone(t *testing.T) {
	v := newMemoryVolume(t, 3)
	gate := new(faultdev.Gate)
	v.faults[0].SetRules(faultdev.Rule{Hold: gate})
	v.faults[1].SetRules(faultdev.Rule{Err: poller.ErrGone})
	r := devtest.Open(t, v, poller.QueueConfig{Queues: 2})
	other := devtest.Open(t, v, poller.QueueConfig{Queues: 2})
	t.Cleanup(gate.Release)
	slow := &poller.Request{Op: poller.Read, Offset: 0, Buf: r.Buf(512)}
	lost := &poller.Request{Op: poller.Read, Offset: testChunk, Buf: r.Buf(512)}
	r.Submit(slow, lost)
	done := make([]*poller.Request, 4)
	n, err := r.Queue.Wait(1, done, devtest.Patience)
	if n != 1 || err != nil || done[0] != lost {
		t.Fatalf("Wait: %d, %v", n, err)
	}
	r.Take(done[:n])
	var typed *poller.Error
	if !errors.Is(lost.Err, poller.ErrGone) || !errors.As(lost.Err, &typed) || typed.Member != 1 {
		t.Fatalf("the read of the lost member: %v", lost.Err)
	}
	before := devtest.LeafIO(v.Stats())
	for _, rig := range []*devtest.Rig{r, other} {
		for _, req := range []*poller.Request{
			{Op: poller.Read, Offset: 2 * testChunk, Buf: rig.Buf(512)},
			{Op: poller.Write, Offset: 0, Buf: rig.Buf(4 * testChunk)},
			{Op: poller.Flush},
			{Op: poller.Read},
		} {
			rig.Submit(req)
			n, err := rig.Queue.Poll(done)
			if n != 1 || err != nil || done[0] != req {
				t.Fatalf("%v on a broken volume did not fail at once: %d, %v", req.Op, n, err)
			}
			rig.Take(done[:n])
			if !errors.Is(req.Err, poller.ErrGone) || !strings.Contains(req.Err.Error(), "member 1") {
				t.Errorf("%v on a broken volume: %v", req.Op, req.Err)
			}
		}
	}
	if n := devtest.LeafIO(v.Stats()) - before; n != 0 {
		t.Errorf("%d I/Os reached members of a broken volume", n)
	}
	gate.Release()
	r.Drain()
	if slow.Err != nil {
		t.Errorf("what was in flight on another member: %v", slow.Err)
	}
}

// Gone is noticed also when it is not the first error of a request.
func TestGoneAfterAnotherError(t *testing.T) {
	v := newMemoryVolume(t, 2)
	gate := new(faultdev.Gate)
	v.faults[0].SetRules(faultdev.Rule{Times: 1, Err: syscall.EIO})
	v.faults[1].SetRules(faultdev.Rule{Times: 1, Hold: gate, Err: poller.ErrGone})
	r := devtest.Open(t, v, poller.QueueConfig{})
	t.Cleanup(gate.Release)
	req := &poller.Request{Op: poller.Read, Buf: r.Buf(2 * testChunk)}
	r.Submit(req)
	for range 3 {
		if _, err := r.Queue.Poll(nil); err != nil {
			t.Fatal(err)
		}
	}
	gate.Release()
	r.Drain()
	if req.Err == nil {
		t.Fatal("no error")
	}
	later := &poller.Request{Op: poller.Read, Buf: r.Buf(512)}
	r.Do(later)
	if !errors.Is(later.Err, poller.ErrGone) {
		t.Errorf("the volume is not broken by a member that is gone: %v", later.Err)
	}
}
