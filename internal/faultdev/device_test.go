// SPDX-License-Identifier: Apache-2.0

package faultdev_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

func open(t *testing.T, rules ...faultdev.Rule) (*faultdev.Device, *faultdev.Memory, *devtest.Rig) {
	t.Helper()
	mem := faultdev.NewMemory(64<<10, 512, faultdev.MemoryOptions{Name: "a"})
	dev := faultdev.New(mem, rules...)
	devtest.Close(t, dev)
	return dev, mem, devtest.Open(t, dev, poller.QueueConfig{Depth: 8, MaxTransfer: 8 << 10})
}

// errnos does n requests of an operation, one after the other, each of a block,
// and returns which failed.
func failures(r *devtest.Rig, op poller.Op, n int) (failed []int) {
	buf := r.Buf(512)
	for i := range n {
		req := &poller.Request{Op: op, Offset: int64(i) * 512, Buf: buf}
		if op == poller.Flush {
			req = &poller.Request{Op: op}
		}
		if r.Do(req); req.Err != nil {
			failed = append(failed, i)
		}
	}
	return failed
}

func TestRuleSelects(t *testing.T) {
	for _, c := range []struct {
		name                 string
		rule                 faultdev.Rule
		reads, writes, flush []int // which of four fail
	}{
		{"all", faultdev.Rule{}, []int{0, 1, 2, 3}, []int{0, 1, 2, 3}, []int{0, 1, 2, 3}},
		{"reads", faultdev.Rule{Ops: faultdev.Reads}, []int{0, 1, 2, 3}, nil, nil},
		{"writes and flushes", faultdev.Rule{Ops: faultdev.Writes | faultdev.Flushes}, nil, []int{0, 1, 2, 3}, []int{0, 1, 2, 3}},
		{"this member", faultdev.Rule{Member: "a", Ops: faultdev.Flushes}, nil, nil, []int{0, 1, 2, 3}},
		{"another member", faultdev.Rule{Member: "b"}, nil, nil, nil},
		{"a range", faultdev.Rule{From: 512, To: 1536}, []int{1, 2}, []int{1, 2}, nil},
		{"to the end", faultdev.Rule{From: 1024}, []int{2, 3}, []int{2, 3}, nil},
		{"a count", faultdev.Rule{Skip: 1, Times: 4}, []int{1, 2, 3}, []int{0}, nil},
	} {
		c.rule.Err = syscall.EIO
		dev, _, r := open(t, c.rule)
		for op, want := range map[poller.Op][]int{poller.Read: c.reads, poller.Write: c.writes, poller.Flush: c.flush} {
			if c.rule.Times == 0 { // otherwise the order of operations matters
				if got := failures(r, op, 4); !slices.Equal(got, want) {
					t.Errorf("%s: %v: %v failed, want %v", c.name, op, got, want)
				}
			}
		}
		if c.rule.Times > 0 {
			if got := failures(r, poller.Read, 4); !slices.Equal(got, c.reads) {
				t.Errorf("%s: reads %v failed, want %v", c.name, got, c.reads)
			}
			if got := failures(r, poller.Write, 4); !slices.Equal(got, c.writes) {
				t.Errorf("%s: writes %v failed, want %v", c.name, got, c.writes)
			}
		}
		if want := len(c.reads) + len(c.writes) + len(c.flush); dev.Struck() != want {
			t.Errorf("%s: struck %d times, want %d", c.name, dev.Struck(), want)
		}
	}
}

// A seed decides, not the moment.
func TestRuleChance(t *testing.T) {
	run := func(seed uint64) []int {
		_, _, r := open(t, faultdev.Rule{Chance: 0.5, Seed: seed, Err: syscall.EAGAIN})
		return failures(r, poller.Read, 100)
	}
	first := run(1)
	if n := len(first); n < 20 || n > 80 {
		t.Errorf("%d of 100 at a chance of 0.5", n)
	}
	if !slices.Equal(first, run(1)) {
		t.Error("one seed, two outcomes")
	}
	if slices.Equal(first, run(2)) {
		t.Error("two seeds, one outcome")
	}
}

