// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"errors"
	"fmt"
	"strings"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
)

// open is a device that is open, locked unless only looked at, and looked at
// through its own descriptor.
type open struct {
	dev *blockdev.Device
	Look
}

// openMembers opens and locks all devices, to write where write is set. What it
// has opened it closes when it fails.
func openMembers(paths []string, write bool) (_ []*open, err error) {
	var all []*open
	defer func() {
		if err != nil {
			closeAll(all)
		}
	}()
	for _, path := range paths {
		dev, err := blockdev.Open(path, blockdev.Mode{Write: write, Exclusive: write})
		if err != nil {
			return nil, err
		}
		m := &open{dev: dev}
		all = append(all, m)
		if err := dev.Lock(); err != nil {
			return nil, err
		}
		if m.Look, err = lookOn(dev); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func closeAll(all []*open) error {
	var errs []error
	for _, m := range all {
		errs = append(errs, m.dev.Close())
	}
	return errors.Join(errs...)
}

// foreign returns the signatures of others on a device; on a member, those outside
// of its data, where a volume's own content is.
func foreign(m *open, member *superblock.Superblock) ([]blockdev.Signature, error) {
	signatures, err := blockdev.Signatures(m.dev, m.dev.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	if member == nil {
		return signatures, nil
	}
	var outside []blockdev.Signature
	for _, s := range signatures {
		if s.Offset < member.DataOffset || s.Offset >= member.DataOffset+member.DataSize {
			outside = append(outside, s)
		}
	}
	return outside, nil
}

// listSignatures names them for an error, a type once.
func listSignatures(signatures []blockdev.Signature) string {
	var texts []string
	last := ""
	for _, s := range signatures {
		if s.Type != last {
			texts = append(texts, s.String())
		}
		last = s.Type
	}
	return strings.Join(texts, ", ")
}
