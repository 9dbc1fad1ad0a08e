// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"

	"pollux/internal/assembly"
	"pollux/internal/bench"
	"pollux/internal/blockdev"
	"pollux/internal/superblock"
	"pollux/internal/uring"
	"pollux/poller"
	"pollux/stripe"
)

const (
	exitGood        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitUnavailable = 4
)

const exitCodesHelp = `Exit codes:
  0  good
  1  failed: an I/O error, wrong data, or ended early by a signal
  2  wrong usage
  3  refused, to protect data
  4  polling or io_uring is not available here`

// usageError is a mistake in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// refusal protects data.
type refusal string

func (e refusal) Error() string { return string(e) }

// exitCode returns what the process ends with.
func exitCode(err error) int {
	var usage usageError
	var refused refusal
	var io *poller.Error
	switch {
	case err == nil:
		return exitGood
	case errors.As(err, &refused),
		isAny(err, blockdev.ErrBusy, assembly.ErrForeign, assembly.ErrMember, assembly.ErrExists, assembly.ErrTwice):
		return exitRefused
	case isAny(err, poller.ErrNotPollable, poller.ErrNotAllowed, poller.ErrKernelTooOld, uring.ErrMemlock, errors.ErrUnsupported):
		return exitUnavailable
	// A path that is no drive is a mistake in the command line too, and so is the
	// name of no volume.
	case errors.As(err, &usage),
		isAny(err, bench.ErrJob, stripe.ErrGeometry, os.ErrNotExist, blockdev.ErrNotDevice, filepath.ErrBadPattern,
			superblock.ErrName, assembly.ErrNotFound, assembly.ErrAmbiguous, assembly.ErrUnfit),
		// A device without a block; of an I/O it would be an error in pollux.
		errors.Is(err, poller.ErrRange) && !errors.As(err, &io):
		return exitUsage
	}
	return exitFailed
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
