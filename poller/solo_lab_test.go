// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/internal/blockdev"
)

// pair is two disks one behind the other, the smallest stack there is.
type pair struct {
	Inner
	leaves [2]*diskQueue
	size   int64
}

func (p *pair) Limits() Limits { return p.leaves[0].Limits() }

func (p *pair) Submit(reqs []*Request) (int, error) {
	for i, r := range reqs {
		leaf := p.leaves[r.Offset/p.size]
		r.Offset %= p.size
		if n, err := leaf.Submit(reqs[i : i+1]); n != 1 || err != nil {
			return i, err
		}
	}
	return len(reqs), nil
}

func (p *pair) Poll(done []*Request) (n int, err error) {
	for _, leaf := range p.leaves {
		got, e := leaf.Poll(done[n:])
		n += got
		if e != nil {
			err = e
		}
	}
	return n, err
}

func (p *pair) Stats() Stats { return Stats{} }

func (p *pair) Outstanding() int { return p.leaves[0].out + p.leaves[1].out }

func (p *pair) Close() error {
	err := p.leaves[0].Close()
	if e := p.leaves[1].Close(); err == nil {
		err = e
	}
	return err
}

// labPair opens the first two NVMe drives of the lab as a pair.
func labPair(t *testing.T) (*pair, Queue) {
	t.Helper()
	cfg, _, err := joinTree(QueueConfig{Depth: 8, MaxTransfer: 4096})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{size: 1 << 20}
	found := 0
	for _, path := range strings.Fields(os.Getenv("POLLUX_LAB")) {
		d, err := Open(path, OpenOptions{Write: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		if d.info.Driver != blockdev.DriverNVMe || found == 2 {
			continue
		}
		q, err := d.NewQueue(cfg)
		if err != nil {
			t.Fatal(err)
		}
		p.leaves[found] = q.(*diskQueue)
		found++
	}
	if found < 2 {
		t.Fatalf("POLLUX_LAB=%q has fewer than two NVMe drives", os.Getenv("POLLUX_LAB"))
	}
	q, err := cfg.Tree.start(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, q
}

// A request that is the only one out goes through the solo ring, whichever disk
// it is for and also when it is submitted again; those that are not alone go
// through the rings of their disks, and data is right either way.
func TestLabSoloRing(t *testing.T) {
	if os.Getenv("POLLUX_LAB") == "" {
		t.Skip("POLLUX_LAB is not set: this needs the drives of the lab (scripts/test-lab)")
	}
	p, q := labPair(t)
	mem := q.Limits().Arena.Bytes()
	tree := p.leaves[0].tree
	done := make([]*Request, 8)
	wait := func(n int) {
		t.Helper()
		if got, err := q.Wait(n, done, 20*time.Second); got != n || err != nil {
			t.Fatalf("Wait: %d of %d, %v", got, n, err)
		}
		for _, r := range done[:n] {
			if r.Err != nil || !r.Polled {
				t.Fatalf("%v at %d: polled %v, %v", r.Op, r.Offset, r.Polled, r.Err)
			}
		}
	}
	submit := func(reqs ...*Request) {
		t.Helper()
		if n, err := q.Submit(reqs); n != len(reqs) || err != nil {
			t.Fatalf("Submit: %d of %d, %v", n, len(reqs), err)
		}
	}
	block := func(i int) []byte { return mem[i*4096:][:4096] }
	at := func(round int) int64 { return int64(round%2)*p.size + int64(round)*4096 }

	const rounds = 64
	for round := range rounds {
		leaf := p.leaves[round%2]
		for i := range block(0) {
			block(0)[i] = byte(round + i)
		}
		w := &Request{Op: Write, Flags: HiPri, Offset: at(round), Buf: block(0)}
		submit(w)
		if !leaf.onSolo || tree.alone || tree.solo.Pending() != 1 {
			t.Fatalf("round %d: solo %v, alone %v, %d pending", round, leaf.onSolo, tree.alone, tree.solo.Pending())
		}
		if round%8 < 2 {
			// An EAGAIN is put into the completion's mouth.
			for tree.solo.Ready() == 0 {
				if err := tree.solo.Enter(); err != nil {
					t.Fatal(err)
				}
			}
			tree.solo.CQE(0).Res = -int32(syscall.EAGAIN)
		}
		wait(1)
		if w.Offset != at(round) || leaf.polledOut != 0 || tree.polled != 0 {
			t.Fatalf("round %d: offset %d, out %d and %d", round, w.Offset, leaf.polledOut, tree.polled)
		}
	}
	for round := 0; round < rounds; round += 2 {
		a := &Request{Flags: HiPri, Offset: at(round), Buf: block(1)}
		b := &Request{Flags: HiPri, Offset: at(round + 1), Buf: block(2)}
		submit(a)
		submit(b) // not alone
		if !p.leaves[0].onSolo || p.leaves[1].onSolo {
			t.Fatalf("one after the other: solo %v and %v", p.leaves[0].onSolo, p.leaves[1].onSolo)
		}
		wait(2)
		submit(a, b)
		if p.leaves[0].onSolo || p.leaves[1].onSolo {
			t.Fatalf("two at once: solo %v and %v", p.leaves[0].onSolo, p.leaves[1].onSolo)
		}
		wait(2)
		for i := range 4096 {
			block(3)[i], block(4)[i] = byte(round+i), byte(round+1+i)
		}
		if !bytes.Equal(block(1), block(3)) || !bytes.Equal(block(2), block(4)) {
			t.Fatalf("round %d: what was read is not what was written", round)
		}
	}
	if n := p.leaves[0].disk.Stats().Retries + p.leaves[1].disk.Stats().Retries; n != rounds/4 {
		t.Errorf("%d retries of %d", n, rounds/4)
	}
}
