// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"syscall"
	"testing"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
	"pollux/volume"
)

// names checks that the error of a request is about the request itself, and about
// the member that is to blame.
func names(t *testing.T, req *poller.Request, member int, cause error) {
	t.Helper()
	var typed *poller.Error
	if !errors.As(req.Err, &typed) {
		t.Fatalf("%v at %d: %T is no *poller.Error: %v", req.Op, req.Offset, req.Err, req.Err)
	}
	if typed.Op != req.Op || typed.Offset != req.Offset || typed.Member != member || typed.Path != "volume build" {
		t.Errorf("the error of %v at %d for member %d says: %+v", req.Op, req.Offset, member, typed)
	}
	if !errors.Is(req.Err, cause) {
		t.Errorf("%v at %d: %v", req.Op, req.Offset, req.Err)
	}
}

// What a broken volume refuses is told of itself, not of the request that broke
// it.
func TestBrokenNamesTheRequest(t *testing.T) {
	v := newMemoryVolume(t, 3)
	v.faults[1].SetRules(faultdev.Rule{Err: poller.ErrGone})
	r := devtest.Open(t, v, poller.QueueConfig{})
	lost := &poller.Request{Op: poller.Read, Offset: testChunk + 512, Buf: r.Buf(512)}
	r.Do(lost)
	names(t, lost, 1, poller.ErrGone)
	for _, req := range []*poller.Request{
		{Op: poller.Read, Offset: 2 * testChunk, Buf: r.Buf(512)},
		{Op: poller.Write, Offset: 5*testChunk + 1024, Buf: r.Buf(1024)},
		{Op: poller.Write, Offset: testChunk, Buf: r.Buf(2 * testChunk)},
		{Op: poller.Read, Offset: 512},
		{Op: poller.Flush, Offset: 4096},
	} {
		r.Do(req)
		names(t, req, 1, poller.ErrGone)
	}
}

// After a failed flush, too, and in a volume of volumes, where the member is that
// of the outer one.
func TestFailedFlushNamesTheRequest(t *testing.T) {
	bad := faultdev.New(faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}),
		faultdev.Rule{Ops: faultdev.Flushes, Times: 1, Err: syscall.EIO})
	mem := func() poller.Device { return faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}) }
	for member, v := range map[int]*volume.Volume{
		2: newVolume(t, testChunk, mem(), mem(), bad),
		0: newVolume(t, testChunk, newVolumeOf(t, mem(), faultdev.New(mem(), faultdev.Rule{Ops: faultdev.Flushes, Times: 1, Err: syscall.EIO})), mem()),
	} {
		r := devtest.Open(t, v, poller.QueueConfig{})
		flush := &poller.Request{Op: poller.Flush}
		r.Do(flush)
		names(t, flush, member, syscall.EIO)
		for _, req := range []*poller.Request{
			{Op: poller.Write, Flags: poller.FUA, Offset: testChunk, Buf: r.Buf(512)},
			{Op: poller.Write, Flags: poller.FUA, Offset: 3*testChunk - 512, Buf: r.Buf(1024)},
			{Op: poller.Flush, Offset: 8192},
		} {
			r.Do(req)
			names(t, req, member, syscall.EIO)
		}
	}
}

// newVolumeOf makes a volume that another will own.
func newVolumeOf(t *testing.T, members ...poller.Device) *volume.Volume {
	t.Helper()
	v, err := volume.New(members, volume.Geometry{Chunk: testChunk})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// foreign is a device by another maker, who says of it what they like.
type foreign struct {
	poller.Device
	limits poller.Limits
}

func (f foreign) Limits() poller.Limits { return f.limits }

// A member that claims to take nothing is refused, not divided by.
func TestForeignLimits(t *testing.T) {
	mem := func() poller.Device { return faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{}) }
	for name, change := range map[string]func(*poller.Limits){
		"unit 0":         func(l *poller.Limits) { l.Unit = 0 },
		"unit below 0":   func(l *poller.Limits) { l.Unit = -1 },
		"depth 0":        func(l *poller.Limits) { l.QueueDepth = 0 },
		"nothing at all": func(l *poller.Limits) { *l = poller.Limits{} },
	} {
		bad := foreign{Device: mem(), limits: mem().Limits()}
		change(&bad.limits)
		for _, members := range [][]poller.Device{{bad}, {mem(), bad}, {bad, mem(), mem()}} {
			if _, err := volume.New(members, volume.Geometry{Chunk: testChunk}); err == nil {
				t.Errorf("%s: taken as one of %d members", name, len(members))
			}
		}
	}
}
