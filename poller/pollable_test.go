// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// Case 21 without a drive: a file cannot be polled. Open says which, why, and
// what would help; plain only when asked.
func TestNotPollable(t *testing.T) {
	path := devtest.TempFile(t, kindSize)
	_, err := poller.Open(path, poller.OpenOptions{})
	if !errors.Is(err, poller.ErrNotPollable) {
		t.Fatalf("Open: %v", err)
	}
	for _, want := range []string{path, "no poll queues", "file"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is more than a line", err)
	}
}

func TestOpenMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	if _, err := poller.Open(path, poller.OpenOptions{Write: true}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("Open: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("Open created the file")
	}
}

func TestOpenTooSmall(t *testing.T) {
	path := devtest.TempFile(t, 100)
	d, err := poller.Open(path, poller.OpenOptions{Polling: poller.PollNever})
	if err == nil {
		d.Close()
	}
	if !errors.Is(err, poller.ErrRange) {
		t.Errorf("a file of 100 bytes: %v", err)
	}
}

// What was allowed to be plain is served, says so in Limits at every level, and
// counts each HiPri request once.
func TestPollIfPossible(t *testing.T) {
	for name, mk := range map[string]func(testing.TB) poller.Device{
		"disk": diskKind, "volume": striped(memoryKind, diskKind), "volume of volumes": striped(striped(diskKind)),
	} {
		t.Run(name, func(t *testing.T) {
			dev := mk(t)
			devtest.Close(t, dev)
			r := devtest.Open(t, dev, poller.QueueConfig{MaxTransfer: kindChunk})
			for _, l := range []poller.Limits{dev.Limits(), r.Queue.Limits()} {
				if !errors.Is(l.NotPollable, poller.ErrNotPollable) {
					t.Errorf("NotPollable: %v", l.NotPollable)
				}
			}
			at := int64(0)
			if name == "volume" {
				at = kindChunk // on the disk
			}
			buf := r.Buf(kindChunk)
			for range 5 {
				req := &poller.Request{Op: poller.Read, Flags: poller.HiPri, Offset: at, Buf: buf}
				r.MustDo(req, &poller.Request{Op: poller.Read, Offset: at, Buf: buf}, &poller.Request{Op: poller.Flush, Flags: poller.HiPri})
				if req.Polled {
					t.Fatal("a read of a file claims to have been polled")
				}
			}
			s := dev.Stats()
			for len(s.Members) > 0 {
				s = s.Members[len(s.Members)-1]
			}
			if n := s.Fallbacks[poller.FallbackNotPollable]; n != 5 {
				t.Errorf("%d fallbacks of 5 HiPri reads", n)
			}
			if n := s.Fallbacks[poller.FallbackFlush]; n != 5 {
				t.Errorf("%d fallbacks of 5 HiPri flushes", n)
			}
			if n := s.IO[poller.Read][poller.Plain].Latency.Count(); n != 10 {
				t.Errorf("%d plain reads of 10", n)
			}
			if n := s.IO[poller.Read][poller.Polled].Latency.Count(); n != 0 {
				t.Errorf("%d polled reads on a file", n)
			}
		})
	}
}

// Asked never to poll, a disk is plain and says that it was opened so.
func TestPollNever(t *testing.T) {
	d := devtest.OpenDiskWith(t, devtest.TempFile(t, kindSize), poller.OpenOptions{Polling: poller.PollNever})
	devtest.Close(t, d)
	if err := d.Limits().NotPollable; !errors.Is(err, poller.ErrNotPollable) || !strings.Contains(err.Error(), "opened without polling") {
		t.Errorf("NotPollable: %v", err)
	}
}
