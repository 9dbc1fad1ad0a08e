// SPDX-License-Identifier: Apache-2.0

package multipath

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pollux/poller"
)

// MaxPaths is how many paths a drive may have.
const MaxPaths = 16

// Options are those of New. The zero value is usable.
type Options struct {
	// Name is what errors and statistics call the drive; "" joins the names of the
	// paths.
	Name   string
	Policy Policy
	// NoPathTimeout is how long requests wait for a path to come back when none is
	// left, before the drive counts as gone, for good. 0 means 5 s; less than 0 is not to
	// wait.
	NoPathTimeout time.Duration
	// RetryWrites sends writes and flushes again over another path whatever happened to
	// the first. The drive may then do the first copy after the second, and so also
	// after a newer write of the same blocks, which is lost: a command that timed out,
	// or that a target behind a network has received, cannot be called back.
	// Without it they are sent again only where the path was a PCI Express drive that
	// is gone.
	RetryWrites bool
}

const defaultNoPathTimeout = 5 * time.Second

// Multipath is a drive with several paths. Its methods may be called by any goroutine.
type Multipath struct {
	opts   Options
	paths  []path
	limits poller.Limits
	// uneven says that some path wants buffers aligned better than others do.
	uneven bool
	// unordered lets writes overtake one that is sent again, to show that a test
	// notices.
	unordered bool

	recorders poller.Recorders

	// live are the paths that may be used.
	live atomic.Uint32
	// gone is the error of every request once no path was left for too long.
	gone atomic.Pointer[error]
	// flushes counts those that were submitted: the time by which path tells whether
	// writes have been flushed since.
	flushes atomic.Int64
	// lost are paths that were lost with writes on them, to be told by the next flush.
	lost atomic.Uint32

	mu     sync.Mutex
	closed bool
	stop   chan struct{} // closed by Close
	tasks  sync.WaitGroup
}

// New makes a device of paths to one drive, 1 to MaxPaths of them. It cannot find out
// whether they lead to one drive: the caller knows, by its worldwide identifier. It
// owns the paths from then on and closes them. On error they are the caller's still.
//
// A path that fails is not used while another one is there, and asked now and then
// whether it works again: by its method Revive, where it has one as poller.Disk has,
// otherwise by a read of its first block.
func New(paths []poller.Device, opts Options) (*Multipath, error) {
	if n := len(paths); n < 1 || n > MaxPaths {
		return nil, fmt.Errorf("multipath: %d paths, and it takes 1 to %d", n, MaxPaths)
	}
	if opts.Policy >= numPolicies {
		return nil, fmt.Errorf("multipath: %v: no such policy", opts.Policy)
	}
	if opts.NoPathTimeout == 0 {
		opts.NoPathTimeout = defaultNoPathTimeout
	}
	m := &Multipath{
		opts:   opts,
		paths:  make([]path, len(paths)),
		limits: paths[0].Limits(),
		stop:   make(chan struct{}),
	}
	var names []string
	for i, dev := range paths {
		p := &m.paths[i]
		l := dev.Limits()
		p.dev, p.name, p.final = dev, dev.Stats().Name, l.GoneIsFinal
		p.wrote.Store(never)
		names = append(names, p.name)
		if err := m.join(l); err != nil {
			return nil, fmt.Errorf("multipath: %s: %w as %s", p.name, err, m.paths[0].name)
		}
	}
	if m.opts.Name == "" {
		m.opts.Name = strings.Join(names, "+")
	}
	m.limits.MaxTransfer = min(m.limits.MaxTransfer, int64(m.limits.QueueDepth)*m.limits.Unit)
	m.live.Store(1<<len(paths) - 1)
	return m, nil
}

// join narrows the limits to those of another path. Any of them may have to carry all
// that is in flight, so the budget is that of the smallest.
func (m *Multipath) join(l poller.Limits) error {
	all := &m.limits
	if l.Size != all.Size || l.BlockSize != all.BlockSize {
		return fmt.Errorf("%d bytes in blocks of %d, not %d in blocks of %d: it is not the same drive",
			l.Size, l.BlockSize, all.Size, all.BlockSize)
	}
	m.uneven = m.uneven || l.BufAlign != all.BufAlign
	all.BufAlign = max(all.BufAlign, l.BufAlign)
	all.QueueDepth = min(all.QueueDepth, l.QueueDepth)
	all.Unit = min(all.Unit, l.Unit)
	all.MaxTransfer = min(all.MaxTransfer, l.MaxTransfer)
	all.ReadOnly = all.ReadOnly || l.ReadOnly
	all.GoneIsFinal = all.GoneIsFinal && l.GoneIsFinal
	if all.NotPollable == nil {
		all.NotPollable = l.NotPollable
	}
	return nil
}

// Policy returns the policy that was chosen.
func (m *Multipath) Policy() Policy { return m.opts.Policy }

// Paths returns the devices, in their order. They are the multipath's: it is for
// their Limits and Stats.
func (m *Multipath) Paths() []poller.Device {
	devices := make([]poller.Device, len(m.paths))
	for i := range m.paths {
		devices[i] = m.paths[i].dev
	}
	return devices
}

// Limits implements poller.Device.
func (m *Multipath) Limits() poller.Limits { return m.limits }

// Close implements poller.Device. It closes the paths too. A path that is being asked
// whether it works, and hangs, is waited for 10 s; the error then says so.
func (m *Multipath) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return fmt.Errorf("%s: %w", m.opts.Name, poller.ErrClosed)
	}
	if n := m.recorders.Open(); n > 0 {
		m.mu.Unlock()
		return fmt.Errorf("%s: %d %w: close them first", m.opts.Name, n, poller.ErrQueuesOpen)
	}
	m.closed = true
	close(m.stop)
	m.mu.Unlock()
	var errs []error
	if !waitFor(&m.tasks, closePatience) {
		errs = append(errs, fmt.Errorf("%s: a path that was asked whether it works has not answered within %v", m.opts.Name, closePatience))
	}
	for i := range m.paths {
		errs = append(errs, m.paths[i].dev.Close())
	}
	return errors.Join(errs...)
}

// closePatience is how long Close waits for a path that is being asked.
const closePatience = 10 * time.Second

// waitFor waits for tasks to end, so long at most.
func waitFor(tasks *sync.WaitGroup, patience time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		tasks.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// names lists paths for an error.
func (m *Multipath) names(set pathSet) string {
	var names []string
	for i := range m.paths {
		if set.has(i) {
			names = append(names, m.paths[i].name)
		}
	}
	return strings.Join(slices.Compact(names), ", ")
}
