// SPDX-License-Identifier: Apache-2.0

package poller

// Fifo holds finished requests until there is room to return them. It grows to
// the most it ever held and does not allocate after that.
type Fifo struct {
	items []*Request
	head  int
	tree  *Tree
}

// NewFifo makes a Fifo for a queue of the tree, which then knows that something
// can be reaped without asking a device.
func (t *Tree) NewFifo() Fifo { return Fifo{tree: t} }

// Len returns how many requests are held.
func (f *Fifo) Len() int { return len(f.items) - f.head }

// Push adds r at the end.
func (f *Fifo) Push(r *Request) {
	f.items = append(f.items, r)
	f.tree.held++
}

// Pop moves requests from the front into done and returns how many.
func (f *Fifo) Pop(done []*Request) int {
	n := copy(done, f.items[f.head:])
	clear(f.items[f.head : f.head+n])
	if f.head += n; f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
	f.tree.held -= n
	return n
}
