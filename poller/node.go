// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"errors"
	"time"
)

// Node is a queue as the maker of a Device writes it: its part in a Tree. The
// tree makes the Queue that callers use out of the node at the root, and a
// stacked device drives the nodes below it. A node is never used by two
// goroutines at once; it neither sleeps nor drains, as the root does that for the
// whole tree, and it reads the clock, by Tree.Tick, only where it has found I/O
// finished that no node below it found.
//
// Its Poll collects what has finished, asking those below that have I/O out. It
// does not touch plain I/O: the tree has put what finished of that on the leaves'
// lists. Its Close gives everything back that no I/O in flight still needs, after
// it has called Abandon on every request that it holds itself. Its Wait is that
// of Inner.
type Node interface {
	Queue
	// Outstanding returns how many accepted requests have not come back.
	Outstanding() int
}

// MakeQueue is what NewQueue of every Device comes down to. It completes cfg, has
// build make the node, and with it NewQueue of the members for the config that
// build is given, and returns the node or, at the root of a tree, the Queue of the
// whole tree.
func MakeQueue(cfg QueueConfig, build func(QueueConfig) (Node, error)) (Queue, error) {
	cfg, root, err := joinTree(cfg)
	if err != nil {
		return nil, err
	}
	node, err := build(cfg)
	if err != nil {
		if root {
			_ = cfg.Tree.close(0)
		}
		return nil, err
	}
	if !root {
		return node, nil
	}
	return cfg.Tree.start(node)
}

// Inner is the part that all nodes have, by embedding.
type Inner struct{}

var errInner = errors.New("a queue inside a stack cannot wait: the root waits for all")

// Wait implements Queue by refusing.
func (Inner) Wait(int, []*Request, time.Duration) (int, error) { return 0, errInner }

// Abandon sets the results of a request that Close gives up on.
func Abandon(r *Request, err error) {
	r.N, r.Err, r.Offset = 0, err, r.origin
}

// Layer tells a stacked queue's own requests, which it makes to split one from
// above, from those that it hands down as they came.
type Layer struct{ id uint16 }

// NewLayer returns a layer that no other queue of the tree has.
func (t *Tree) NewLayer() Layer {
	t.layers++
	return Layer{t.layers}
}

// Adopt makes r one of the layer's own, for good.
func (l Layer) Adopt(r *Request) { r.layer = l.id }

// Owns reports whether r was adopted by the layer.
func (l Layer) Owns(r *Request) bool { return r.layer == l.id }

// Begin makes a layer's own request ready to be handed down for one that came
// from above, from which it takes the time at which it began.
func (l Layer) Begin(r, from *Request) {
	r.Err = nil
	r.start, r.origin = from.start, r.Offset
}
