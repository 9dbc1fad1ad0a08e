// SPDX-License-Identifier: Apache-2.0

package multipath

import (
	"fmt"
	"math/bits"
)

// Policy says which of the live paths a request takes. The names are those of the
// kernel (iopolicy of an NVMe subsystem) and of SPDK.
type Policy uint8

const (
	// QueueDepth takes the path with the fewest requests of the queue in flight, of
	// several the first. It finds by itself how much each path can do.
	QueueDepth Policy = iota
	// RoundRobin takes one after the other.
	RoundRobin
	// Failover takes the first, as long as it is live; the others stand by.
	Failover

	numPolicies = 3
)

// String returns the name that ParsePolicy takes.
func (p Policy) String() string {
	if p >= numPolicies {
		return fmt.Sprintf("policy(%d)", uint8(p))
	}
	return [numPolicies]string{"queue-depth", "round-robin", "failover"}[p]
}

// ParsePolicy returns the policy of a name.
func ParsePolicy(name string) (Policy, error) {
	for p := range Policy(numPolicies) {
		if name == p.String() {
			return p, nil
		}
	}
	return 0, fmt.Errorf("%q is no path policy: queue-depth, round-robin or failover", name)
}

// pathSet has a bit for each path.
type pathSet uint32

func (s pathSet) has(i int) bool { return s>>i&1 != 0 }

// pick returns the path of a set, which is not empty, for the next request.
func (q *queue) pick(from pathSet) int {
	switch q.m.opts.Policy {
	case RoundRobin:
		behind := from >> q.next << q.next
		if behind == 0 {
			behind = from
		}
		i := bits.TrailingZeros32(uint32(behind))
		q.next = i + 1
		return i
	case Failover:
		return bits.TrailingZeros32(uint32(from))
	}
	best := bits.TrailingZeros32(uint32(from))
	least := q.paths[best].inFlight
	for from &= from - 1; from != 0 && least != 0; from &= from - 1 {
		i := bits.TrailingZeros32(uint32(from))
		if n := q.paths[i].inFlight; n < least {
			best, least = i, n
		}
	}
	return best
}
