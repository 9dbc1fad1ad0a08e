// SPDX-License-Identifier: Apache-2.0

package poller

import "slices"

// Fifo holds finished requests until there is room to return them. It allocates when
// it holds more than it was made for, or ever held.
type Fifo struct {
	items []*Request
	head  int
	tree  *Tree
}

// NewFifo makes a Fifo for a queue of the tree, which then knows that something
// can be reaped without asking a device.
func (t *Tree) NewFifo() Fifo { return Fifo{tree: t} }

// Reserve makes room for n requests.
func (f *Fifo) Reserve(n int) { f.items = slices.Grow(f.items, n) }

// Len returns how many requests are held.
func (f *Fifo) Len() int { return len(f.items) - f.head }

// Push adds r at the end.
func (f *Fifo) Push(r *Request) {
	if len(f.items) == cap(f.items) && f.head > 0 {
		// One that is never empty would grow for ever.
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
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
