// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package uring

import (
	"errors"
	"fmt"
	"time"
)

// Backend names the implementation behind Ring.
const Backend = "none"

// Missing lists what this backend cannot do, each with its reason.
func Missing() []string { return []string{"io_uring: only Linux has it"} }

var errNotLinux = fmt.Errorf("io_uring: %w: only Linux has it", errors.ErrUnsupported)

// Ring is one io_uring. Here there is none: New fails, and everything else is
// for the compiler.
type Ring struct{}

// New returns errors.ErrUnsupported.
func New(Config) (*Ring, error) { return nil, errNotLinux }

// Close returns errors.ErrUnsupported.
func (*Ring) Close() error { return errNotLinux }

// SetupFlags returns 0.
func (*Ring) SetupFlags() uint32 { return 0 }

// Entries returns 0, 0.
func (*Ring) Entries() (sq, cq uint32) { return 0, 0 }

// SQE returns nil.
func (*Ring) SQE() *SQE { return nil }

// Pending returns 0.
func (*Ring) Pending() uint32 { return 0 }

// Enter returns errors.ErrUnsupported.
func (*Ring) Enter() error { return errNotLinux }

// EnterWait returns errors.ErrUnsupported.
func (*Ring) EnterWait(uint32, time.Duration) error { return errNotLinux }

// Ready returns 0.
func (*Ring) Ready() uint32 { return 0 }

// CQE returns nil.
func (*Ring) CQE(uint32) *CQE { return nil }

// Advance does nothing.
func (*Ring) Advance(uint32) {}

// Overflowed returns false.
func (*Ring) Overflowed() bool { return false }

// Flush returns errors.ErrUnsupported.
func (*Ring) Flush() error { return errNotLinux }

// RegisterFiles returns errors.ErrUnsupported.
func (*Ring) RegisterFiles([]int32) error { return errNotLinux }

// UnregisterFiles returns errors.ErrUnsupported.
func (*Ring) UnregisterFiles() error { return errNotLinux }

// UpdateFile returns errors.ErrUnsupported.
func (*Ring) UpdateFile(int, int32) error { return errNotLinux }

// RegisterMemory returns errors.ErrUnsupported.
func (*Ring) RegisterMemory(*Memory) error { return errNotLinux }

// CloneMemory returns errors.ErrUnsupported.
func (*Ring) CloneMemory(*Ring) error { return errNotLinux }

// Memory is a mapping outside the Go heap. Here there is none.
type Memory struct{}

// NewMemory returns errors.ErrUnsupported.
func NewMemory(int) (*Memory, error) { return nil, errNotLinux }

// Close returns errors.ErrUnsupported.
func (*Memory) Close() error { return errNotLinux }

// Bytes returns nil.
func (*Memory) Bytes() []byte { return nil }

// Huge returns false.
func (*Memory) Huge() bool { return false }

// Addr returns 0, false.
func (*Memory) Addr([]byte) (uintptr, bool) { return 0, false }

// Event is an eventfd(2). Here there is none.
type Event struct{}

// NewEvent returns errors.ErrUnsupported.
func NewEvent() (*Event, error) { return nil, errNotLinux }

// FD returns -1.
func (*Event) FD() int32 { return -1 }

// Raise returns errors.ErrUnsupported.
func (*Event) Raise() error { return errNotLinux }

// Drain returns errors.ErrUnsupported.
func (*Event) Drain() error { return errNotLinux }

// Close returns errors.ErrUnsupported.
func (*Event) Close() error { return errNotLinux }
