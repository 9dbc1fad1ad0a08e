// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
	"pollux/poller"
	"pollux/stripe"
)

// CreateOptions are those of PrepareCreate.
type CreateOptions struct {
	Name string
	// Devices are the members, in the order of their slots.
	Devices []string
	// Chunk in bytes; 0 means 64 KiB.
	Chunk int64
	// Force erases the signatures of others.
	Force bool
	// DryRun looks and locks nothing; Commit then refuses.
	DryRun bool
	// AllowUnpolled takes drives that cannot be polled.
	AllowUnpolled bool
	// Where is searched for volumes of that name.
	Where Where
}

// Plan says what a creation will do, for people to read before it does.
type Plan struct {
	Name  string
	UUID  uuid.UUID
	Chunk int64 // bytes
	Size  int64 // bytes, of the volume
	// BlockSize is the largest logical block of the members, in bytes.
	BlockSize int64
	Members   []PlannedMember
	// Problems are why it is refused; without any Commit goes on.
	Problems []error
}

// PlannedMember is a device that is to become a member.
type PlannedMember struct {
	Look
	// Data is how many bytes of it are used, Waste how many are not although
	// they are no superblock: more than the smallest member has.
	Data, Waste int64
	// NotPollable says why it cannot be polled, nil if it can.
	NotPollable error
	// Erases are signatures of others that will be erased.
	Erases []blockdev.Signature
	// Replaces says that what is left of a volume that never was is erased.
	Replaces bool
}

// Creation is one that is prepared: the members are open and locked.
type Creation struct {
	Plan Plan

	opts     CreateOptions
	members  []*open
	disks    []*poller.Disk // nil for those not opened as such
	release  []func()
	sequence uint64
	news     []superblock.NewMember
}

