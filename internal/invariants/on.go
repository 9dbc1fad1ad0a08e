// SPDX-License-Identifier: Apache-2.0

//go:build invariants

package invariants

import "sync/atomic"

// Enabled says whether the costly checks are compiled in.
const Enabled = true

// Owner notices two goroutines inside one thing at once.
type Owner struct{ inside atomic.Bool }

// Enter reports false when somebody else is inside.
func (o *Owner) Enter() bool { return o.inside.CompareAndSwap(false, true) }

// Exit ends what an Enter that reported true began.
func (o *Owner) Exit() { o.inside.Store(false) }
