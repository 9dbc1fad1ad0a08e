// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"

	"pollux/poller"
)

// call is one ReadAt, WriteAt or Flush, on its caller's stack. It does all of its I/O
// on one lane, in waves: it takes as many ops as are free, at least one, has them
// done, gives them back, and takes others. It never holds ops while it waits for
// more; so however many calls there are, those that hold ops come to their end, and
// the others get them.
type call struct {
	h        *Handle
	op       poller.Op
	deadline int64 // of internal/clock, 0 for none
	// lane is where the call was admitted; nil before. Close waits for it then.
	lane *lane
	// span, of a write, keeps others from its blocks, where it needs that.
	span *span
}

// edges are the blocks at the ends of a write that does not cover them.
type edges struct{ first, last []byte }

// transfer reads or writes the blocks that p, at offset off, lies in. e, for a write
// that does not cover the first and the last of them, is what these hold. n is how
// many bytes of p came through before the first error.
func (c *call) transfer(p []byte, off int64, e *edges) (n int, err error) {
	mask := c.h.blockMask
	from, to := off&^mask, (off+int64(len(p))+mask)&^mask
	at := from
	for at < to && err == nil {
		var head *op
		if head, err = c.take(at, to); err != nil {
			break
		}
		if c.op == poller.Write {
			for o := head; o != nil; o = o.next {
				fill(o.req.Buf, o.req.Offset, p, off, e, from, to)
			}
		}
		if err = c.run(head); err == errBlocked {
			if err = c.lock(at, to, false); err == nil {
				continue
			}
		}
		if err != nil {
			break
		}
		for o := head; o != nil; o = o.next {
			if err = o.req.Err; err != nil {
				break
			}
			if c.op == poller.Read {
				if d := o.req.Offset - off; d >= 0 {
					copy(p[d:], o.req.Buf)
				} else {
					copy(p, o.req.Buf[-d:])
				}
			}
			at += int64(len(o.req.Buf))
		}
		c.give(head)
	}
	return int(min(max(at-off, 0), int64(len(p)))), err
}

// fill makes buf, a range of the device at offset at, what is to be written there:
// bytes of p, which begins at off, and around them those of the edges.
func fill(buf []byte, at int64, p []byte, off int64, e *edges, from, to int64) {
	if e != nil {
		if at == from {
			copy(buf, e.first)
		}
		if end := at + int64(len(buf)); end == to {
			copy(buf[len(buf)-len(e.last):], e.last)
		}
	}
	if d := at - off; d >= 0 {
		copy(buf, p[d:])
	} else {
		copy(buf[-d:], p)
	}
}

// lock keeps every other write from the blocks from up to to, when those that are on
// their way are back; across says that the call is to write within them. leave undoes
// it.
func (c *call) lock(from, to int64, across bool) error {
	h := c.h
	if c.span = h.blocks.lock(from, to, across, c.deadline); c.span == nil {
		return h.errorOf(c.op, from, fmt.Errorf("waiting for another write of the block: %w", lateError(h.opts.Timeout)))
	}
	if !across && !h.blocks.hasOrphan(from, to) {
		return nil
	}
	for i := range h.made.Load() {
		if err := h.lanes[i].Load().awaitWrites(from, to, !across, c.lane != nil, c.deadline); err != nil {
			return h.errorOf(c.op, from, fmt.Errorf("waiting for an earlier write of the block: %w", err))
		}
	}
	return nil
}

// writeAcross writes p at off, which are not whole blocks.
func (c *call) writeAcross(p []byte, off int64) (n int, err error) {
	block := c.h.blockMask + 1
	first := off &^ c.h.blockMask
	end := off + int64(len(p))
	last := (end - 1) &^ c.h.blockMask
	if err := c.lock(first, last+block, true); err != nil {
		return 0, err
	}
	both := make([]byte, 2*block)
	e := &edges{}
	read := func(b []byte, at int64) error {
		c.op = poller.Read
		_, err := c.transfer(b, at, nil)
		c.op = poller.Write
		return err
	}
	if off != first || first == last {
		e.first = both[:block]
		if err := read(e.first, first); err != nil {
			return 0, fmt.Errorf("reading the block around the start of a write: %w", err)
		}
	}
	if end&c.h.blockMask != 0 && last != first {
		e.last = both[block:]
		if err := read(e.last, last); err != nil {
			return 0, fmt.Errorf("reading the block around the end of a write: %w", err)
		}
	}
	return c.transfer(p, off, e)
}

// flush does a Flush.
func (c *call) flush() error {
	head, err := c.take(0, 0)
	if err != nil {
		return err
	}
	if err := c.run(head); err != nil {
		return err
	}
	err = head.req.Err
	c.give(head)
	return err
}

// take takes ops for the range of the device from at up to to, or for its beginning,
// and sets their requests. It waits for one, if it must. Without error, run comes
// next.
func (c *call) take(at, to int64) (*op, error) {
	begun := c.lane != nil
	small := to-at <= c.h.small
	if !begun {
		if err := c.admit(small); err != nil {
			return nil, c.h.errorOf(c.op, at, err)
		}
	}
	l := c.lane
	want := 1
	if !small {
		want = int((to-1)/l.big.size - at/l.big.size + 1)
	}
	head, err := l.take(small, begun, want, c.deadline)
	if err != nil {
		return nil, c.h.errorOf(c.op, at, err)
	}
	for o := head; o != nil; o = o.next {
		end := to
		if !small {
			// Pieces end where the chunks of a volume do that are no shorter.
			end = min(to, (at/l.big.size+1)*l.big.size)
		}
		o.req.Op, o.req.Flags, o.req.Offset, o.req.Buf = c.op, c.h.flags, at, o.mem[:end-at]
		o.from, o.to, o.across = at, end, c.op == poller.Write && c.span != nil && c.span.across
		at = end
	}
	if c.op == poller.Flush {
		head.req.Flags, head.req.Buf = 0, nil // an IOPOLL ring takes none
	}
	return head, nil
}

// admit picks a lane, small as in pick, and makes Close wait for the call.
func (c *call) admit(small bool) error {
	l, err := c.h.pick(small)
	if err != nil {
		return err
	}
	if !l.enter() {
		return errHandleClosed
	}
	c.lane = l
	return nil
}

// run has the wave done that begins with head. On error the ops are not the call's
// any more. It is errBlocked if the call has to lock before.
func (c *call) run(head *op) error {
	offset := head.req.Offset
	err := c.lane.run(head, c.op != poller.Write || c.span != nil, c.deadline)
	if err == nil || err == errBlocked {
		return err
	}
	return c.h.errorOf(c.op, offset, err)
}

// give gives the ops of a wave back.
func (c *call) give(head *op) { c.lane.give(head) }

// leave ends the call.
func (c *call) leave() {
	if c.lane != nil {
		c.lane.exit()
	}
	if c.span != nil {
		c.h.blocks.unlock(c.span)
	}
}
