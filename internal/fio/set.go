// SPDX-License-Identifier: Apache-2.0

package fio

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pollux/internal/bench"
	"pollux/poller"
)

// Set is jobs that run together.
type Set struct {
	// Ignored lists the options that did nothing, each once.
	Ignored []string

	jobs []job
}

// global is how a name begins that begins defaults.
const global = "global"

// Parse makes jobs of options: those named, or one without a name.
func Parse(list []Option) (*Set, error) {
	s := &Set{}
	defaults, named := job{}, false
	current := &defaults
	var unused *Option // of the defaults, and no job has come since
	for _, o := range list {
		if Canonical(o.Name) == "name" {
			switch {
			case o.Value == "":
				return nil, o.errorf("option name needs a value")
			case strings.HasPrefix(o.Value, global): // as fio has it
				current = &defaults
			default:
				named, unused = true, nil
				j := defaults
				j.Name, j.mixInherited = o.Value, true
				s.jobs = append(s.jobs, j)
				current = &s.jobs[len(s.jobs)-1]
			}
			continue
		}
		if current == &defaults {
			unused = &o
		}
		isIgnored, err := current.set(o)
		if err != nil {
			return nil, err
		}
		if isIgnored && !slices.Contains(s.Ignored, o.String()) {
			s.Ignored = append(s.Ignored, o.String())
		}
	}
	switch {
	case !named:
		s.jobs = []job{defaults}
	case unused != nil:
		return nil, unused.errorf("option %s comes after all jobs and reaches none; put it before them", unused.Name)
	}
	for i := range s.jobs {
		if err := s.jobs[i].finish(); err != nil {
			if named {
				err = fmt.Errorf("job %s: %w", s.jobs[i].Name, err)
			}
			return nil, err
		}
	}
	return s, nil
}

// finish decides what hangs on several options.
func (j *job) finish() error {
	if !j.completeMax {
		j.BatchCompleteMax = j.BatchCompleteMin // as in fio
	}
	if !j.hipri {
		// As in fio, where an engine polls only when it is told to. Without one
		// these are pollux's own words, and polling is what it is for.
		if j.engine == "" || j.engine == "pv2sync" || j.engine == "pvsync2" {
			j.HiPri = 100
		}
	}
	switch {
	case j.mixRead != nil && j.mixWrite != nil && *j.mixRead+*j.mixWrite != 100:
		return fmt.Errorf("rwmixread %d and rwmixwrite %d do not add up to 100", *j.mixRead, *j.mixWrite)
	case j.mixRead == nil && j.mixWrite != nil:
		n := 100 - *j.mixWrite
		j.mixRead = &n
	}
	if j.mixRead != nil && j.RW.Reads() && j.RW.Writes() {
		j.setMix(*j.mixRead)
	}
	if j.prio != nil || j.class != nil {
		class, level := int(poller.PriorityBestEffort), 0
		if j.class != nil {
			class = *j.class
		}
		if j.prio != nil {
			level = *j.prio
		}
		if class == int(poller.PriorityNone) && level != 0 {
			return errors.New("prio has no meaning in prioclass 0; give prioclass 1, 2 or 3")
		}
		p, err := poller.NewPriority(poller.PriorityClass(class), level)
		if err != nil {
			return err
		}
		j.Priority = p
	}
	return nil
}

// setMix makes a workload of which all I/Os do the same one of that kind.
func (j *job) setMix(reads int) {
	random := j.RW.Random()
	switch {
	case reads == 0 && random:
		j.RW = bench.RandWrite
	case reads == 0:
		j.RW = bench.Write
	case reads == 100 && random:
		j.RW = bench.RandRead
	case reads == 100:
		j.RW = bench.Read
	default:
		j.RWMixRead = reads
	}
}

// Len is how many jobs there are, 1 at least.
func (s *Set) Len() int { return len(s.jobs) }

// Writes says that a job overwrites data.
func (s *Set) Writes() bool {
	return slices.ContainsFunc(s.jobs, func(j job) bool { return j.RW.Writes() })
}

// Polls says that a job asks for polling.
func (s *Set) Polls() bool {
	return slices.ContainsFunc(s.jobs, func(j job) bool { return j.HiPri > 0 })
}

// Jobs returns the jobs for a device of so many bytes, in blocks of so many. A job
// without an end, by runtime or io-size, ends after the given time. The error is of a
// percentage that comes to nothing.
func (s *Set) Jobs(size, block int64, runtime time.Duration) ([]bench.Job, error) {
	out := make([]bench.Job, len(s.jobs))
	for i, j := range s.jobs {
		unit := max(j.sizes(), block)
		j.Size, j.Job.Offset, j.IOSize = j.size.of(size, unit), j.offset.of(size, unit), j.ioSize.of(size, unit)
		if j.size.percent > 0 {
			// What is left behind the offset, if that is less.
			j.Size = min(j.Size, (size-j.Job.Offset)/unit*unit)
		}
		for name, e := range map[string]struct {
			extent
			bytes int64
		}{"size": {j.size, j.Size}, "io-size": {j.ioSize, j.IOSize}} {
			if e.percent > 0 && e.bytes <= 0 {
				return nil, fmt.Errorf("%s %d%% of the %s of the device is less than one I/O", name, e.percent, bench.FormatSize(size))
			}
		}
		if j.Runtime == 0 && j.IOSize == 0 {
			j.Runtime = runtime
		}
		out[i] = j.Job
	}
	return out, nil
}
