// SPDX-License-Identifier: Apache-2.0

package superblock

import "errors"

// What is wrong with 4096 bytes as a superblock. Test with errors.Is.
var (
	// ErrNone: these bytes are no superblock of pollux.
	ErrNone = errors.New("no superblock")
	// ErrDamaged: the magic is there and the checksum is wrong.
	ErrDamaged = errors.New("checksum of the superblock is wrong")
	// ErrUnsupported: it was made by a version that this one must not touch.
	ErrUnsupported = errors.New("superblock of a newer pollux")
	// ErrInvalid: the checksum is right and what it says makes no sense.
	ErrInvalid = errors.New("superblock makes no sense")
)

// ErrName says that a name cannot be that of a volume.
var ErrName = errors.New("bad volume name")
