// SPDX-License-Identifier: Apache-2.0

package faultdev

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"pollux/poller"
)

// Ops is a set of operations.
type Ops uint8

// The sets of one operation each; they are combined with |. The zero value
// stands for all.
const (
	Reads Ops = 1 << iota
	Writes
	Flushes
)

func (o Ops) has(op poller.Op) bool { return o == 0 || o>>op&1 != 0 }

// Rule says which requests are disturbed, and how. The first half selects, and
// its zero value selects everything; the second half is the fault. A request is
// disturbed by the first rule that selects it, every time it is submitted.
type Rule struct {
	// Member is the name of the device (Stats().Name), so that one list of
	// rules can be given to all members; "" is any.
	Member string
	// Ops are the operations.
	Ops Ops
	// From and To are a range of the device in bytes that the request must
	// touch; To 0 is the end. A flush touches only the whole.
	From, To int64
	// Skip is how many requests selected by the above pass first.
	Skip int
	// Times is how often the rule strikes; 0 is without end.
	Times int
	// Chance from 0 to 1 is how probable it is that the rule strikes, drawn
	// from Seed; 0 is always.
	Chance float64
	Seed   uint64

	// Hold keeps the request from being started until the gate is released.
	Hold *Gate
	// Delay keeps it from being started that long.
	Delay time.Duration
	// Err is what the request then fails with, an errno or one of poller's
	// errors; nothing is read or written. syscall.EAGAIN with Times n is "not
	// now" n times, then success.
	Err error
	// Short moves the first half of the request's blocks alone and fails it
	// with poller.ErrShort.
	Short bool
}

// Gate holds requests back until it is released. The zero value is shut.
type Gate struct{ open atomic.Bool }

// Release lets all requests go that the gate holds or will meet. Any goroutine
// may call it.
func (g *Gate) Release() { g.open.Store(true) }

// rule is a Rule at work on one device.
type rule struct {
	Rule
	met, struck int
	random      *rand.Rand
}

// rules are those of a device, for all of its queues.
type rules struct {
	mu     sync.Mutex
	name   string
	list   []*rule
	struck int
}

func (s *rules) set(list []Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
	for _, r := range list {
		if r.Member == "" || r.Member == s.name {
			s.list = append(s.list, &rule{Rule: r, random: rand.New(rand.NewPCG(r.Seed, 0))})
		}
	}
}

// match returns the rule that strikes r, or nil.
func (s *rules) match(r *poller.Request) *Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rule := range s.list {
		if rule.strikes(r) {
			s.struck++
			return &rule.Rule
		}
	}
	return nil
}

// blocks returns the error that a read of the first block would meet now, leaving the
// rules as they are; those that strike by chance count as if they would.
func (s *rules) blocks(block int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &poller.Request{Op: poller.Read, Buf: make([]byte, block)}
	for _, rule := range s.list {
		if rule.Err != nil && rule.Ops.has(r.Op) && rule.touches(r) && rule.met >= rule.Skip && (rule.Times == 0 || rule.struck < rule.Times) {
			return rule.Err
		}
	}
	return nil
}

func (u *rule) strikes(r *poller.Request) bool {
	if !u.Ops.has(r.Op) || !u.touches(r) {
		return false
	}
	u.met++
	if u.met <= u.Skip || u.Times > 0 && u.struck >= u.Times {
		return false
	}
	if u.Chance > 0 && u.random.Float64() >= u.Chance {
		return false
	}
	u.struck++
	return true
}

func (u *rule) touches(r *poller.Request) bool {
	if r.Op == poller.Flush {
		return u.From == 0 && u.To == 0
	}
	return r.Offset+int64(len(r.Buf)) > u.From && (u.To == 0 || r.Offset < u.To)
}
