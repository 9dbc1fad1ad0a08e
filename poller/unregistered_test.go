// SPDX-License-Identifier: Apache-2.0

//go:build linux

package poller_test

import (
	"bytes"
	"testing"

	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

// A queue that was not to register its memory does not, and reads what it wrote all
// the same.
func TestNoFixedBuffers(t *testing.T) {
	eachKind(t, func(t *testing.T, dev poller.Device) {
		r := devtest.Open(t, dev, poller.QueueConfig{NoFixedBuffers: true, MaxTransfer: 2 * kindChunk})
		if r.Queue.Limits().FixedBuffers {
			t.Error("the memory is registered")
		}
		buf := r.Buf(2 * kindChunk)
		for i := range buf {
			buf[i] = byte(i * 7)
		}
		want := bytes.Clone(buf)
		r.MustDo(&poller.Request{Op: poller.Write, Flags: poller.HiPri, Buf: buf})
		clear(buf)
		r.MustDo(&poller.Request{Op: poller.Read, Flags: poller.HiPri, Buf: buf})
		if !bytes.Equal(buf, want) {
			t.Error("what was read is not what was written")
		}
	})
}
