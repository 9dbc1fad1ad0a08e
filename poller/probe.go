// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"pollux/internal/blockdev"
	"pollux/internal/uring"
)

// errProbe is a read that failed.
var errProbe = errors.New("a read of its first block failed")

const probePatience = 5 * time.Second

// probeRead is a read of a drive's first block, through a ring of its own.
type probeRead struct {
	polled bool
	ring   *uring.Ring
	mem    *uring.Memory
	block  int64
}

// startRead starts a read, polled or plain. The error is of the host, not of the drive.
func startRead(dev *blockdev.Device, polled bool) (_ *probeRead, err error) {
	p := &probeRead{polled: polled, block: dev.Info().BlockSize}
	if p.ring, err = uring.New(uring.Config{Entries: 1, IOPoll: polled}); err != nil {
		return nil, fmt.Errorf("ring for a first read: %w", err)
	}
	if p.mem, err = uring.NewMemory(int(p.block)); err != nil {
		p.ring.Close()
		return nil, err
	}
	addr, _ := p.mem.Addr(p.mem.Bytes()[:p.block])
	*p.ring.SQE() = uring.SQE{Opcode: uring.OpRead, FD: int32(dev.FD()), Addr: uint64(addr), Len: uint32(p.block)}
	if err := p.ring.Enter(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// errHung says that a drive does not answer.
var errHung = errors.New("no completion")

// wait waits for the read to end. With errHung it is out still, and may be waited for
// again: the drive may still write, so its ring and memory stay. After any other result
// they are given back.
func (p *probeRead) wait(patience time.Duration) error {
	for start := time.Now(); p.ring.Ready() == 0; {
		left := patience - time.Since(start)
		if left <= 0 {
			return fmt.Errorf("%w: %w within %v", errProbe, errHung, patience)
		}
		var err error
		if p.polled {
			err = p.ring.Enter()
		} else {
			err = p.ring.EnterWait(1, left)
		}
		if err != nil {
			p.close()
			return fmt.Errorf("%w: %w", errProbe, err)
		}
	}
	res := p.ring.CQE(0).Res
	p.close()
	switch {
	case res < 0:
		return fmt.Errorf("%w: %w", errProbe, syscall.Errno(-res))
	case int64(res) != p.block:
		return fmt.Errorf("%w: %d bytes of %d", errProbe, res, p.block)
	}
	return nil
}

func (p *probeRead) close() {
	p.ring.Close()
	p.mem.Close()
}
