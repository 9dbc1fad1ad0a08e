// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"pollux/internal/uring"
)

// errProbe is a polled read that failed.
var errProbe = errors.New("a polled read failed")

const probePatience = 5 * time.Second

// polledRead reads the first block of fd through an IOPOLL ring. An error that
// is not errProbe is of the host.
func polledRead(fd int, block int64) error {
	ring, err := uring.New(uring.Config{Entries: 1, IOPoll: true})
	if err != nil {
		return fmt.Errorf("ring for a polled read: %w", err)
	}
	mem, err := uring.NewMemory(int(block))
	if err != nil {
		ring.Close()
		return err
	}
	addr, _ := mem.Addr(mem.Bytes()[:block])
	*ring.SQE() = uring.SQE{Opcode: uring.OpRead, FD: int32(fd), Addr: uint64(addr), Len: uint32(block)}
	for start := time.Now(); ring.Ready() == 0; {
		if err := ring.Enter(); err != nil {
			ring.Close()
			mem.Close()
			return err
		}
		if ring.Ready() == 0 && time.Since(start) > probePatience {
			// The drive may still write: the ring and the memory are kept.
			return fmt.Errorf("%w: no completion within %v", errProbe, probePatience)
		}
	}
	res := ring.CQE(0).Res
	ring.Close()
	mem.Close()
	switch {
	case res < 0:
		return fmt.Errorf("%w: %w", errProbe, syscall.Errno(-res))
	case int64(res) != block:
		return fmt.Errorf("%w: %d bytes of %d", errProbe, res, block)
	}
	return nil
}
