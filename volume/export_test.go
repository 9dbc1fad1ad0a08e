// SPDX-License-Identifier: Apache-2.0

package volume

// Rests returns how many requests are out in lanes of h that nobody leads.
func Rests(h *Handle) int {
	n := 0
	for i := range h.made.Load() {
		l := h.lanes[i].Load()
		l.mu.Lock()
		if l.leader == nil {
			n += l.out
		}
		l.mu.Unlock()
	}
	return n
}
