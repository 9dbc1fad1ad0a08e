// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"fmt"

	"github.com/google/uuid"
)

const maxName = 63

// CheckName says what is wrong with the name of a volume, nil if nothing is. A
// name has 1 to 63 of the bytes a-z, 0-9, dot, underscore and dash, and is not
// itself a UUID or made of dots, as it stands for the volume wherever its UUID may,
// and for files.
func CheckName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("%w: %q has %d bytes; it must have 1 to %d", ErrName, clip(name), len(name), maxName)
	}
	dots := 0
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
		case c == '-' && i > 0: // not at the start, where it would be a flag
		case c == '.':
			dots++
		default:
			return fmt.Errorf("%w: %q: byte %d is %q; only a-z, 0-9, dot, underscore and dash may be used, and no dash at the start", ErrName, name, i, c)
		}
	}
	if dots == len(name) {
		return fmt.Errorf("%w: %q is nothing but dots", ErrName, name)
	}
	if _, err := uuid.Parse(name); err == nil {
		return fmt.Errorf("%w: %q could be taken for a UUID", ErrName, name)
	}
	return nil
}

// clip shortens what could be anything before it is shown.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}
