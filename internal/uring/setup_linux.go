// SPDX-License-Identifier: Apache-2.0

package uring

// params is struct io_uring_params.
type params struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFD uint32

	_  [3]uint32
	sq struct {
		head, tail, ringMask, ringEntries, flags, dropped, array, _ uint32
		_                                                           uint64
	}
	cq struct {
		head, tail, ringMask, ringEntries, overflow, cqes, flags, _ uint32
		_                                                           uint64
	}
}

// entries is what io_uring_setup is asked for, which refuses 0.
func (cfg Config) entries() uint32 { return max(cfg.Entries, 1) }

// newParams returns what io_uring_setup is asked for.
func newParams(cfg Config) (p params) {
	p.flags = setupClamp
	if !cfg.stopAtBad {
		p.flags |= setupSubmitAll // one bad entry does not stop those behind it
	}
	if cfg.IOPoll {
		p.flags |= setupIOPoll
	}
	if cfg.CQEntries != 0 {
		p.flags |= setupCQSize
		p.cqEntries = cfg.CQEntries
	}
	return p
}
