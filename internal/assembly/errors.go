// SPDX-License-Identifier: Apache-2.0

package assembly

import "errors"

// Why a volume cannot be found, opened, made or unmade. Test with errors.Is.
var (
	// ErrNotFound: no device that could be read names such a volume.
	ErrNotFound = errors.New("no such volume")
	// ErrAmbiguous: several volumes answer to the name.
	ErrAmbiguous = errors.New("several volumes")
	// ErrIncomplete: a member is missing, doubled, stale, shrunk, reformatted or
	// not from this volume.
	ErrIncomplete = errors.New("not all members are as they should be")
	// ErrUnfinished: a creation was cut; this never was a volume.
	ErrUnfinished = errors.New("was never finished")
	// ErrForeign: a device has a signature of something else on it.
	ErrForeign = errors.New("something else is on the device")
	// ErrMember: a device belongs to a volume.
	ErrMember = errors.New("is part of a volume")
	// ErrExists: there is a volume of that name.
	ErrExists = errors.New("a volume of that name exists")
	// ErrTwice: one drive was given twice.
	ErrTwice = errors.New("the same drive twice")
	// ErrUnfit: a device cannot be a member of such a volume.
	ErrUnfit = errors.New("cannot be a member")
)
