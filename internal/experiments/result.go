// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Schema numbers the structure of Result. It goes up when a key changes its meaning or
// goes away, not when one is added.
const Schema = 1

// Result is all that a report says, as N.json has it.
type Result struct {
	SchemaVersion int    `json:"schema_version"`
	Experiment    int    `json:"experiment"`
	Title         string `json:"title"`
	// Date is a day, in UTC.
	Date string `json:"date"`
	// Smoke says that the runs were too short for their figures to mean anything.
	Smoke bool `json:"smoke"`
	// Filled says that what was read had been written before. A drive answers reads of
	// what was not without looking anywhere.
	Filled bool `json:"filled"`
	// Emulated says that the drives were, so that only ratios mean anything.
	Emulated bool `json:"emulated"`
	Host     Host `json:"host"`
	// Source is what the repository calls the version of pollux, "" if unknown.
	Source string     `json:"source"`
	Boots  []BootInfo `json:"boots"`
	// Rows are in the order in which they were first measured.
	Rows   []*Row  `json:"rows"`
	Ratios []Ratio `json:"ratios"`
	Checks []Check `json:"checks"`
	// Published has the figures that were published, by experiment.
	Published any `json:"published"`
}

// BootInfo is a Boot without its samples.
type BootInfo struct {
	Number int    `json:"boot"`
	Setup  string `json:"setup"`
	Guest  Guest  `json:"guest"`
}

// Row is a part of what was measured, over all its rounds.
type Row struct {
	Key
	// Part is the Part's name, and Key.Polling the Part's.
	Part    string  `json:"part"`
	Command string  `json:"command"`
	Median  Figures `json:"median"`
	Rounds  []Round `json:"rounds"`
	// Failed is how many more runs gave no figures, and Error what the last of them said.
	Failed int    `json:"failed"`
	Error  string `json:"error,omitempty"`
}

// Figures of a round or, each by itself, the medians of all.
type Figures struct {
	IOPS      float64 `json:"iops"`
	LatencyUS float64 `json:"latency_us"`
	StdDevUS  float64 `json:"stddev_us"`
	// P9999US is null where it is not known.
	P9999US *float64 `json:"p9999_us"`
	// Interrupts are of the whole run, by all its I/O, and by what did not ask to be
	// polled; null where nobody knows, or there was none.
	InterruptsPerIO      *float64 `json:"interrupts_per_io"`
	InterruptsPerPlainIO *float64 `json:"interrupts_per_plain_io"`
}

// Round is one run.
type Round struct {
	Boot  int `json:"boot"`
	Round int `json:"round"`
	Figures
	IOs       uint64 `json:"ios"`
	PolledIOs uint64 `json:"polled_ios"`
	// Interrupts are of the whole run; null where nobody knows.
	Interrupts *uint64 `json:"interrupts"`
}

// Ratio compares the medians of two rows.
type Ratio struct {
	// What is "A / B" in words.
	What string `json:"what"`
	Case string `json:"case"`
	// Polling is what both have in common; "" if that is what is compared.
	Polling string `json:"polling,omitempty"`
	NumJobs int    `json:"numjobs"`
	IODepth int    `json:"iodepth"`
	// Latency and IOPS are the ratios of both medians.
	Latency float64 `json:"latency"`
	IOPS    float64 `json:"iops"`
	// Lower of Pairs is in how many rounds of the same boot and number A's mean latency
	// was below B's.
	Lower int `json:"lower"`
	Pairs int `json:"pairs"`
}

// Check is something that had to hold.
type Check struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

var titles = map[int]string{
	1: "Polling, I/O by I/O",
	2: "Polling a stripe",
	3: "Polling through multipath",
}

// Collect sums up the boots of one experiment, which ReadBoots has read.
func Collect(boots []Boot, host Host, source string, date time.Time) (*Result, error) {
	if len(boots) == 0 || titles[boots[0].Experiment] == "" {
		return nil, errors.New("no boot of an experiment that there is")
	}
	r := &Result{
		SchemaVersion: Schema,
		Experiment:    boots[0].Experiment,
		Title:         titles[boots[0].Experiment],
		Date:          date.UTC().Format(time.DateOnly),
		Filled:        true,
		Emulated:      host.QEMU != "",
		Host:          host,
		Source:        source,
	}
	for _, b := range boots {
		r.Smoke, r.Filled = r.Smoke || b.Smoke, r.Filled && b.Filled
		r.Boots = append(r.Boots, BootInfo{b.Number, b.Setup, b.Guest})
		for _, s := range b.Samples {
			r.add(b.Number, s)
		}
	}
	if len(r.Rows) == 0 {
		return nil, fmt.Errorf("experiment %d: not one run", r.Experiment)
	}
	for _, row := range r.Rows {
		row.summarize()
	}
	r.compare()
	r.check()
	r.Published = published(r.Experiment)
	return r, nil
}