func TestFailedWritesNothing(t *testing.T) {
	_, mem, r := open(t, faultdev.Rule{Ops: faultdev.Writes, Times: 1, Err: syscall.EIO})
	req := &poller.Request{Op: poller.Write, Offset: 512, Buf: r.Buf(512)}
	copy(req.Buf, "bytes")
	r.Do(req)
	if !errors.Is(req.Err, syscall.EIO) || !strings.Contains(req.Err.Error(), "a: write at 512") {
		t.Errorf("got %v", req.Err)
	}
	if !bytes.Equal(mem.Bytes(), make([]byte, 64<<10)) {
		t.Error("the write was done")
	}
	r.MustDo(req)
	if !bytes.HasPrefix(mem.Bytes()[512:], []byte("bytes")) {
		t.Error("the second write was not done")
	}
}

func TestShortMovesHalf(t *testing.T) {
	_, mem, r := open(t, faultdev.Rule{Short: true})
	req := &poller.Request{Op: poller.Write, Buf: r.Buf(3 * 512)}
	for i := range req.Buf {
		req.Buf[i] = 1
	}
	r.Do(req)
	if !errors.Is(req.Err, poller.ErrShort) || !strings.Contains(req.Err.Error(), "512 bytes of 1536") {
		t.Errorf("got %v", req.Err)
	}
	if n := bytes.Count(mem.Bytes(), []byte{1}); n != 512 {
		t.Errorf("%d bytes were written, want 512", n)
	}
	one := &poller.Request{Op: poller.Read, Buf: r.Buf(512)}
	r.Do(one)
	if !errors.Is(one.Err, poller.ErrShort) {
		t.Errorf("a read of one block: %v", one.Err)
	}
	r.MustDo(&poller.Request{Op: poller.Flush})
}

func TestDelay(t *testing.T) {
	const delay = 10 * time.Millisecond
	_, _, r := open(t, faultdev.Rule{Times: 1, Delay: delay}, faultdev.Rule{Times: 1, Delay: delay, Err: syscall.EIO})
	start := time.Now()
	late, failed := &poller.Request{Op: poller.Read, Buf: r.Buf(512)}, &poller.Request{Op: poller.Read, Buf: r.Buf(512)}
	prompt := &poller.Request{Op: poller.Read, Buf: r.Buf(512)}
	r.Submit(late, failed, prompt)
	done := make([]*poller.Request, 3)
	n, err := r.Queue.Wait(1, done, -1)
	if n != 1 || err != nil || done[0] != prompt {
		t.Fatalf("Wait: %d, %v", n, err)
	}
	r.Take(done[:n])
	r.Drain()
	if took := time.Since(start); took < delay {
		t.Errorf("back after %v, want %v at least", took, delay)
	}
	if late.Err != nil || !errors.Is(failed.Err, syscall.EIO) {
		t.Errorf("errors %v and %v", late.Err, failed.Err)
	}
}

func TestHoldAndSetRules(t *testing.T) {
	gate := new(faultdev.Gate)
	dev, mem, r := open(t, faultdev.Rule{Ops: faultdev.Writes, Hold: gate})
	t.Cleanup(gate.Release)
	req := &poller.Request{Op: poller.Write, Buf: r.Buf(512)}
	copy(req.Buf, "bytes")
	r.Submit(req)
	dev.SetRules() // does not free what is held
	r2 := &poller.Request{Op: poller.Write, Offset: 512, Buf: r.Buf(512)}
	r.Submit(r2)
	for range 10 {
		done := make([]*poller.Request, 2)
		n, err := r.Queue.Poll(done)
		if err != nil {
			t.Fatal(err)
		}
		r.Take(done[:n])
	}
	if r.Out() != 1 || mem.Bytes()[0] != 0 {
		t.Fatalf("%d are out, want the held one alone", r.Out())
	}
	gate.Release()
	r.Drain()
	if !bytes.HasPrefix(mem.Bytes(), []byte("bytes")) {
		t.Error("not written after the release")
	}
}
