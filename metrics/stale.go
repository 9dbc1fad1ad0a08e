// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"io/fs"
	"syscall"
)

// isStale says that nobody listens on a socket any more: its process ended without
// taking it away, or just now.
func isStale(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist)
}
