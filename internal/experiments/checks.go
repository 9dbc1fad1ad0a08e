// SPDX-License-Identifier: Apache-2.0

package experiments

import "fmt"

// What interrupts per I/O may be: strays are none of an I/O, and the counters are read
// a little before and after the run.
const (
	noInterrupt = 0.005
	oneLow      = 0.9
	oneHigh     = 1.1
)

// check finds what had to hold whatever the speed of the machine, so that no sentence of
// a report, and no claim of pollux, outlives its truth.
func (r *Result) check() {
	r.checkFailures()
	r.checkPolled()
	r.checkPlain()
	switch r.Experiment {
	case 1:
		r.checkMixed()
		r.checkRWFHiPri()
	case 2:
		r.checkMD()
		r.checkDM()
	}
}

func (r *Result) holds(ok bool, format string, args ...any) {
	r.Checks = append(r.Checks, Check{ok, fmt.Sprintf(format, args...)})
}

// mayFail says of a row that its failing is a finding.
func (row *Row) mayFail() bool {
	return row.Target == TargetMD && row.Polling == On || row.Tool == ToolFio && row.Error == timedOut
}

func (r *Result) checkFailures() {
	for _, tool := range []string{ToolPollux, ToolFio} {
		runs, failed, said := 0, 0, ""
		for _, row := range r.Rows {
			if row.Tool != tool {
				continue
			}
			runs += row.Failed
			// Both parts of a mixed run are rows of one run.
			if row.Polling == On || !r.mixed(row) {
				runs += len(row.Rounds)
			}
			if row.Failed > 0 && !row.mayFail() {
				failed += row.Failed
				said = ": " + row.Error
			}
		}
		if runs > 0 {
			r.holds(failed == 0, "%s: %d runs, of which %d failed unexpectedly%s", tool, runs, failed, said)
		}
	}
}

// mixed says of a row that its runs had polled and plain I/O in them.
func (r *Result) mixed(row *Row) bool {
	return row.Case == CaseHalf || row.Case == CaseTwo || row.Case == CaseTen
}

// checkPolled finds interrupts of polled I/O, and I/O that was to be polled and was not.
func (r *Result) checkPolled() {
	var runs, interrupts, ios, polled uint64
	var worst float64
	for _, row := range r.Rows {
		if row.Tool != ToolPollux || row.Polling != On {
			continue
		}
		var n, of uint64
		for _, round := range row.Rounds {
			ios, polled = ios+round.IOs, polled+round.PolledIOs
			if round.Interrupts != nil && !r.mixed(row) {
				runs++
				n, of = n+*round.Interrupts, of+round.IOs
			}
		}
		interrupts += n
		if of > 0 {
			worst = max(worst, float64(n)/float64(of))
		}
	}
	if ios > 0 {
		r.holds(polled == ios, "pollux polled %d of %d I/Os that were to be polled", polled, ios)
	}
	if runs > 0 {
		r.holds(worst < noInterrupt, "polled by pollux: %d interrupts in %d runs, at most %.3f per I/O (below %.3f)", interrupts, runs, worst, noInterrupt)
	}
}

// checkPlain finds unpolled I/O at depth 1 that has not one interrupt each.
func (r *Result) checkPlain() {
	rows, good := 0, 0
	for _, row := range r.Rows {
		if row.Polling != Off || row.IODepth != 1 || row.NumJobs != 1 || r.mixed(row) || row.Median.InterruptsPerIO == nil {
			continue
		}
		rows++
		if within(row.Median.InterruptsPerIO, oneLow, oneHigh) {
			good++
		}
	}
	r.holds(good == rows && rows > 0, "unpolled at depth 1: about one interrupt per I/O in %d of %d rows (%.1f to %.1f)", good, rows, oneLow, oneHigh)
}

// checkMixed finds interrupts beyond one for each I/O that was not polled. Five jobs
// may share one, so there can be fewer.
func (r *Result) checkMixed() {
	for _, c := range []struct {
		name string
		jobs int
		low  float64
	}{{CaseHalf, 1, oneLow}, {CaseTwo, 1, oneLow}, {CaseTen, 5, 0}} {
		row := r.find(c.name, ToolPollux, TargetStripe, On, c.jobs, 1)
		if !row.measured() {
			continue
		}
		follows := "so the polled ones caused none"
		if c.low == 0 {
			follows = "no more than one for each"
		}
		r.holds(within(row.Median.InterruptsPerPlainIO, c.low, oneHigh), "pollux, %s: %s interrupts per I/O that was not polled, %s (%.1f to %.1f)",
			c.name, optional(row.Median.InterruptsPerPlainIO), follows, c.low, oneHigh)
	}
}

// checkRWFHiPri finds a kernel on which preadv2 polls: the report says that it does not.
func (r *Result) checkRWFHiPri() {
	row := r.find(CaseAlone, ToolFio, TargetDrive, On, 1, 1)
	if !row.measured() {
		return
	}
	r.holds(within(row.Median.InterruptsPerIO, oneLow, oneHigh), "fio, preadv2 with RWF_HIPRI: %s interrupts per I/O, so it polls nothing (%.1f to %.1f)",
		optional(row.Median.InterruptsPerIO), oneLow, oneHigh)
}

// checkMD finds a kernel whose md can be polled.
func (r *Result) checkMD() {
	asked, failed := 0, 0
	for _, row := range r.Rows {
		if row.Target == TargetMD && row.Polling == On {
			asked += row.Failed + len(row.Rounds)
			failed += row.Failed
		}
	}
	r.holds(asked > 0 && failed == asked, "md raid0, polled: %d of %d runs failed, as md cannot be polled", failed, asked)
}

// checkDM finds a kernel whose dm-stripe is not polled: the report says that it is.
func (r *Result) checkDM() {
	rows, good := 0, 0
	for _, row := range r.Rows {
		if row.Target == TargetDM && row.Polling == On && row.measured() {
			rows++
			if within(row.Median.InterruptsPerIO, 0, noInterrupt) {
				good++
			}
		}
	}
	r.holds(rows > 0 && good == rows, "dm-stripe, polled: no interrupts in %d of %d rows (below %.3f per I/O), as dm-stripe can be polled", good, rows, noInterrupt)
}
