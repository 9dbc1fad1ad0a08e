// SPDX-License-Identifier: Apache-2.0

package multipath_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
	"pollux/volume"
)

// The first flush after a path was lost that had taken writes says so, once.
func TestFlushAfterLoss(t *testing.T) {
	const lost = 0
	write, read, flush := poller.Write, poller.Read, poller.Flush
	for _, c := range []struct {
		name   string
		before []poller.Op // over the path that will be lost
		told   bool
	}{
		{"nothing", nil, false},
		{"a read", []poller.Op{read}, false},
		{"a write", []poller.Op{write}, true},
		{"a write that was flushed", []poller.Op{write, flush}, false},
		{"a write, a flush, a read", []poller.Op{write, flush, read}, false},
		{"a write after a flush", []poller.Op{write, flush, write}, true},
		{"a write after two flushes", []poller.Op{flush, flush, write, read}, true},
	} {
		p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
		r := devtest.Open(t, p, poller.QueueConfig{})
		for _, op := range c.before {
			r.MustDo(request(r, op, 1))
		}
		p.vanish(lost)
		r.MustDo(request(r, read, 2)) // finds out
		for try := range 3 {
			f := request(r, flush, 0)
			r.Do(f)
			switch told := try == 0 && c.told; {
			case told && (!errors.Is(f.Err, poller.ErrPathLost) || !strings.Contains(f.Err.Error(), "path0") || errors.Is(f.Err, poller.ErrGone)):
				t.Errorf("%s: flush %d: %v, want %v of path0", c.name, try, f.Err, poller.ErrPathLost)
			case !told && f.Err != nil:
				t.Errorf("%s: flush %d: %v", c.name, try, f.Err)
			}
		}
		if n := p.faults[1].Stats().IO[flush][poller.Plain].Latency.Count(); n != 3 {
			t.Errorf("%s: the other path flushed %d times, want 3", c.name, n)
		}
	}
}

// The flush that is itself lost with the path, and sent again, tells as well.
func TestFlushLostWithThePath(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
	r := devtest.Open(t, p, poller.QueueConfig{})
	r.MustDo(request(r, poller.Write, 1))
	p.vanish(0)
	f := request(r, poller.Flush, 0)
	if r.Do(f); !errors.Is(f.Err, poller.ErrPathLost) {
		t.Error(f.Err)
	}
	r.MustDo(request(r, poller.Flush, 0))
}

// A write that came back when a flush was out already is not covered by it.
func TestFlushDoesNotCoverWhatCameLater(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
	gate := new(faultdev.Gate)
	p.faults[0].SetRules(faultdev.Rule{Ops: faultdev.Flushes, Hold: gate})
	r := devtest.Open(t, p, poller.QueueConfig{})
	flush := request(r, poller.Flush, 0)
	r.Submit(flush, request(r, poller.Write, 1))
	done := make([]*poller.Request, 2)
	for r.Out() > 1 {
		n, err := r.Queue.Wait(1, done, devtest.Patience)
		if err != nil {
			t.Fatal(err)
		}
		r.Take(done[:n])
	}
	gate.Release()
	if r.Drain(); flush.Err != nil {
		t.Fatal(flush.Err)
	}
	p.vanish(0)
	r.MustDo(request(r, poller.Read, 2))
	if r.Do(flush); !errors.Is(flush.Err, poller.ErrPathLost) {
		t.Errorf("the write after the flush is not told of: %v", flush.Err)
	}
}

// Of the flushes of two queues exactly one tells.
func TestFlushTellsOneQueue(t *testing.T) {
	p := newPaths(t, 2, true, multipath.Options{Policy: multipath.Failover})
	a, b := devtest.Open(t, p, poller.QueueConfig{Queues: 2}), devtest.Open(t, p, poller.QueueConfig{Queues: 2})
	a.MustDo(request(a, poller.Write, 1))
	p.vanish(0)
	b.MustDo(request(b, poller.Read, 1))
	told := 0
	for _, r := range []*devtest.Rig{b, a, b, a} {
		f := request(r, poller.Flush, 0)
		if r.Do(f); f.Err != nil {
			told++
			if !errors.Is(f.Err, poller.ErrPathLost) {
				t.Error(f.Err)
			}
		}
	}
	if told != 1 {
		t.Errorf("%d flushes told", told)
	}
}

// twoMembers makes a volume over two multipaths of two paths.
func twoMembers(t *testing.T, opts multipath.Options) (*volume.Volume, [2]*paths) {
	t.Helper()
	members := [2]*paths{newPaths(t, 2, true, opts), newPaths(t, 2, true, opts)}
	v, err := volume.New([]poller.Device{members[0].Multipath, members[1].Multipath}, volume.Geometry{Chunk: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	devtest.Close(t, v)
	return v, members
}

// In a volume the flush that tells of a lost path fails alone; the volume goes on, until a
// member has no path left.
func TestVolumeOverPaths(t *testing.T) {
	v, members := twoMembers(t, multipath.Options{Policy: multipath.Failover, NoPathTimeout: 20 * time.Millisecond})
	r := devtest.Open(t, v, poller.QueueConfig{})
	all := &poller.Request{Op: poller.Write, Flags: poller.HiPri, Buf: r.Buf(64 << 10)}
	fua := request(r, poller.Write, 5)
	fua.Flags |= poller.FUA
	flush := &poller.Request{Op: poller.Flush}
	r.MustDo(all)
	members[1].vanish(0)
	r.MustDo(all)
	var typed *poller.Error
	if r.Do(flush); !errors.Is(flush.Err, poller.ErrPathLost) || !errors.As(flush.Err, &typed) || typed.Member != 1 {
		t.Errorf("the first flush: %v", flush.Err)
	}
	r.MustDo(flush, fua, all)

	members[0].faults[0].SetRules(faultdev.Rule{Ops: faultdev.Flushes, Times: 1, Err: syscall.ENODATA})
	if r.Do(flush); !errors.Is(flush.Err, syscall.ENODATA) {
		t.Errorf("a flush that fails: %v", flush.Err)
	}
	if r.Do(flush); !errors.Is(flush.Err, syscall.ENODATA) {
		t.Errorf("a flush that failed does not stick: %v", flush.Err)
	}
	r.MustDo(all)

	members[1].vanish(1)
	for range 2 {
		if r.Do(all); !errors.Is(all.Err, poller.ErrGone) || !errors.As(all.Err, &typed) || typed.Member != 1 {
			t.Errorf("a member without a path: %v", all.Err)
		}
	}
}

// A write that goes back to its owner because a path failed does not break the volume.
func TestVolumeAfterWriteNotRetried(t *testing.T) {
	m := newPaths(t, 2, false, multipath.Options{Policy: multipath.Failover})
	v, err := volume.New([]poller.Device{m.Multipath}, volume.Geometry{Chunk: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	devtest.Close(t, v)
	r := devtest.Open(t, v, poller.QueueConfig{})
	m.vanish(0)
	write := request(r, poller.Write, 1)
	if r.Do(write); !errors.Is(write.Err, poller.ErrNotRetried) {
		t.Errorf("%v, want %v", write.Err, poller.ErrNotRetried)
	}
	r.MustDo(write)
}
