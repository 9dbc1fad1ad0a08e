// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"fmt"
	"runtime"
	"time"

	"pollux/internal/clock"
	"pollux/internal/invariants"
	"pollux/internal/uring"
)

// Tree is what the queues of one stack share: the ring for plain I/O, the
// arena, the clock reading of the current batch, and how much I/O must be
// polled for. Only those who write a Device use its methods.
//
// MakeQueue makes it, for the queue that is its root.
type Tree struct {
	root   Node
	layers uint16
	leaves []*diskQueue
	arena  *Arena
	// ownArena says that the arena is closed with the tree.
	ownArena bool
	timeout  time.Duration

	plain *uring.Ring
	// plainOut counts what is pending or in flight on the plain ring, all
	// leaves together; polled counts what only a Poll can finish.
	plainOut int
	polled   int
	// held counts finished requests on the lists of all queues.
	held int
	// solo is a second IOPOLL ring for every leaf, used while only one of them
	// has polled I/O out. Entering another ring than the last time makes the
	// kernel look the ring up in a tree that is ten levels deep, as its key is an
	// address (__io_uring_add_tctx_node of Linux): 350 instructions, which a
	// queue at depth 1 over several members would pay for most of its I/O. A
	// ring for all members at once would be no answer: it finishes requests in
	// order. nil where there is one leaf.
	solo *uring.Ring
	// alone says that the request now being submitted will be the only one out.
	// The leaf that takes the solo ring resets it.
	alone bool
	// waker ends waits early; nil where none was given. wakerArmed says that the
	// plain ring has the entry that waits for its event, which is counted nowhere.
	waker      *Waker
	wakerArmed bool
	// fixed says that the arena is registered with every ring, unfixed that it is
	// not to be.
	fixed, unfixed bool

	// now is the clock reading of the current batch, in nanoseconds.
	now int64
	// polls counts, for yielding.
	polls uint

	broken error
	closed bool
	guard  invariants.Owner
}

// yieldAfter is after how many polls a poller lets other goroutines run. Without
// it, timers on a machine whose CPUs all poll are late by whole scheduler periods.
const yieldAfter = 64

// joinTree completes cfg for the queue of a device and says whether this queue is
// the root of its tree, which it is when cfg.Tree was nil.
func joinTree(cfg QueueConfig) (_ QueueConfig, root bool, _ error) {
	cfg = cfg.withDefaults()
	if cfg.Tree != nil {
		return cfg, false, nil
	}
	clock.Start()
	t := &Tree{arena: cfg.Arena, timeout: cfg.CloseTimeout, waker: cfg.Waker, unfixed: cfg.NoFixedBuffers}
	if t.arena == nil {
		if cfg.MaxTransfer > MaxArena/int64(cfg.Depth) {
			return cfg, false, fmt.Errorf("queue of %d requests of %d bytes: the default arena would exceed %d bytes; ask for less, or bring an arena",
				cfg.Depth, cfg.MaxTransfer, MaxArena)
		}
		arena, err := NewArena(cfg.MaxTransfer * int64(cfg.Depth))
		if err != nil {
			return cfg, false, err
		}
		t.arena, t.ownArena = arena, true
	}
	if err := t.arena.use(); err != nil {
		return cfg, false, err
	}
	cfg.Arena, cfg.Tree = t.arena, t
	return cfg, true, nil
}

// start makes the rings, now that all leaves are known, and the Queue of the
// whole tree. When it fails it closes root and the tree.
func (t *Tree) start(root Node) (Queue, error) {
	t.root = root
	if err := t.makeRings(); err != nil {
		_ = root.Close()
		_ = t.close(0)
		return nil, err
	}
	return (*rootQueue)(t), nil
}

func (t *Tree) makeRings() error {
	tags, fds := 0, make([]int32, 0, len(t.leaves))
	for _, leaf := range t.leaves {
		tags += len(leaf.slots)
		fds = append(fds, int32(leaf.drive.dev.FD()))
	}
	if len(fds) == 0 {
		return nil
	}
	plain, err := uring.New(uring.Config{Entries: uint32(tags)})
	if err != nil {
		return fmt.Errorf("ring for plain I/O: %w", err)
	}
	t.plain = plain
	if err := plain.RegisterFiles(fds); err != nil {
		return fmt.Errorf("ring for plain I/O: %w", err)
	}
	t.fixed = !t.unfixed && plain.RegisterMemory(t.arena.mem) == nil
	for _, leaf := range t.leaves {
		if leaf.disk.notPollable != nil {
			continue
		}
		if leaf.polled, err = t.pollRing(len(leaf.slots), []int32{fds[leaf.index]}); err != nil {
			return err
		}
	}
	if len(t.leaves) > 1 {
		if err := t.makeSolo(fds); err != nil {
			return err
		}
	}
	for _, leaf := range t.leaves {
		leaf.useFixed(t.fixed)
	}
	return nil
}

// makeSolo makes the solo ring, large enough for the leaf with the most tags.
func (t *Tree) makeSolo(fds []int32) (err error) {
	tags := 0
	for _, leaf := range t.leaves {
		if leaf.polled != nil {
			tags = max(tags, len(leaf.slots))
		}
	}
	if tags == 0 {
		return nil
	}
	t.solo, err = t.pollRing(tags, fds)
	return err
}