// add puts a run into the rows.
func (r *Result) add(boot int, s Sample) {
	if s.Error != "" {
		row := r.row(s.Key, "")
		row.Command = cmp.Or(row.Command, s.Command)
		row.Failed++
		row.Error = s.Error
		return
	}
	var all, plain uint64
	for _, p := range s.Parts {
		all += p.IOs
		if p.Polling == Off {
			plain += p.IOs
		}
	}
	for _, p := range s.Parts {
		key := s.Key
		key.Polling = p.Polling
		row := r.row(key, p.Name)
		row.Command = cmp.Or(row.Command, s.Command)
		round := Round{Boot: boot, Round: s.Round, IOs: p.IOs, PolledIOs: p.PolledIOs, Interrupts: s.Interrupts,
			Figures: Figures{IOPS: p.IOPS, LatencyUS: p.MeanUS, StdDevUS: p.StdDevUS}}
		if p.P9999US > 0 {
			round.P9999US = &p.P9999US
		}
		round.InterruptsPerIO = perIO(s.Interrupts, all)
		round.InterruptsPerPlainIO = perIO(s.Interrupts, plain)
		row.Rounds = append(row.Rounds, round)
	}
}

func perIO(interrupts *uint64, ios uint64) *float64 {
	if interrupts == nil || ios == 0 {
		return nil
	}
	q := round3(float64(*interrupts) / float64(ios))
	return &q
}

// row returns the row of a part, made if there is none. A run without figures has no
// parts: it counts with those of its key, whatever they are called.
func (r *Result) row(key Key, part string) *Row {
	for _, row := range r.Rows {
		if row.Key == key && (row.Part == part || part == "" || row.Part == "") {
			row.Part = cmp.Or(row.Part, part)
			return row
		}
	}
	row := &Row{Key: key, Part: part, Rounds: []Round{}}
	r.Rows = append(r.Rows, row)
	return row
}

// summarize sets the medians.
func (row *Row) summarize() {
	pick := func(f func(Round) *float64) *float64 {
		var all []float64
		for _, round := range row.Rounds {
			if v := f(round); v != nil {
				all = append(all, *v)
			}
		}
		if len(all) == 0 {
			return nil
		}
		m := round3(median(all))
		return &m
	}
	value := func(f func(Round) float64) float64 {
		if m := pick(func(r Round) *float64 { v := f(r); return &v }); m != nil {
			return *m
		}
		return 0
	}
	row.Median = Figures{
		IOPS:                 value(func(r Round) float64 { return r.IOPS }),
		LatencyUS:            value(func(r Round) float64 { return r.LatencyUS }),
		StdDevUS:             value(func(r Round) float64 { return r.StdDevUS }),
		P9999US:              pick(func(r Round) *float64 { return r.P9999US }),
		InterruptsPerIO:      pick(func(r Round) *float64 { return r.InterruptsPerIO }),
		InterruptsPerPlainIO: pick(func(r Round) *float64 { return r.InterruptsPerPlainIO }),
	}
}

// median returns the middle value, or the mean of the two middle ones.
func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// measured says that there are figures.
func (row *Row) measured() bool { return row != nil && len(row.Rounds) > 0 }

// latencies returns the mean latencies of all rounds, or of one boot's.
func (row *Row) latencies(boot int) []float64 {
	var all []float64
	for _, round := range row.Rounds {
		if boot == 0 || round.Boot == boot {
			all = append(all, round.LatencyUS)
		}
	}
	return all
}

// rates returns the IOPS of all rounds.
func (row *Row) rates() []float64 {
	var all []float64
	for _, round := range row.Rounds {
		all = append(all, round.IOPS)
	}
	return all
}

