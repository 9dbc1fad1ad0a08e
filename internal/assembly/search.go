// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
)

// Where says where to look for members.
type Where struct {
	// Devices are paths and shell patterns of block devices and files. Without
	// any, all block devices are looked at, and no file.
	Devices []string
	// Patience bounds the search: a drive that hangs is left out and reported.
	// 0 means 10 s.
	Patience time.Duration

	// look is lookAt, but in tests, which have devices that never answer.
	look func(path string) (Look, error)
}

const (
	defaultPatience = 10 * time.Second
	// atOnce is how many devices are looked at side by side.
	atOnce = 32
)

// Look is what was seen on one device.
type Look struct {
	superblock.Found
	Info blockdev.Info
	// Locked says that pollux has the device open somewhere, LockedToWrite that
	// it writes.
	Locked, LockedToWrite bool
}

// Unread is a device about which nothing can be said.
type Unread struct {
	Path string
	Err  error
}

// Listing is the result of a search.
type Listing struct {
	// Sets are the volumes, whole or not, by name.
	Sets []*superblock.Set
	// Looks are all devices that could be read, by path.
	Looks []Look
	// Unread are those that could not.
	Unread []Unread
}

// Search looks at devices, read-only. The error is about the search as a whole: a
// pattern that makes no sense or matches nothing, no sysfs.
func Search(ctx context.Context, where Where) (*Listing, error) {
	paths, err := where.paths()
	if err != nil {
		return nil, err
	}
	patience := where.Patience
	if patience <= 0 {
		patience = defaultPatience
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := where.look
	if look == nil {
		look = lookAt
	}
	type answer struct {
		index int
		look  Look
		err   error
	}
	// Large enough for all answers, so that one that comes too late does not keep
	// its goroutine.
	answers := make(chan answer, len(paths))
	turns := make(chan struct{}, atOnce)
	for i, path := range paths {
		go func() {
			select {
			case turns <- struct{}{}:
			case <-ctx.Done():
				return
			}
			l, err := look(path)
			answers <- answer{i, l, err}
			<-turns
		}()
	}
	list := &Listing{}
	answered := make([]bool, len(paths))
	for range paths {
		select {
		case a := <-answers:
			answered[a.index] = true
			if a.err != nil {
				list.Unread = append(list.Unread, Unread{paths[a.index], a.err})
			} else {
				list.Looks = append(list.Looks, a.look)
			}
			continue
		case <-ctx.Done():
		}
		break
	}
	if err := caller.Err(); err != nil {
		return nil, fmt.Errorf("interrupted while looking at devices: %w", err)
	}
	for i, path := range paths {
		if !answered[i] {
			list.Unread = append(list.Unread, Unread{path, fmt.Errorf("%s: no answer within %v: the drive hangs, or there are too many; %w",
				path, patience, context.Cause(ctx))})
		}
	}
	list.assemble()
	return list, nil
}

// assemble sorts what was seen. A device that was reached by two paths of one
// node counts once.
func (l *Listing) assemble() {
	slices.SortFunc(l.Looks, func(a, b Look) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(l.Unread, func(a, b Unread) int { return strings.Compare(a.Path, b.Path) })
	seen := make(map[blockdev.ID]bool)
	l.Looks = slices.DeleteFunc(l.Looks, func(look Look) bool {
		twice := seen[look.Info.ID()]
		seen[look.Info.ID()] = true
		return twice
	})
	var found []superblock.Found
	for _, look := range l.Looks {
		if !l.isShadow(look) {
			found = append(found, look.Found)
		}
	}
	l.Sets = superblock.Assemble(found)
}

// isShadow says that the only copy on a device is that of a member which shares its
// bytes: the last partition of a disk mostly ends so near its end that both have their
// copy B in one place.
func (l *Listing) isShadow(look Look) bool {
	if look.Label.Verdict != superblock.Overwritten {
		return false
	}
	for _, other := range l.Looks {
		if other.Label.Current != nil && other.Label.Current.UUID == look.Label.B.Superblock.UUID &&
			other.Info.ID() != look.Info.ID() && other.Info.Overlaps(look.Info) &&
			other.Info.PartStart+other.Label.B.Offset == look.Info.PartStart+look.Label.B.Offset {
			return true
		}
	}
	return false
}

// paths expands what was asked for.
func (w Where) paths() ([]string, error) {
	if len(w.Devices) == 0 {
		return blockdev.All()
	}
	var paths []string
	for _, d := range w.Devices {
		if !strings.ContainsAny(d, "*?[") {
			paths = append(paths, d)
			continue
		}
		matches, err := filepath.Glob(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("%s: matches nothing: %w", d, fs.ErrNotExist)
		}
		paths = append(paths, matches...)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// lookAt opens a device to look and closes it again.
func lookAt(path string) (Look, error) {
	dev, err := blockdev.Open(path, blockdev.Mode{})
	if err != nil {
		return Look{}, err
	}
	defer dev.Close() // nothing was written
	return lookOn(dev)
}

// lookOn looks through an open descriptor.
func lookOn(dev *blockdev.Device) (Look, error) {
	info := dev.Info()
	l := Look{Info: info, Found: superblock.Found{Path: info.Path, Drive: info.Drive(), BlockSize: info.BlockSize,
		Way: superblock.Way{Subsystem: info.Subsystem, Controller: info.ControllerID, Known: info.ControllerKnown}}}
	var err error
	if l.Label, err = superblock.Read(dev); err != nil {
		return l, err
	}
	l.Locked, l.LockedToWrite, err = dev.Locked()
	return l, err
}

// Find returns the volume of a name or UUID; with "" the only one that there is.
// The error answers to ErrNotFound or ErrAmbiguous.
func (l *Listing) Find(volume string) (*superblock.Set, error) {
	id, notUUID := uuid.Parse(volume)
	var sets []*superblock.Set
	for _, s := range l.Sets {
		if volume == "" || notUUID == nil && s.UUID == id || notUUID != nil && s.Reference.Name == volume {
			sets = append(sets, s)
		}
	}
	what := "volume " + volume
	if volume == "" {
		what = "any volume"
	}
	switch len(sets) {
	case 1:
		return sets[0], nil
	case 0:
		return nil, fmt.Errorf("%s: %w on the %d devices that were looked at%s", what, ErrNotFound, len(l.Looks), l.unread())
	}
	var ids []string
	for _, s := range sets {
		ids = append(ids, fmt.Sprintf("%s (%s)", s.UUID, s.Reference.Name))
	}
	return nil, fmt.Errorf("%s: %w: %s; name one by its UUID", what, ErrAmbiguous, strings.Join(ids, ", "))
}

// unread says for an error what could not be looked at.
func (l *Listing) unread() string {
	const most = 3
	if len(l.Unread) == 0 {
		return ""
	}
	var texts []string
	for _, u := range l.Unread[:min(most, len(l.Unread))] {
		texts = append(texts, u.Err.Error())
	}
	if more := len(l.Unread) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("; %d could not be read: %s", len(l.Unread), strings.Join(texts, "; "))
}

// Look returns what was seen on a device of the listing.
func (l *Listing) Look(path string) (Look, bool) {
	for _, look := range l.Looks {
		if look.Path == path {
			return look, true
		}
	}
	return Look{}, false
}
