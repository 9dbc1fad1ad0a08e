// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"pollux/internal/blockdev"
)

// Inspection is all that can be said of one device.
type Inspection struct {
	Look
	// Foreign are the signatures of others, on a member those outside of its data.
	Foreign []blockdev.Signature
	// InUse says what holds the device, nil if nothing is known to.
	InUse error
}

// Inspect looks at a device, read-only.
func Inspect(path string) (Inspection, error) {
	dev, err := blockdev.Open(path, blockdev.Mode{})
	if err != nil {
		return Inspection{}, err
	}
	defer dev.Close() // nothing was written
	m := &open{dev: dev}
	if m.Look, err = lookOn(dev); err != nil {
		return Inspection{}, err
	}
	in := Inspection{Look: m.Look, InUse: dev.InUse()}
	in.Foreign, err = foreign(m, m.Label.Current)
	return in, err
}