// PrepareCreate opens and locks the devices, looks at them through these
// descriptors, and says what creating will do, or why it will not: a Plan with
// Problems. The error is for what keeps it from looking, and for options that make
// no sense. Close ends the creation, committed or not.
func PrepareCreate(ctx context.Context, opts CreateOptions) (_ *Creation, err error) {
	if opts.Chunk == 0 {
		opts.Chunk = stripe.DefaultChunk
	}
	if err := superblock.CheckName(opts.Name); err != nil {
		return nil, err
	}
	if n := len(opts.Devices); n < 1 || n > stripe.MaxMembers {
		return nil, fmt.Errorf("volume %s: %w: %d members; 1 to %d are possible", opts.Name, stripe.ErrGeometry, n, stripe.MaxMembers)
	}
	c := &Creation{opts: opts, Plan: Plan{Name: opts.Name, Chunk: opts.Chunk}}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if err := refuseTwice(opts.Devices); err != nil {
		return nil, err
	}
	if c.members, err = c.open(); err != nil {
		return nil, err
	}
	for _, m := range c.members {
		c.Plan.Members = append(c.Plan.Members, PlannedMember{Look: m.Look})
	}
	if err := c.checkVolumes(ctx); err != nil {
		return nil, err
	}
	if err := c.checkGeometry(); err != nil {
		return nil, err
	}
	if err := c.checkForeign(); err != nil {
		return nil, err
	}
	if err := c.checkPolling(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Creation) refuse(format string, args ...any) {
	c.Plan.Problems = append(c.Plan.Problems, fmt.Errorf(format, args...))
}

// refuseTwice finds a drive that was given twice while none is claimed: the second
// claim would blame another program.
func refuseTwice(paths []string) error {
	var devs []*blockdev.Device
	defer func() {
		for _, d := range devs {
			_ = d.Close()
		}
	}()
	for _, path := range paths {
		d, err := blockdev.Open(path, blockdev.Mode{})
		if err != nil {
			return err
		}
		for i, other := range devs {
			if blockdev.Overlaps(d, other) {
				devs = append(devs, d)
				return fmt.Errorf("%s: %w: it is also %s; name every drive once", path, ErrTwice, paths[i])
			}
		}
		devs = append(devs, d)
	}
	return nil
}

// open opens the devices, and unless this is a dry run claims and locks them.
func (c *Creation) open() (all []*open, err error) {
	if !c.opts.DryRun {
		if all, err = openMembers(c.opts.Devices, true); err != nil {
			return nil, err
		}
		locked := map[string]bool{}
		for _, m := range all {
			if locked[m.Info.Disk] {
				continue // two partitions of it; a second lock would wait for the first
			}
			locked[m.Info.Disk] = m.Info.Block
			release, err := m.dev.LockDisk()
			if err != nil {
				return all, err
			}
			c.release = append(c.release, release)
		}
		return all, nil
	}
	for _, path := range c.opts.Devices {
		dev, err := blockdev.Open(path, blockdev.Mode{})
		if err != nil {
			return all, err
		}
		m := &open{dev: dev}
		all = append(all, m)
		if m.Look, err = lookOn(dev); err != nil {
			return all, err
		}
		if m.Locked {
			c.refuse("%s: %w: another pollux uses it; stop that first", path, blockdev.ErrBusy)
		} else if err := dev.InUse(); err != nil {
			c.refuse("%w", err)
		}
		if m.Info.ReadOnly {
			c.refuse("%s: %w: it is set read-only; allow writes with blockdev --setrw", path, blockdev.ErrReadOnly)
		}
	}
	return all, nil
}

// checkVolumes looks for other volumes: on the members, and of the same name.
func (c *Creation) checkVolumes(ctx context.Context) error {
	list, err := Search(ctx, c.opts.Where)
	if err != nil {
		return err
	}
	// What the open descriptors show counts, not what a path showed.
	mine := make(map[blockdev.ID]bool)
	for _, m := range c.members {
		mine[m.Info.ID()] = true
	}
	list.Looks = slices.DeleteFunc(list.Looks, func(l Look) bool { return mine[l.Info.ID()] })
	for _, m := range c.members {
		list.Looks = append(list.Looks, m.Look)
	}
	list.assemble()
	for _, s := range list.Sets {
		if s.Active() && s.Reference.Name == c.opts.Name {
			c.refuse("volume %s: %w (UUID %s, on %s); choose another name, or pollux destroy it first",
				c.opts.Name, ErrExists, s.UUID, s.Devices()[0].Path)
		}
	}
	c.refuseOverlaps(list)
	for i, m := range c.members {
		reason, inUse := superblock.Creatable(m.Found, list.Sets)
		switch {
		case inUse:
			c.refuse("%s: %w: %s", m.Path, ErrMember, reason)
		case reason != "" && !c.opts.Force:
			c.refuse("%s: %w: %s; if it is not needed, --force erases it", m.Path, ErrMember, reason)
		default:
			c.Plan.Members[i].Replaces = m.Label.Verdict != superblock.Blank
		}
		for _, copy := range []superblock.Copy{m.Label.A, m.Label.B} {
			if copy.Superblock != nil {
				c.sequence = max(c.sequence, copy.Superblock.Sequence)
			}
		}
	}
	c.sequence++
	return nil
}

// refuseOverlaps finds volumes that lie under another name on the same bytes: on
// partitions of a member, or on the disk that it is a partition of.
func (c *Creation) refuseOverlaps(list *Listing) {
	for _, s := range list.Sets {
		if !s.Active() {
			continue
		}
		for _, f := range s.Devices() {
			look, _ := list.Look(f.Path)
			for _, m := range c.members {
				if m.Info.ID() != look.Info.ID() && m.Info.Overlaps(look.Info) {
					c.refuse("%s: %w: %s, which is on the same drive, belongs to volume %s (UUID %s); pollux destroy %s first",
						m.Path, ErrMember, f.Path, s.Reference.Name, s.UUID, s.UUID)
				}
			}
		}
	}
}

// checkGeometry works the sizes out.
func (c *Creation) checkGeometry() error {
	p := &c.Plan
	smallest := int64(-1)
	for i := range p.Members {
		m := &p.Members[i]
		block := m.Info.BlockSize
		m.Data = superblock.DataSize(m.Info.Size, p.Chunk)
		p.BlockSize = max(p.BlockSize, block)
		switch {
		case block > superblock.BlockSize:
			c.refuse("%s: %w: its logical block is %d bytes; at most %d is possible: format the drive with a smaller one", m.Path, ErrUnfit, block, superblock.BlockSize)
		case m.Data == 0:
			c.refuse("%s: %w: it has %d bytes, and %d are needed for a chunk of %d", m.Path, ErrUnfit, m.Info.Size, superblock.MinSize-1<<20+max(1<<20, p.Chunk), p.Chunk)
		}
		if smallest < 0 || m.Data < smallest {
			smallest = m.Data
		}
	}
	if len(p.Problems) == 0 {
		g, err := stripe.New(p.Chunk, p.BlockSize, len(p.Members), smallest)
		if err != nil {
			return fmt.Errorf("volume %s: %w", p.Name, err)
		}
		p.Size = g.Size()
	}
	var sizes, blocks []int64
	for i := range p.Members {
		m := &p.Members[i]
		m.Waste = m.Data - smallest
		m.Data = smallest
		sizes, blocks = append(sizes, m.Info.Size), append(blocks, m.Info.BlockSize)
	}
	if len(p.Problems) > 0 {
		return nil
	}
	sbs, err := superblock.New(p.Name, p.Chunk, sizes, blocks)
	if err != nil {
		return fmt.Errorf("volume %s: %w", p.Name, err)
	}
	p.UUID = sbs[0].UUID
	for i, m := range c.members {
		c.news = append(c.news, superblock.NewMember{Target: superblock.Target{Device: m.dev, Superblock: sbs[i]}, Old: m.Label})
	}
	return nil
}

// checkForeign looks for what others have left.
func (c *Creation) checkForeign() error {
	for i, m := range c.members {
		signatures, err := foreign(m, nil)
		if err != nil {
			return err
		}
		if len(signatures) == 0 {
			continue
		}
		if !c.opts.Force {
			c.refuse("%s: %w: %s; if it is not needed, --force erases it", m.Path, ErrForeign, listSignatures(signatures))
			continue
		}
		blocks, erased, err := blanked(m.dev, signatures)
		if err != nil {
			return err
		}
		c.Plan.Members[i].Erases = erased
		if len(c.news) > i {
			c.news[i].Erase = blocks
		}
	}
	return nil
}

// checkPolling probes the devices, of which the disks become the owners.
func (c *Creation) checkPolling() error {
	for i, m := range c.members {
		d, err := poller.NewDisk(m.dev, poller.OpenOptions{Write: !c.opts.DryRun, Polling: poller.PollIfPossible})
		if err != nil {
			return err
		}
		c.disks = append(c.disks, d)
		why := d.Limits().NotPollable
		c.Plan.Members[i].NotPollable = why
		if why != nil && !c.opts.AllowUnpolled {
			c.Plan.Problems = append(c.Plan.Problems, why)
		}
	}
	return nil
}

// Commit does what the plan says. When it fails, the devices are as they were, or
// the error says which is not.
func (c *Creation) Commit() error {
	if err := errors.Join(c.Plan.Problems...); err != nil {
		return err
	}
	if c.opts.DryRun {
		return fmt.Errorf("volume %s: only a dry run was prepared", c.Plan.Name)
	}
	if err := superblock.Create(c.news, c.sequence); err != nil {
		return fmt.Errorf("volume %s: not created: %w", c.Plan.Name, err)
	}
	for i, m := range c.members {
		if len(c.Plan.Members[i].Erases) > 0 {
			m.dev.RereadPartitions()
		}
	}
	return nil
}

// Close gives the devices back.
func (c *Creation) Close() error {
	var errs []error
	for _, d := range c.disks {
		errs = append(errs, d.Close())
	}
	errs = append(errs, closeAll(c.members[len(c.disks):]))
	for _, release := range c.release {
		release()
	}
	return errors.Join(errs...)
}
