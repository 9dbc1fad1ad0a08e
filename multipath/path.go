// SPDX-License-Identifier: Apache-2.0

package multipath

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"pollux/poller"
)

// path is one of the ways to the drive, as all queues see it.
type path struct {
	dev  poller.Device
	name string
	// final says that once the path is gone it does nothing more.
	final bool

	// gone says that the device of the path has vanished, not just failed; deaths counts
	// how often it has.
	gone   atomic.Bool
	deaths atomic.Uint64
	// asks counts how often it was asked whether it works, works is the last of these
	// that it did.
	asks, works atomic.Uint64
	// wrote is how many flushes there were when a write last came back from the path,
	// flushed that of the last flush which covered it: see flush.go.
	wrote, flushed  atomic.Int64
	errors, retries atomic.Uint64

	// Under the mutex of the Multipath:
	failure error        // why it is not live
	asking  bool         // a goroutine asks it
	changes uint64       // of live
	asked   poller.Stats // what it did only to be asked
}

// fail takes note that a path has failed a request, and has it asked whether it works.
// Until it has answered it is used no more, unless it is the last.
func (m *Multipath) fail(i int, err error) {
	p := &m.paths[i]
	p.errors.Add(1)
	gone := errors.Is(err, poller.ErrGone)
	if gone && p.gone.Load() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone {
		m.died(i)
	}
	if live := pathSet(m.live.Load()); gone || live&^(1<<i) != 0 {
		m.retire(i, err)
	}
	if !p.asking && !m.closed {
		p.asking = true
		m.tasks.Add(1)
		go m.ask(i)
	}
}

// died notes that a path's device has vanished. m.mu is held.
func (m *Multipath) died(i int) {
	if p := &m.paths[i]; !p.gone.Swap(true) {
		p.deaths.Add(1)
		m.lose(i)
	}
}

// retire takes a path out of use. m.mu is held.
func (m *Multipath) retire(i int, err error) {
	p := &m.paths[i]
	p.failure = err
	if m.live.And(^uint32(1<<i))>>i&1 != 0 {
		p.changes++
	}
}

// How often a path is asked: soon, as a request may wait for the answer, then less and
// less often. One that works at once has failed requests all the same, and is kept
// out a while, so that it does not do so with every other one.
const (
	askFirst = 2 * time.Millisecond
	askLast  = 500 * time.Millisecond
	keepOut  = 250 * time.Millisecond
)

// ask asks a path whether it works until it does, or until the multipath is closed.
func (m *Multipath) ask(i int) {
	defer m.tasks.Done()
	failed := time.Now()
	for pause := askFirst; ; pause = min(2*pause, askLast) {
		number := m.paths[i].asks.Add(1)
		asked, err := revive(m.paths[i].dev)
		if m.answered(i, number, asked, err, time.Since(failed) >= keepOut) {
			return
		}
		select {
		case <-m.stop:
			return
		case <-time.After(pause):
		}
	}
}

// answered takes note of what a path has answered and says whether that was enough.
func (m *Multipath) answered(i int, number uint64, asked poller.Stats, err error, waited bool) (enough bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &m.paths[i]
	p.asked = p.asked.Add(asked)
	enough = m.closed || m.gone.Load() != nil
	switch {
	case enough:
	case err != nil:
		if errors.Is(err, poller.ErrGone) {
			m.died(i)
		}
		m.lose(i)
		m.retire(i, err)
	default:
		p.works.Store(number)
		if enough = p.gone.Swap(false) || waited; enough {
			p.failure = nil
			if m.live.Or(1<<i)>>i&1 == 0 {
				p.changes++
			}
		}
	}
	p.asking = !enough
	return enough
}

// askPatience is how long a path may take for the read that it is asked for.
const askPatience = 5 * time.Second

// revive finds out whether a path works; asked is what its statistics have counted for
// that.
func revive(dev poller.Device) (asked poller.Stats, err error) {
	if r, ok := dev.(interface{ Revive() error }); ok {
		return asked, r.Revive()
	}
	q, err := dev.NewQueue(poller.QueueConfig{Depth: 1, MaxTransfer: dev.Limits().BlockSize, CloseTimeout: time.Second})
	if err != nil {
		return asked, err
	}
	r := &poller.Request{Op: poller.Read, Flags: poller.HiPri, Buf: q.Limits().Arena.Bytes()[:dev.Limits().BlockSize]}
	if _, err = q.Submit([]*poller.Request{r}); err == nil {
		var n int
		if n, err = q.Wait(1, make([]*poller.Request, 1), askPatience); err == nil && n == 0 {
			err = fmt.Errorf("no answer within %v", askPatience)
		}
	}
	if e := q.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = r.Err
	}
	return q.Stats(), err
}

// giveUp makes the drive gone, as no path was left for too long, and returns the error
// of every request from now on.
func (m *Multipath) giveUp() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone := m.gone.Load(); gone != nil {
		return *gone
	}
	m.live.Store(0) // should one have come back this moment
	text := ""
	for i := range m.paths {
		if f := m.paths[i].failure; f != nil {
			text += fmt.Sprintf("; %v", f)
		}
	}
	err := fmt.Errorf("%w: no path is left%s", poller.ErrGone, text)
	m.gone.Store(&err)
	return err
}