// boots are those that a row has rounds of, in order.
func (row *Row) boots() []int {
	var all []int
	for _, round := range row.Rounds {
		all = append(all, round.Boot)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// spread is the highest mean latency of the rounds over the lowest.
func (row *Row) spread() float64 {
	all := row.latencies(0)
	if len(all) == 0 || slices.Min(all) <= 0 {
		return 0
	}
	return slices.Max(all) / slices.Min(all)
}

// find returns the row of these, whatever its part is called and its batch; nil if there
// is none.
func (r *Result) find(name, tool, target, polling string, jobs, depth int) *Row {
	for _, row := range r.Rows {
		if row.Case == name && row.Tool == tool && row.Target == target && row.Polling == polling && row.NumJobs == jobs && row.IODepth == depth {
			return row
		}
	}
	return nil
}

// against adds the ratio of a to b, if both have figures.
func (r *Result) against(what, polling string, a, b *Row) {
	if !a.measured() || !b.measured() || b.Median.LatencyUS == 0 || b.Median.IOPS == 0 {
		return
	}
	q := Ratio{What: what, Case: a.Case, Polling: polling, NumJobs: a.NumJobs, IODepth: a.IODepth,
		Latency: round3(a.Median.LatencyUS / b.Median.LatencyUS), IOPS: round3(a.Median.IOPS / b.Median.IOPS)}
	for _, x := range a.Rounds {
		for _, y := range b.Rounds {
			if x.Boot == y.Boot && x.Round == y.Round {
				q.Pairs++
				if x.LatencyUS < y.LatencyUS {
					q.Lower++
				}
			}
		}
	}
	r.Ratios = append(r.Ratios, q)
}

// ratio finds one; nil if it could not be had.
func (r *Result) ratio(what, name, polling string, jobs, depth int) *Ratio {
	for i := range r.Ratios {
		if q := &r.Ratios[i]; q.What == what && q.Case == name && q.Polling == polling && q.NumJobs == jobs && q.IODepth == depth {
			return q
		}
	}
	return nil
}

// The words of Ratio.What.
const (
	whatPolling      = "polled / not polled"
	whatFioPolling   = "fio, hipri=1 / hipri=0"
	whatDMPolling    = "fio on dm-stripe, polled / not polled"
	whatOverPreadv2  = "pollux / fio (preadv2)"
	whatOnOverDMOff  = "pollux, polled / fio on dm-stripe, not polled"
	whatOverDM       = "pollux / fio on dm-stripe"
	whatOverMD       = "pollux / fio on md raid0"
	whatHead         = "native multipath / one path"
	whatJoined       = "pollux multipath / one path"
	whatTCPHead      = "native multipath / one path, over TCP"
	whatHeadPolling  = "polled / not polled, native multipath"
	whatJoinPolling  = "polled / not polled, pollux multipath"
	whatPathPolling  = "polled / not polled, one path"
	whatTCPPolling   = "polled / not polled, native multipath over TCP"
	whatTCP1Polling  = "polled / not polled, one TCP path"
	whatHeadOverFio  = "pollux / fio, native multipath"
	whatPathsOverFio = "pollux / fio, one path"
)

// compare makes all the ratios there can be.
func (r *Result) compare() {
	switch r.Experiment {
	case 1:
		for _, c := range []struct {
			name, tool, target, what string
			jobs                     int
		}{
			{CaseHalf, ToolPollux, TargetStripe, whatPolling, 1},
			{CaseTwo, ToolPollux, TargetStripe, whatPolling, 1},
			{CaseTen, ToolPollux, TargetStripe, whatPolling, 5},
			{CaseTen, ToolFio, TargetDrive, whatFioPolling, 5},
			{CaseAlone, ToolPollux, TargetDrive, whatPolling, 1},
			{CaseAlone, ToolFio, TargetDrive, whatFioPolling, 1},
		} {
			r.against(c.what, "", r.find(c.name, c.tool, c.target, On, c.jobs, 1), r.find(c.name, c.tool, c.target, Off, c.jobs, 1))
		}
		for _, polling := range []string{Off, On} {
			r.against(whatOverPreadv2, polling, r.find(CaseAlone, ToolPollux, TargetDrive, polling, 1, 1), r.find(CaseAlone, ToolFio, TargetDrive, polling, 1, 1))
		}
	case 2:
		for _, qd := range r.depths() {
			at := func(tool, target, polling string) *Row { return r.find(CaseSweep, tool, target, polling, 1, qd) }
			r.against(whatPolling, "", at(ToolPollux, TargetStripe, On), at(ToolPollux, TargetStripe, Off))
			r.against(whatDMPolling, "", at(ToolFio, TargetDM, On), at(ToolFio, TargetDM, Off))
			for _, polling := range []string{Off, On} {
				r.against(whatOverDM, polling, at(ToolPollux, TargetStripe, polling), at(ToolFio, TargetDM, polling))
			}
			r.against(whatOnOverDMOff, "", at(ToolPollux, TargetStripe, On), at(ToolFio, TargetDM, Off))
			r.against(whatOverMD, Off, at(ToolPollux, TargetStripe, Off), at(ToolFio, TargetMD, Off))
		}
	case 3:
		for _, w := range workloads {
			at := func(tool, target, polling string) *Row {
				return r.find(CasePaths, tool, target, polling, w.jobs, w.depth)
			}
			for _, t := range []struct{ target, what string }{
				{TargetPath, whatPathPolling}, {TargetHead, whatHeadPolling}, {TargetJoined, whatJoinPolling}, {TargetTCPPath, whatTCP1Polling}, {TargetTCPHead, whatTCPPolling},
			} {
				r.against(t.what, "", at(ToolPollux, t.target, On), at(ToolPollux, t.target, Off))
			}
			for _, polling := range []string{On, Off} {
				r.against(whatJoined, polling, at(ToolPollux, TargetJoined, polling), at(ToolPollux, TargetPath, polling))
				r.against(whatHead, polling, at(ToolPollux, TargetHead, polling), at(ToolPollux, TargetPath, polling))
				r.against(whatTCPHead, polling, at(ToolPollux, TargetTCPHead, polling), at(ToolPollux, TargetTCPPath, polling))
				r.against(whatPathsOverFio, polling, at(ToolPollux, TargetPath, polling), at(ToolFio, TargetPath, polling))
				r.against(whatHeadOverFio, polling, at(ToolPollux, TargetHead, polling), at(ToolFio, TargetHead, polling))
			}
		}
	}
}

// depths are those that were measured, in order.
func (r *Result) depths() []int {
	var all []int
	for _, row := range r.Rows {
		all = append(all, row.IODepth)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// within says that a figure is known and in a range.
func within(f *float64, low, high float64) bool {
	return f != nil && !math.IsNaN(*f) && *f >= low && *f <= high
}
