// SPDX-License-Identifier: Apache-2.0

// Package leaktest fails a test binary that leaves goroutines or io_uring
// descriptors behind.
package leaktest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests and does not return. It is all that a TestMain does.
func Main(m *testing.M) {
	before := Rings()
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines leaked:", err)
			code = 1
		}
		if n := Rings() - before; n > 0 {
			fmt.Fprintf(os.Stderr, "%d io_uring descriptors leaked\n", n)
			code = 1
		}
	}
	os.Exit(code)
}

// Rings returns how many io_uring descriptors the process has open.
func Rings() int {
	n := 0
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		// A descriptor that is gone by now is no ring that stays.
		if to, err := os.Readlink(link); err == nil && strings.Contains(to, "[io_uring]") {
			n++
		}
	}
	return n
}
