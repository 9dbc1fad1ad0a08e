// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"pollux/poller"
	"pollux/stripe"
)

// Geometry is what New needs to know beside the members.
type Geometry struct {
	// Chunk is the contiguous unit on one member in bytes, a power of two from
	// 4 KiB to 4 MiB; 0 means 64 KiB.
	Chunk int64
}

// unnamed is the name of a volume that has no superblock to take one from.
const unnamed = "build"

// Volume is a striped device. Its methods may be called by any goroutine.
type Volume struct {
	name    string
	uuid    string
	members []poller.Device
	stripes stripe.Geometry
	limits  poller.Limits

	recorders poller.Recorders

	// broken is set once, by the first request that found a member gone: from
	// then on every request fails with it.
	broken atomic.Pointer[sticky]
	// flushFailed is the error of the first flush that failed. The state of
	// that drive's cache is unknown since, so every later flush and FUA write
	// fails with it; reads and plain writes go on.
	flushFailed atomic.Pointer[sticky]

	mu     sync.Mutex
	closed bool
}

// New makes a volume of the members in the order given. Nothing is written, as
// with mdadm --build: whoever opens the volume again must name the same members
// in the same order with the same chunk. The volume owns the members from then
// on and closes them. The error answers to stripe.ErrGeometry where the members
// and the chunk do not fit together; the members are the caller's still.
func New(members []poller.Device, geometry Geometry) (*Volume, error) {
	return newNamed(unnamed, members, geometry)
}

func newNamed(name string, members []poller.Device, geometry Geometry) (*Volume, error) {
	if geometry.Chunk == 0 {
		geometry.Chunk = stripe.DefaultChunk
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("volume %s: %w: no members; name at least one", name, stripe.ErrGeometry)
	}
	v := &Volume{name: name, members: slices.Clone(members)}
	l := &v.limits
	smallest := members[0].Limits().Size
	for i, m := range members {
		ml := m.Limits()
		if ml.Unit < 1 || ml.QueueDepth < 1 {
			return nil, fmt.Errorf("volume %s: member %d: a device that takes %d requests of %d bytes", v.name, i, ml.QueueDepth, ml.Unit)
		}
		smallest = min(smallest, ml.Size)
		l.BlockSize = max(l.BlockSize, ml.BlockSize)
		l.BufAlign = max(l.BufAlign, ml.BufAlign)
		l.ReadOnly = l.ReadOnly || ml.ReadOnly
		l.GoneIsFinal = (i == 0 || l.GoneIsFinal) && ml.GoneIsFinal
		if ml.NotPollable != nil && l.NotPollable == nil {
			l.NotPollable = fmt.Errorf("member %d: %w", i, ml.NotPollable)
		}
	}
	stripes, err := stripe.New(geometry.Chunk, l.BlockSize, len(members), smallest)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.name, err)
	}
	v.stripes = stripes
	l.Size = stripes.Size()
	v.setBudget(geometry.Chunk)
	return v, nil
}

// setBudget says in requests of the volume what the members can hold.
func (v *Volume) setBudget(chunk int64) {
	l, width := &v.limits, int64(len(v.members))
	if width == 1 {
		ml := v.members[0].Limits()
		l.QueueDepth, l.Unit = ml.QueueDepth, ml.Unit
	} else {
		// A request of k*(n-1) chunks touches at most one chunk more than that,
		// so no member gets more than k of them.
		l.QueueDepth, l.Unit = math.MaxInt, (width-1)*chunk
		for _, m := range v.members {
			ml := m.Limits()
			units := (chunk + ml.Unit - 1) / ml.Unit
			if int64(ml.QueueDepth) < units {
				// Not even a chunk fits. Shorter requests touch at most two
				// members, once each.
				l.QueueDepth = 1
				l.Unit = min(l.Unit, int64(ml.QueueDepth)*ml.Unit)
				continue
			}
			l.QueueDepth = min(l.QueueDepth, ml.QueueDepth/int(units))
		}
	}
	l.MaxTransfer = min(int64(l.QueueDepth)*l.Unit, poller.MaxArena, l.Size)
}

// Name returns the name that is in the superblocks; "build" where there are none.
func (v *Volume) Name() string { return v.name }

// UUID returns that of the superblocks; "" where there are none.
func (v *Volume) UUID() string { return v.uuid }

// Members returns the devices that the volume stripes over, by slot. They are the
// volume's: it is for their Limits and Stats.
func (v *Volume) Members() []poller.Device { return slices.Clone(v.members) }

// Geometry returns the mapping of the volume to its members.
func (v *Volume) Geometry() stripe.Geometry { return v.stripes }

// Limits implements poller.Device.
func (v *Volume) Limits() poller.Limits { return v.limits }

// Stats implements poller.Device.
func (v *Volume) Stats() poller.Stats {
	s := v.recorders.Sum(v.name)
	if broken := v.broken.Load(); broken != nil {
		s.Err = broken.err
	}
	for _, m := range v.members {
		s.Members = append(s.Members, m.Stats())
	}
	return s
}

// Close implements poller.Device. It closes the members too; one with queues of
// its own stays open, and the error says so.
func (v *Volume) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return fmt.Errorf("volume %s: %w", v.name, poller.ErrClosed)
	}
	if n := v.recorders.Open(); n > 0 {
		return fmt.Errorf("volume %s: %d %w: close them first", v.name, n, poller.ErrQueuesOpen)
	}
	v.closed = true
	var errs []error
	for _, m := range v.members {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// sticky is an error of a member that later requests get too.
type sticky struct {
	member int
	err    error
}

// remember keeps what the error of a member says about the whole volume.
func (v *Volume) remember(op poller.Op, member int, err error) {
	if errors.Is(err, poller.ErrGone) {
		v.broken.CompareAndSwap(nil, &sticky{member, fmt.Errorf("the volume is broken until it is opened again: %w", err)})
	}
	// A flush that tells of a lost path was done all the same.
	if op == poller.Flush && !errors.Is(err, poller.ErrPathLost) {
		v.flushFailed.CompareAndSwap(nil, &sticky{member, fmt.Errorf("a flush failed, nothing is durable until the volume is opened again: %w", err)})
	}
}
