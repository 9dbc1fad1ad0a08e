// SPDX-License-Identifier: Apache-2.0

package faultdev

import (
	"fmt"
	"sync"

	"pollux/poller"
)

// Device disturbs the I/O of another device. Its methods may be called by any
// goroutine.
type Device struct {
	dev       poller.Device
	name      string
	rules     rules
	recorders poller.Recorders

	mu     sync.Mutex
	closed bool
}

// New wraps dev, which the Device owns from then on and closes.
func New(dev poller.Device, list ...Rule) *Device {
	d := &Device{dev: dev, name: dev.Stats().Name}
	d.rules.name = d.name
	d.SetRules(list...)
	return d
}

// SetRules puts list in the place of all rules. Requests that are held or
// delayed already stay so.
func (d *Device) SetRules(list ...Rule) { d.rules.set(list) }

// Struck returns how many times a rule has struck.
func (d *Device) Struck() int {
	d.rules.mu.Lock()
	defer d.rules.mu.Unlock()
	return d.rules.struck
}

// Limits implements poller.Device.
func (d *Device) Limits() poller.Limits { return d.dev.Limits() }

// Stats implements poller.Device. The figures are those of the disturbed I/O;
// the wrapped device is the only member.
func (d *Device) Stats() poller.Stats {
	s := d.recorders.Sum(d.name)
	s.Members = []poller.Stats{d.dev.Stats()}
	return s
}

// Close implements poller.Device. It closes the wrapped device too.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%s: %w", d.name, poller.ErrClosed)
	}
	if n := d.recorders.Open(); n > 0 {
		return fmt.Errorf("%s: %d %w: close them first", d.name, n, poller.ErrQueuesOpen)
	}
	d.closed = true
	return d.dev.Close()
}

// Revive says whether the device works, as that of poller.Disk does: a rule that fails
// reads of the first block speaks against it.
func (d *Device) Revive() error {
	if err := d.rules.blocks(int(d.dev.Limits().BlockSize)); err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	if r, ok := d.dev.(interface{ Revive() error }); ok {
		return r.Revive()
	}
	return nil
}

// NewQueue implements poller.Device.
func (d *Device) NewQueue(cfg poller.QueueConfig) (poller.Queue, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("%s: %w", d.name, poller.ErrClosed)
	}
	q, err := poller.MakeQueue(cfg, d.newQueue)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return q, nil
}

func (d *Device) newQueue(cfg poller.QueueConfig) (poller.Node, error) {
	inner, err := d.dev.NewQueue(cfg)
	if err != nil {
		return nil, err
	}
	depth := inner.Limits().QueueDepth
	q := &queue{
		dev:      d,
		tree:     cfg.Tree,
		layer:    cfg.Tree.NewLayer(),
		inner:    inner,
		block:    int(d.dev.Limits().BlockSize),
		finished: cfg.Tree.NewFifo(),
		slots:    make([]slot, depth),
		free:     make([]uint32, depth),
		held:     make([]*slot, 0, depth),
		ready:    make([]*poller.Request, 0, depth),
		got:      make([]*poller.Request, depth),
	}
	for i := range q.slots {
		q.slots[i].child.Tag = uint64(i)
		q.layer.Adopt(&q.slots[i].child)
		q.free[i] = uint32(depth - 1 - i)
	}
	q.rec.Granted(depth, 0)
	d.recorders.Add(&q.rec)
	return q, nil
}
