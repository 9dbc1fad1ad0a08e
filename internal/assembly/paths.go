// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
	"pollux/poller"
)

// drive is what the paths to one member have in common.
type drive struct {
	write bool
	label superblock.Label

	mu    sync.Mutex
	paths []*way
}

// way is one of the paths, as it was when it was opened first.
type way struct {
	info blockdev.Info
	// now is the device that it is, or was when it was last looked for.
	now blockdev.ID
}

// disk makes a disk of the member's data. One of several paths finds the drive again
// when it was gone and came back.
func (d *drive) disk(m *open, polling poller.Polling, several bool) (*poller.Disk, error) {
	sb := d.label.Current
	opts := poller.OpenOptions{Write: d.write, Polling: polling, Offset: sb.DataOffset, Size: sb.DataSize}
	if several {
		w := &way{info: m.Info, now: m.Info.ID()}
		d.paths = append(d.paths, w)
		opts.Reopen = func() (*blockdev.Device, error) { return d.reopen(w) }
	}
	return poller.NewDisk(m.dev, opts)
}

// errNotBack says that a drive is not there over a path that is not in use.
var errNotBack = errors.New("it has not come back")

// reopen opens the drive over a path that has come back: at the same address, or at one
// that no other path has had. The kernel may have given it another name.
func (d *drive) reopen(w *way) (*blockdev.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	why := errNotBack
	for _, sameAddress := range []bool{true, false} {
		for _, disk := range blockdev.NodesOf(w.info.WWID) {
			dev, err := d.openAgain(w, disk+strings.TrimPrefix(w.info.Name, w.info.Disk), sameAddress)
			if err == nil {
				w.now = dev.ID()
				return dev, nil
			}
			if !errors.Is(err, errNotBack) {
				why = err
			}
		}
	}
	return nil, why
}

// openAgain opens a device if it is the drive and no other path's.
func (d *drive) openAgain(w *way, path string, sameAddress bool) (_ *blockdev.Device, err error) {
	// A look first: opening for writing would claim what another path has.
	look, err := lookAt(path)
	if err != nil {
		return nil, err
	}
	if !d.free(w, look.Info, sameAddress) {
		return nil, errNotBack
	}
	dev, err := blockdev.Open(path, blockdev.Mode{Write: d.write, Exclusive: d.write})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = dev.Close()
		}
	}()
	if err := dev.Lock(); err != nil {
		return nil, err
	}
	if look, err = lookOn(dev); err != nil {
		return nil, err
	}
	if !d.free(w, look.Info, sameAddress) {
		return nil, errNotBack
	}
	return dev, d.same(look)
}

// free says that a device may be the path: it has not its own address, nor is it
// in use.
func (d *drive) free(w *way, in blockdev.Info, sameAddress bool) bool {
	if sameAddress && (in.Address == "" || in.Address != w.info.Address) {
		return false
	}
	for _, other := range d.paths {
		if other != w && (in.ID() == other.now || in.Address != "" && in.Address == other.info.Address) {
			return false
		}
	}
	return true
}

// same says why a device is not the drive that was opened.
func (d *drive) same(look Look) error {
	before, now := d.label.Current, look.Label.Current
	first := d.paths[0].info
	switch {
	case look.Info.WWID != first.WWID || look.Info.PartStart != first.PartStart:
		return fmt.Errorf("%s: it is another drive", look.Path)
	case now == nil:
		return fmt.Errorf("%s: %w: %v", look.Path, ErrIncomplete, look.Label.Verdict)
	case now.UUID != before.UUID || now.Slot != before.Slot || now.Own().UUID != before.Own().UUID:
		return fmt.Errorf("%s: %w: it is a member of another volume now, or of another slot", look.Path, ErrIncomplete)
	}
	return nil
}
