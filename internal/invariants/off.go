// SPDX-License-Identifier: Apache-2.0

//go:build !invariants

// Package invariants holds checks that cost too much for every build. They are
// compiled in by the build tag of the same name and are free without it.
package invariants

// Enabled says whether the costly checks are compiled in.
const Enabled = false

// Owner notices two goroutines inside one thing at once.
type Owner struct{}

// Enter reports false when somebody else is inside.
func (o *Owner) Enter() bool { return true }

// Exit ends what an Enter that reported true began.
func (o *Owner) Exit() {}
