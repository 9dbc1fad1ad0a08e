// SPDX-License-Identifier: Apache-2.0

package fio

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"pollux/internal/bench"
	"pollux/poller"
)

// job is a bench.Job in the making.
type job struct {
	bench.Job
	size, offset extent
	ioSize       extent
	mixRead      *int // as given, 0 and 100 too
	mixWrite     *int
	mixInherited bool // that is, from the defaults
	bs           [2]int64
	split        [2][]bench.SizeShare // which counts more than bs, wherever it stands
	completeMax  bool                 // was given
	hipri        bool                 // was given
	engine       string
	prio         *int
	class        *int
}

// extent is a number of bytes, or a part of the device.
type extent struct {
	bytes   int64
	percent int64
}

// option is how a value gets into a job.
type option struct {
	set  func(j *job, value string) error
	bare bool // no value means 1
}

// options are those that pollux has, in canonical spelling; name is not among them.
var options = map[string]option{
	"numjobs":    number(func(j *job) *int { return &j.NumJobs }, 1),
	"rw":         {set: (*job).setRW},
	"rwmixread":  percent(func(j *job) **int { return &j.ownMix().mixRead }),
	"rwmixwrite": percent(func(j *job) **int { return &j.ownMix().mixWrite }),
	"bs":         {set: (*job).setBS},
	"bssplit":    {set: (*job).setSplit},

	"iodepth":                    number(func(j *job) *int { return &j.IODepth }, 1),
	"iodepth-batch":              number(func(j *job) *int { return &j.IODepthBatch }, 0),
	"iodepth-batch-complete-min": number(func(j *job) *int { return &j.BatchCompleteMin }, 0),
	"iodepth-batch-complete-max": number(func(j *job) *int { j.completeMax = true; return &j.BatchCompleteMax }, 0),

	"fixedbufs": truth(func(j *job, yes bool) { j.NoFixedBufs = !yes }),
	"hipri":     {set: (*job).setHiPri, bare: true},
	// What pvsync2 has for it.
	"hipri-percentage": {set: func(j *job, s string) error { return j.setHiPri(strings.TrimSuffix(s, "%") + "%") }},
	"dsync":            truth(func(j *job, yes bool) { j.DSync = yes }),
	"sync":             {set: (*job).setSync},
	"nowait":           {set: truth(func(j *job, yes bool) { j.NoWait = yes }).set},
	"prio":             small(func(j *job) **int { return &j.prio }, 7),
	"prioclass":        small(func(j *job) **int { return &j.class }, 3),

	"size":    {set: func(j *job, s string) error { return j.size.set(s) }},
	"offset":  {set: func(j *job, s string) error { return j.offset.set(s) }},
	"io-size": {set: func(j *job, s string) error { return j.ioSize.set(s) }},
	"runtime": {set: func(j *job, s string) (err error) { j.Runtime, err = bench.ParseRuntime(s); return err }},
	"ramp-time": {set: func(j *job, s string) (err error) {
		if strings.Trim(s, "0") == "" && s != "" {
			j.RampTime = 0
			return nil
		}
		j.RampTime, err = bench.ParseRuntime(s)
		return err
	}},
	"rate-iops": number(func(j *job) *int { return &j.RateIOPS }, 1),
	"seed": {set: func(j *job, s string) (err error) {
		if j.Seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			err = errors.New("not a whole number from 0 to 2^64-1")
		}
		return err
	}},
}

// set puts an option into the job. What is to be listed as ignored is returned as such.
func (j *job) set(o Option) (isIgnored bool, err error) {
	name := Canonical(o.Name)
	if name == "ioengine" {
		j.engine = o.Value
	}
	if bare, ok := ignored[name]; ok {
		if o.Value == "" && !bare {
			return true, o.errorf("option %s needs a value", o.Name)
		}
		return true, nil
	}
	known, ok := options[name]
	switch {
	case !ok && Knows(name):
		return false, o.errorf("fio's option %s is not supported by pollux bench", o.Name)
	case !ok:
		return false, o.errorf("option %s is unknown, to fio as well", o.Name)
	case o.Value == "" && known.bare:
		o.Value = "1"
	case o.Value == "":
		return false, o.errorf("option %s needs a value", o.Name)
	}
	if err := known.set(j, o.Value); err != nil {
		return false, &optionError{o, err, true}
	}
	return false, nil
}

// ownMix forgets a mix that came from the defaults: the job's own replaces it.
func (j *job) ownMix() *job {
	if j.mixInherited {
		j.mixRead, j.mixWrite, j.mixInherited = nil, nil, false
	}
	return j
}

func number(field func(*job) *int, least int) option {
	return option{set: func(j *job, s string) error {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < int64(least) {
			return fmt.Errorf("not a whole number of at least %d", least)
		}
		*field(j) = int(n)
		return nil
	}}
}

func small(field func(*job) **int, most int) option {
	return option{set: func(j *job, s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > most {
			return fmt.Errorf("not a whole number from 0 to %d", most)
		}
		*field(j) = &n
		return nil
	}}
}

func percent(field func(*job) **int) option {
	plain := small(field, 100)
	return option{set: func(j *job, s string) error { return plain.set(j, strings.TrimSuffix(s, "%")) }}
}

