// SPDX-License-Identifier: Apache-2.0

package multipath

import "pollux/poller"

// Every request that succeeds does so on one path, which counts it, with the time since
// its root was given it. So a multipath counts only what fails, and adds the paths up when
// somebody asks: counting again would be a quarter of what the layer costs.

// Stats implements poller.Device. Members are the paths, and Paths says how each is used.
func (m *Multipath) Stats() poller.Stats {
	s := m.recorders.Sum(m.opts.Name)
	if gone := m.gone.Load(); gone != nil {
		s.Err = *gone
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	live := pathSet(m.live.Load())
	for i := range m.paths {
		p := &m.paths[i]
		below := p.dev.Stats()
		s = withPath(s, below.Sub(p.asked))
		s.Members = append(s.Members, below)
		ps := poller.PathStats{
			Live:     live.has(i),
			InFlight: below.InFlight,
			Errors:   p.errors.Load(),
			Retries:  p.retries.Load(),
			Changes:  p.changes,
		}
		if !ps.Live {
			ps.Err = p.failure
		}
		s.Paths = append(s.Paths, ps)
	}
	return s
}

// withPath adds what a path has done to s. Its errors are no errors here, if another
// path did better. Polls are the paths' as well.
func withPath(s, path poller.Stats) poller.Stats {
	for op := range s.IO {
		for mode := range s.IO[op] {
			io, below := &s.IO[op][mode], &path.IO[op][mode]
			io.Latency = io.Latency.Add(below.Latency)
			io.Bytes += below.Bytes
		}
	}
	s.InFlight += path.InFlight
	s.Polls += path.Polls
	s.EmptyPolls += path.EmptyPolls
	return s
}
