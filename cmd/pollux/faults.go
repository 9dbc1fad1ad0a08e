// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// faults collects what is wrong, so that all of it is told at once.
type faults []string

func (f *faults) add(format string, args ...any) {
	*f = append(*f, fmt.Sprintf(format, args...))
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return usageError(strings.Join(f, "; "))
}