// pollRing makes a ring for polled I/O to fds and shares the registered memory of
// the plain ring with it.
func (t *Tree) pollRing(tags int, fds []int32) (*uring.Ring, error) {
	ring, err := uring.New(uring.Config{Entries: uint32(tags), IOPoll: true})
	if err != nil {
		return nil, fmt.Errorf("ring for polled I/O: %w", err)
	}
	if err := ring.RegisterFiles(fds); err != nil {
		_ = ring.Close()
		return nil, fmt.Errorf("ring for polled I/O: %w", err)
	}
	if t.fixed && ring.CloneMemory(t.plain) != nil {
		t.fixed = ring.RegisterMemory(t.arena.mem) == nil
	}
	return ring, nil
}

// Arena returns the memory that all requests in the tree must use.
func (t *Tree) Arena() *Arena { return t.arena }

// FixedBuffers says that the arena is registered with every ring of the tree.
func (t *Tree) FixedBuffers() bool { return t.fixed }

// Tick reads the clock for the batch at hand: once by the root in Submit, and
// once by a leaf for what it has reaped.
func (t *Tree) Tick() { t.now = clock.Now() }

// Now returns the last reading of Tick, in nanoseconds of the tree's own clock.
func (t *Tree) Now() int64 { return t.now }

// AddPolled counts I/O that finishes only when its queue is polled. A Device
// without rings counts all of its I/O here, lest Wait sleep for it in vain.
func (t *Tree) AddPolled(n int) { t.polled += n }

func (t *Tree) poll(done []*Request) (int, error) {
	if t.plainOut != 0 {
		if err := t.pollPlain(); err != nil {
			return 0, err
		}
	}
	return t.look(done)
}

// look polls the root once. Pollers yield whether or not they find something: at
// depth 1 on a fast drive every poll does.
func (t *Tree) look(done []*Request) (int, error) {
	n, err := t.root.Poll(done)
	if err != nil {
		t.broken = err
	}
	if t.polls++; t.polls%yieldAfter == 0 {
		runtime.Gosched()
	}
	return n, err
}

// wait waits for want requests, of which total are in done already.
func (t *Tree) wait(total, want int, done []*Request, timeout time.Duration) (int, error) {
	want = min(want, len(done), total+t.root.Outstanding())
	var deadline int64
	for turn := 0; ; turn++ {
		left := timeout
		if timeout > 0 && (turn%yieldAfter == 0 || t.polled == 0) {
			// Not in every turn of a spin: the clock costs time too.
			t.Tick()
			if deadline == 0 {
				deadline = t.now + int64(timeout)
			}
			left = max(0, time.Duration(deadline-t.now))
		}
		n, err := t.step(want-total, done[total:], left)
		total += n
		if err != nil || total >= want || left == 0 || t.waker != nil && t.waker.take() {
			return total, err
		}
	}
}

// step polls once, or, when only plain I/O is out, sleeps until want requests
// may have finished. At depth 1 that is one system call for start and end.
func (t *Tree) step(want int, done []*Request, timeout time.Duration) (int, error) {
	if t.polled != 0 || t.plainOut == 0 || timeout == 0 || want <= 0 {
		return t.poll(done)
	}
	n, err := 0, error(nil)
	if t.held != 0 {
		n, err = t.root.Poll(done)
	}
	if err == nil && n < want && t.polled == 0 {
		// Every request out has at least one completion to come, so want of
		// them cannot finish before want completions.
		if t.waker == nil {
			err = t.plain.EnterWait(uint32(min(want-n, t.plainOut)), timeout)
		} else {
			err = t.sleepPlain(timeout)
		}
		if err == nil {
			t.reapPlain()
			var more int
			more, err = t.root.Poll(done[n:])
			n += more
		}
	} else if err == nil && t.plain.Pending() != 0 {
		err = t.plain.Enter()
	}
	if err != nil {
		t.broken = err
	}
	return n, err
}

// pollPlain starts the pending plain I/O and looks by memory read alone for
// what has finished.
func (t *Tree) pollPlain() error {
	if t.plain.Pending() != 0 {
		if err := t.plain.Enter(); err != nil {
			t.broken = err
			return err
		}
	}
	t.reapPlain()
	return nil
}

// reapPlain puts every plain completion on the list of its leaf.
func (t *Tree) reapPlain() {
	for {
		ready := t.plain.Ready()
		if ready == 0 {
			if !t.plain.Overflowed() || t.plain.Flush() != nil || t.plain.Ready() == 0 {
				return
			}
			continue
		}
		t.Tick()
		for i := range ready {
			cqe := t.plain.CQE(i)
			if cqe.UserData == wakeData && t.wakerArmed {
				t.wakerFired(cqe)
				continue
			}
			t.plainOut--
			leaf, ok := t.leafOf(cqe)
			if !ok {
				t.broken = errRing
				continue
			}
			leaf.plainOut--
			if r := leaf.complete(cqe); r != nil {
				leaf.rec.Finish(r, t.now)
				leaf.finished.Push(r)
			}
		}
		t.plain.Advance(ready)
	}
}

func (t *Tree) leafOf(cqe *uring.CQE) (*diskQueue, bool) {
	i := cqe.UserData >> leafShift & (maxLeaves - 1)
	if i >= uint64(len(t.leaves)) {
		return nil, false
	}
	return t.leaves[i], true
}

// plainSQE returns an entry of the plain ring.
func (t *Tree) plainSQE() *uring.SQE {
	t.plainOut++
	sqe := t.plain.SQE()
	for sqe == nil {
		// More is pending than the kernel lets a ring have entries: those of
		// 128 deep members. Starting them early is better than a lost child.
		if err := t.plain.Enter(); err != nil {
			// The child is lost with the ring; Close will say so.
			t.broken = err
			return new(uring.SQE)
		}
		runtime.Gosched()
		sqe = t.plain.SQE()
	}
	return sqe
}
