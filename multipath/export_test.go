// SPDX-License-Identifier: Apache-2.0

package multipath

// SetUnordered makes the mutant that sends a write again after those that came later.
func SetUnordered(m *Multipath) { m.unordered = true }
