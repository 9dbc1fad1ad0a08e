// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"sync"

	"pollux/poller"
)

// op is a request of a lane and the bounce buffer that is its own. A lane has a fixed
// set of them.
//
// It is free; or a call's that fills it or reads it; or out: in the inbox, pending, or
// on the device. The call that an op is out for may go away (a timeout, Close): then it
// is an orphan, and is free when it comes back.
type op struct {
	req   poller.Request // its Tag is the op's index
	mem   []byte
	class *class
	next  *op // next free one, or next of the wave
	// head is the first op of the wave, party is that of a head.
	head   *op
	party  party
	out    bool
	orphan bool
	// from and to are the blocks of a write, across says that it is one within
	// blocks. They are set before it is out, and stay until it is free. watched
	// says that parties are blocked by it.
	from, to int64
	across   bool
	watched  bool
}

// class is the ops of a lane whose buffers have one size.
type class struct {
	size int64 // bytes of each buffer that are used
	free *op
	flag uint32 // of the lane, set while free is nil
	// waiters wait for one of them, in which case none is free: what is given
	// back goes to the first of these, so that nobody overtakes them.
	waiters parties
}

// party is somebody who waits in a lane: a call for its wave, for a free op, or for a
// write of the same blocks to come back; or Close. All of it is guarded by the lane's
// mutex, save that its owner may read what fate has come to once it has been woken.
//
// Whoever settles the fate of a party sends false on wake, unless the party leads the
// lane or is not asleep, and so will see it. true is sent to make one lead that is
// asleep. So there is never more than one message under way, and with room for one no
// sender waits.
type party struct {
	wake     chan bool
	fate     fate
	asleep   bool  // or will receive from wake before it does anything else
	deadline int64 // of internal/clock, 0 for none
	left     int   // ops of the wave that are out
	ops      *op   // the wave
	got      *op   // what a call that waited for an op was given
	on       *op   // what blocks a call
	begun    bool  // the call has had ops before, and Close waits for it

	prev, next *party
}

// fate is what has become of a party.
type fate uint8

const (
	pending fate = iota
	finished
	expired  // its deadline has passed
	refused  // Close came before it had an op
	given    // up on, by a Close whose time was up
	ringLost // the queue broke
)

func (p *party) reset(deadline int64) {
	p.fate, p.asleep, p.deadline, p.left, p.ops, p.got, p.on = pending, true, deadline, 0, nil, nil, nil
}

// strangers are parties without an op.
var strangers = sync.Pool{New: func() any { return &party{wake: make(chan bool, 1)} }}

// parties is a list in the order of deadlines, and of coming where these are the same.
type parties struct {
	first, last *party
	n           int
}

// add puts p where it belongs, which is nearly always the end: only a call of several
// waves may have an earlier deadline than others that came before it.
func (l *parties) add(p *party) {
	after := l.last
	for after != nil && after.deadline > p.deadline {
		after = after.prev
	}
	p.prev = after
	if after == nil {
		p.next, l.first = l.first, p
	} else {
		p.next, after.next = after.next, p
	}
	if p.next == nil {
		l.last = p
	} else {
		p.next.prev = p
	}
	l.n++
}

func (l *parties) remove(p *party) {
	if p.prev == nil {
		l.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
	l.n--
}

// due reports whether the first of the list has a deadline that has passed.
func (l *parties) due(now int64) bool {
	return l.first != nil && l.first.deadline != 0 && l.first.deadline <= now
}
