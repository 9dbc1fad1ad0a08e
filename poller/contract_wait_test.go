// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

func TestWaitClipsToOutstanding(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{Depth: 8, MaxTransfer: kindChunk})
		done := make([]*poller.Request, 8)
		for _, timeout := range []time.Duration{0, time.Hour, -1} {
			// With nothing out there is nothing to wait for.
			if n, err := r.Queue.Wait(3, done, timeout); n != 0 || err != nil {
				t.Fatalf("Wait of an idle queue: %d, %v", n, err)
			}
		}
		buf := r.Buf(kindChunk)
		for _, timeout := range []time.Duration{time.Hour, -1} {
			for _, flags := range []poller.Flags{0, poller.HiPri} {
				for range 3 {
					r.Submit(&poller.Request{Op: poller.Read, Flags: flags, Buf: buf})
				}
				n, err := r.Queue.Wait(100, done, timeout)
				if n != 3 || err != nil {
					t.Fatalf("Wait(100, timeout %v) with 3 out: %d, %v", timeout, n, err)
				}
				r.Take(done[:n])
			}
		}
		// And to the room in done.
		for range 3 {
			r.Submit(&poller.Request{Op: poller.Read, Buf: buf})
		}
		n, err := r.Queue.Wait(3, done[:2], -1)
		if n != 2 || err != nil {
			t.Fatalf("Wait(3) with room for 2: %d, %v", n, err)
		}
		r.Take(done[:n])
		r.Drain()
	})
}

// A Wait for nothing, or without time, is a Poll: it starts and it reaps.
func TestWaitZeroIsPoll(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{MaxTransfer: kindChunk})
		buf, done := r.Buf(kindChunk), make([]*poller.Request, 4)
		for name, wait := range map[string]func() (int, error){
			"Wait(1, 0)":    func() (int, error) { return r.Queue.Wait(1, done, 0) },
			"Wait(0, 0)":    func() (int, error) { return r.Queue.Wait(0, done, 0) },
			"Wait(0, hour)": func() (int, error) { return r.Queue.Wait(0, done, time.Hour) },
			"Wait(0, -1)":   func() (int, error) { return r.Queue.Wait(0, done, -1) },
			"Wait(-5, -1)":  func() (int, error) { return r.Queue.Wait(-5, done, -1) },
		} {
			for _, flags := range []poller.Flags{0, poller.HiPri} {
				r.Submit(&poller.Request{Op: poller.Read, Flags: flags, Buf: buf})
				for start := time.Now(); r.Out() > 0; {
					n, err := wait()
					if err != nil {
						t.Fatal(err)
					}
					r.Take(done[:n])
					if time.Since(start) > 2*time.Second {
						t.Fatalf("%s, called for 2 s, did not bring back a read that Poll would have", name)
					}
				}
			}
		}
	})
}

// Kinds in which something can be held back for ever.
var heldKinds = []struct {
	name string
	make func(t testing.TB, gate *faultdev.Gate) poller.Device
}{
	{"fault over memory", func(t testing.TB, gate *faultdev.Gate) poller.Device { return heldIn(memoryKind(t), gate) }},
	{"fault over disk", func(t testing.TB, gate *faultdev.Gate) poller.Device { return heldIn(diskKind(t), gate) }},
	{"volume", func(t testing.TB, gate *faultdev.Gate) poller.Device {
		return striped(diskKind, func(t testing.TB) poller.Device { return heldIn(memoryKind(t), gate) })(t)
	}},
	{"volume of volumes", func(t testing.TB, gate *faultdev.Gate) poller.Device {
		return striped(diskKind, striped(func(t testing.TB) poller.Device { return heldIn(diskKind(t), gate) }, memoryKind))(t)
	}},
}

// heldIn holds what touches the first chunk of dev.
func heldIn(dev poller.Device, gate *faultdev.Gate) poller.Device {
	return faultdev.New(dev, faultdev.Rule{To: kindChunk, Hold: gate})
}

// held returns a request that the gate of a heldKind stops, and one that passes.
func held(r *devtest.Rig, name string) (stopped, free *poller.Request) {
	at := int64(0)
	if name == "volume" || name == "volume of volumes" {
		at = kindChunk // the first chunk of member 1
	}
	return &poller.Request{Op: poller.Read, Offset: at, Buf: r.Buf(kindChunk)},
		&poller.Request{Op: poller.Read, Offset: 8 * kindChunk, Buf: r.Buf(kindChunk)}
}

// Expiry is no error, brings what there is, and does not come early.
func TestWaitExpires(t *testing.T) {
	for _, kind := range heldKinds {
		t.Run(kind.name, func(t *testing.T) {
			gate := new(faultdev.Gate)
			dev := kind.make(t, gate)
			devtest.Close(t, dev)
			r := devtest.Open(t, dev, poller.QueueConfig{MaxTransfer: kindChunk})
			t.Cleanup(gate.Release)
			stopped, free := held(r, kind.name)
			done := make([]*poller.Request, 4)
			r.Submit(stopped, free)
			n, err := r.Queue.Wait(1, done, devtest.Patience)
			if n != 1 || err != nil || done[0] != free {
				t.Fatalf("Wait(1): %d, %v", n, err)
			}
			r.Take(done[:n])

			const timeout = 20 * time.Millisecond
			nothing := &poller.Request{Op: poller.Read} // finished from the start
			r.Submit(nothing)
			start := time.Now()
			n, err = r.Queue.Wait(2, done, timeout)
			if took := time.Since(start); n != 1 || err != nil || done[0] != nothing || took < timeout {
				t.Fatalf("Wait(2, %v) with one that cannot finish: %d, %v after %v", timeout, n, err, took)
			}
			r.Take(done[:n])
			if n, err := r.Queue.Wait(1, done, 0); n != 0 || err != nil {
				t.Fatalf("Wait(1, 0): %d, %v", n, err)
			}
			gate.Release()
			n, err = r.Queue.Wait(1, done, -1)
			if n != 1 || err != nil || stopped.Err != nil {
				t.Fatalf("after the release: %d, %v, %v", n, err, stopped.Err)
			}
			r.Take(done[:n])
		})
	}
}
