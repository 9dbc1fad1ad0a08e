// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
)

// What can be wrong with a path that Open was given. Test with errors.Is.
var (
	// ErrBusy: the device is mounted, is swap, is held by a stacked device or by
	// another program.
	ErrBusy = errors.New("device is busy")
	// ErrNotDevice: neither a block device nor a regular file.
	ErrNotDevice = errors.New("neither a block device nor a regular file")
	// ErrNoDirectIO: the filesystem of a file has no direct I/O.
	ErrNoDirectIO = errors.New("no direct I/O")
	// ErrReadOnly: the device or its filesystem refuses writes.
	ErrReadOnly = errors.New("read-only")
	// ErrGone: there is a node, but no drive or medium behind it.
	ErrGone = errors.New("no drive behind the device node")
)

// Error is what Open returns. Its text is one line.
type Error struct {
	// Path is the path that was given.
	Path string
	// Cause says what is wrong, Cure what to do about it; Cure may be "".
	Cause, Cure string
	// Kind is one of the sentinels, or nil when none fits.
	Kind error
	// Err is the kernel's answer, or nil when it was not the kernel that
	// refused.
	Err error
}

// Error returns path, cause and cure.
func (e *Error) Error() string {
	s := printable(e.Path) + ": " + e.Cause
	if e.Cure != "" {
		s += "; " + e.Cure
	}
	return s
}

// Unwrap returns the sentinel and the kernel's answer, for errors.Is.
func (e *Error) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// printable quotes a path that would spoil a line of text.
func printable(path string) string {
	if path == "" || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}