func truth(set func(*job, bool)) option {
	return option{bare: true, set: func(j *job, s string) error {
		yes, err := ParseBool(s)
		if err == nil {
			set(j, yes)
		}
		return err
	}}
}

// ParseBool understands fio's 1 and 0, and on, off, true, false, yes, no.
func ParseBool(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "on", "true", "yes":
		return true, nil
	case "0", "off", "false", "no":
		return false, nil
	}
	return false, errors.New("neither on nor off, nor 1 nor 0")
}

func (j *job) setRW(s string) (err error) {
	j.RW, err = bench.ParseRW(s)
	return err
}

// setHiPri takes a truth or a percentage.
func (j *job) setHiPri(s string) error {
	j.hipri = true
	if text, ok := strings.CutSuffix(s, "%"); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 100 {
			return errors.New("not a percentage from 0% to 100%")
		}
		j.HiPri = n
		return nil
	}
	yes, err := ParseBool(s)
	if err != nil {
		return fmt.Errorf("%w, nor a percentage like 50%%", err)
	}
	if j.HiPri = 0; yes {
		j.HiPri = 100
	}
	return nil
}

// setSync takes fio's words for what each write has to be.
func (j *job) setSync(s string) error {
	switch s {
	case "0", "none":
		j.DSync = false
	case "1", "sync", "dsync":
		j.DSync = true // the same for a device, which has no metadata
	default:
		return errors.New("none of none, sync, dsync")
	}
	return nil
}

// setBS takes one size, or one for reads and one for writes.
func (j *job) setBS(s string) error {
	read, write, two := strings.Cut(s, ",")
	write, _, three := strings.Cut(write, ",")
	switch {
	case three:
		return errors.New("a size for trims, of which there are none")
	case two && read == "" && write == "":
		return errors.New("no size")
	case !two:
		write = read
	}
	for op, text := range map[poller.Op]string{poller.Read: read, poller.Write: write} {
		if two && text == "" {
			continue
		}
		n, err := bench.ParseSize(text)
		if err != nil {
			return err
		}
		j.bs[op] = n
	}
	return nil
}

// setSplit takes fio's bssplit: sizes with their percentages, for reads and, after a
// comma, for writes. Those without a percentage share what is left.
func (j *job) setSplit(s string) error {
	read, write, two := strings.Cut(s, ",")
	var err error
	if j.split[poller.Read], err = parseSplit(read); err != nil {
		return err
	}
	j.split[poller.Write] = j.split[poller.Read]
	if two {
		j.split[poller.Write], err = parseSplit(write)
	}
	return err
}

func parseSplit(s string) ([]bench.SizeShare, error) {
	var shares []bench.SizeShare
	var open []int // those without a percentage
	left := 100
	for part := range strings.SplitSeq(s, ":") {
		size, text, _ := strings.Cut(part, "/")
		n, err := bench.ParseSize(size)
		if err != nil {
			return nil, err
		}
		share := bench.SizeShare{BS: n}
		if text == "" {
			open = append(open, len(shares))
		} else if share.Percent, err = strconv.Atoi(text); err != nil || share.Percent < 0 || share.Percent > 100 {
			return nil, fmt.Errorf("%q is no percentage from 0 to 100", text)
		}
		left -= share.Percent
		shares = append(shares, share)
	}
	if left < 0 || left > 0 && len(open) == 0 {
		return nil, fmt.Errorf("the percentages do not add up to 100: %s", s)
	}
	for i, at := range open {
		shares[at].Percent = left / (len(open) - i)
		left -= shares[at].Percent
	}
	return shares, nil
}

func (e *extent) set(s string) error {
	if text, ok := strings.CutSuffix(s, "%"); ok {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > 100 {
			return errors.New("not a percentage from 0% to 100%")
		}
		*e = extent{percent: n}
		return nil
	}
	if s == "0" {
		*e = extent{}
		return nil
	}
	n, err := bench.ParseSize(s)
	*e = extent{bytes: n}
	return err
}

// of returns the extent in bytes of a device of so many: a percentage in whole units,
// so that I/O of that size stays aligned to it.
func (e extent) of(size, unit int64) int64 {
	if e.percent == 0 {
		return e.bytes
	}
	// Not size*percent, which may overflow.
	n := size/100*e.percent + size%100*e.percent/100
	return n - n%max(unit, 1)
}

// sizes puts the sizes of I/Os where they belong, and returns the smallest.
func (j *job) sizes() int64 {
	least := int64(0)
	for op := range j.BSSplit {
		switch {
		case j.split[op] != nil:
			j.BSSplit[op] = j.split[op]
		case j.bs[0] == j.bs[1]:
			j.BS = j.bs[op]
		case j.bs[op] != 0:
			j.BSSplit[op] = []bench.SizeShare{{BS: j.bs[op], Percent: 100}}
		}
		for _, s := range j.BSSplit[op] {
			if least == 0 || s.BS < least {
				least = s.BS
			}
		}
	}
	if least == 0 {
		least = j.BS
	}
	return cmp.Or(least, defaultBS)
}

// defaultBS is that of fio and of bench.
const defaultBS = 4 << 10
