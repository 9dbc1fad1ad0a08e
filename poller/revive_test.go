// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pollux/internal/blockdev"
)

// reopening makes the disk of a leaf find size bytes of c when it looks for its drive, in
// files of their own, and returns how often it did.
func (l *leaf) reopening(c byte, size int) (opened *int) {
	opened = new(int)
	l.d.opts.Reopen = func() (*blockdev.Device, error) {
		*opened++
		path := filepath.Join(l.t.TempDir(), "again")
		if err := os.WriteFile(path, []byte(strings.Repeat(string(c), size)), 0o600); err != nil {
			return nil, err
		}
		return blockdev.Open(path, blockdev.Mode{Write: true})
	}
	return opened
}

func (l *leaf) vanish() { l.d.drive.Load().gone.Store(true) }

// A drive that is there is asked by a read, and stays.
func TestReviveStill(t *testing.T) {
	l := newLeaf(t, QueueConfig{})
	opened := l.reopening('x', 64*leafBlock)
	for range 3 {
		if err := l.d.Revive(); err != nil {
			t.Fatal(err)
		}
	}
	if *opened != 0 {
		t.Errorf("it was opened again %d times", *opened)
	}
}

// A drive that is gone comes back only by being opened again, as one that serves the same
// queues; these go on with it, and the old descriptor is closed.
func TestReviveAgain(t *testing.T) {
	l := newLeaf(t, QueueConfig{})
	l.vanish()
	if err := l.d.Revive(); !errors.Is(err, ErrGone) {
		t.Fatalf("nobody can open it again: %v", err)
	}
	l.d.opts.Reopen = func() (*blockdev.Device, error) { return nil, os.ErrNotExist }
	if err := l.d.Revive(); !errors.Is(err, ErrGone) || !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("it is not there: %v", err)
	}
	l.reopening('x', 16*leafBlock)
	if err := l.d.Revive(); !errors.Is(err, ErrRange) || errors.Is(err, ErrGone) {
		t.Fatalf("it is too small: %v", err)
	}
	old := l.d.drive.Load().dev
	l.reopening('x', 64*leafBlock)
	for round := range 2 {
		if round > 0 {
			l.vanish()
		}
		if err := l.d.Revive(); err != nil {
			t.Fatal(err)
		}
		if path := l.d.Info().Path; !strings.HasSuffix(path, "again") || l.d.Stats().Name != path {
			t.Errorf("it is %s, and its statistics are of %s", path, l.d.Stats().Name)
		}
		r := l.request(Read, HiPri, 2)
		r.Buf[0], r.Offset = 0, leafBlock
		if n, err := l.queue.Submit([]*Request{r}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if l.wait(r); r.Err != nil || r.Buf[0] != 'x' {
			t.Errorf("read %q, %v", r.Buf[0], r.Err)
		}
	}
	if old.FD() != -1 {
		t.Error("the old descriptor is open")
	}
}

// What the old drive left unanswered was lost with it, although the new one is there.
func TestReviveLate(t *testing.T) {
	l := newLeaf(t, QueueConfig{})
	late := l.request(Read, 0, 1)
	cqe := l.completions(late, 1)[0]
	cqe.Res = -int32(syscall.EIO)
	l.vanish()
	l.reopening('x', 64*leafBlock)
	if err := l.d.Revive(); err != nil {
		t.Fatal(err)
	}
	next := l.request(Read, 0, 1)
	next.Buf = l.q.tree.arena.Bytes()[leafBlock:][:leafBlock]
	if n, err := l.queue.Submit([]*Request{next}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	l.wait(late)
	if l.wait(next); !errors.Is(late.Err, ErrGone) || next.Err != nil || next.Buf[0] != 'x' {
		t.Errorf("of the old drive: %v; of the new one: %q, %v", late.Err, next.Buf[0], next.Err)
	}
	// Its slot serves the new drive, whose errors are its own.
	if l.completions(late, 1)[0].Res = -int32(syscall.EIO); true {
		if l.wait(late); errors.Is(late.Err, ErrGone) || !errors.Is(late.Err, syscall.EIO) {
			t.Errorf("an error of the new drive: %v", late.Err)
		}
	}
}

// A closed disk does not take a drive.
func TestReviveClosed(t *testing.T) {
	l := newLeaf(t, QueueConfig{})
	if err := l.queue.Close(); err != nil {
		t.Fatal(err)
	}
	l.vanish()
	l.reopening('x', 64*leafBlock)
	before := l.d.drive.Load()
	l.d.closed = true
	if err := l.d.Revive(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if l.d.closed = false; l.d.drive.Load() != before {
		t.Error("it has another drive")
	}
}
