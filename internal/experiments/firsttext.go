// SPDX-License-Identifier: Apache-2.0

package experiments

import "fmt"

// firstRuns are the tables' sections.
var firstRuns = []struct {
	title              string
	name, tool, target string
	jobs               int
	what               string
}{
	{"pollux, one queue, every second I/O HiPri", CaseHalf, ToolPollux, TargetStripe, 1, whatPolling},
	{"pollux, 1 + 1 jobs", CaseTwo, ToolPollux, TargetStripe, 1, whatPolling},
	{"pollux, 5 + 5 jobs", CaseTen, ToolPollux, TargetStripe, 5, whatPolling},
	{"fio (preadv2), 5 + 5 jobs on one drive", CaseTen, ToolFio, TargetDrive, 5, whatFioPolling},
	{"pollux, one job on one drive", CaseAlone, ToolPollux, TargetDrive, 1, whatPolling},
	{"fio (preadv2), one job on one drive", CaseAlone, ToolFio, TargetDrive, 1, whatFioPolling},
}

func (r *Result) firstText(d *document) {
	d.p("Published with the series that brought back preadv2 and pwritev2 and gave them RWF_HIPRI:")
	for _, s := range []string{pubTester1, pubTester2, pubTester3} {
		d.item("%s;", s)
	}
	d.item("%s.", pubJobsNote)
	d.end()
	d.code(fmt.Sprintf(lowpri, "DEVICE", size, "2000ms", 5), fmt.Sprintf(hipri, "DEVICE", size, "pv2sync", "2000ms", 5))
	d.p("These are the published lines, but for time_based, a size of 64 MiB instead of 1 GiB, and 2 s instead of 30. %s. "+
		"pollux takes them as they are, over a stripe of two drives with chunks of %s. "+
		"fio calls the engine pv2sync pvsync2 by now, and asks for polling only with its option hipri, which is added; it gets one drive.", upper(r.read()), chunkText)
	d.p("![Mean latency by round](1.svg)")

	d.h("Measured here")
	d.p("4 KiB random reads at depth 1; medians of the rounds; latencies in microseconds. Interrupts are of the whole run: by all its I/O, and by the I/O that did not ask to be polled.")
	d.table("run", "I/O", "rounds>", "IOPS>", "mean>", "std. dev.>", "99.99th>", "interrupts per I/O>", "per I/O not polled>")
	for _, s := range firstRuns {
		for _, polling := range []string{On, Off} {
			row := r.find(s.name, s.tool, s.target, polling, s.jobs, 1)
			if !row.measured() {
				continue
			}
			m := row.Median
			d.row(s.title, r.asked(row), fmt.Sprint(len(row.Rounds)), iops(m.IOPS), micro(m.LatencyUS), micro(m.StdDevUS), microOf(m.P9999US),
				optional(m.InterruptsPerIO), optional(m.InterruptsPerPlainIO))
		}
	}
	d.end()

	d.h("Ratios")
	d.table("run", "compared", "mean latency>", "IOPS>", "lower latency in rounds>")
	for _, s := range firstRuns {
		if q := r.ratio(s.what, s.name, "", s.jobs, 1); q != nil {
			d.row(s.title, s.what, times(q.Latency), times(q.IOPS), fmt.Sprintf("%d of %d", q.Lower, q.Pairs))
		}
	}
	for _, polling := range []string{On, Off} {
		if q := r.ratio(whatOverPreadv2, CaseAlone, polling, 1, 1); q != nil {
			title := "one job on one drive, not polled"
			if polling == On {
				title = "one job on one drive, hipri=1"
			}
			d.row(title, q.What, times(q.Latency), times(q.IOPS), fmt.Sprintf("%d of %d", q.Lower, q.Pairs))
		}
	}
	d.end()
	r.firstWords(d)
}

// asked says what a row's I/O asked for, which fio's may not have got.
func (r *Result) asked(row *Row) string {
	switch {
	case row.Tool == ToolFio && row.Polling == On:
		return "hipri=1"
	case row.Tool == ToolFio:
		return "hipri=0"
	}
	return polled(row.Polling)
}

// firstWords says in words what the tables show.
func (r *Result) firstWords(d *document) {
	for _, c := range []struct{ name, text string }{
		{CaseHalf, "On one queue, where every second I/O was HiPri,"},
		{CaseTwo, "Of two jobs, one of which polled,"},
	} {
		q, row := r.ratio(whatPolling, c.name, "", 1, 1), r.find(c.name, ToolPollux, TargetStripe, On, 1, 1)
		if q == nil {
			continue
		}
		d.item("%s the polled I/O took %s of the time of the rest on average, and less in %d of %s. Interrupts per I/O that was not polled: %s%s.",
			c.text, times(q.Latency), q.Lower, plural(q.Pairs, "round"), optional(row.Median.InterruptsPerPlainIO), causedNone(row))
	}
	if q := r.ratio(whatPolling, CaseTen, "", 5, 1); q != nil {
		verdict := "polling did not lose"
		if q.Latency > 1 {
			verdict = "polling lost"
		}
		d.item("Of ten jobs five polled, on %s: %s. The polled I/O took %s times as long as the rest on average.",
			plural(r.cpusOf(CaseTen), "CPU"), verdict, times(q.Latency))
	}
	if row := r.find(CaseAlone, ToolFio, TargetDrive, On, 1, 1); row.measured() {
		verdict := "which is not one for each"
		if within(row.Median.InterruptsPerIO, oneLow, oneHigh) {
			verdict = "one for each: the kernel has ignored the flag since Linux 5.19, and an IOPOLL ring is what polls"
		}
		d.item("fio with hipri=1, so preadv2 with RWF_HIPRI, had %s interrupts per I/O, %s.", optional(row.Median.InterruptsPerIO), verdict)
	}
	if row := r.find(CaseAlone, ToolPollux, TargetDrive, On, 1, 1); row.measured() {
		d.item("pollux, polling the same drive, had %s.", optional(row.Median.InterruptsPerIO))
	}
	d.end()
}

// causedNone says what follows from the interrupts of a mixed run.
func causedNone(row *Row) string {
	if within(row.Median.InterruptsPerPlainIO, oneLow, oneHigh) {
		return ", which leaves none for the polled"
	}
	return ""
}

// cpusOf returns how many CPUs the machine had that ran a case with pollux.
func (r *Result) cpusOf(name string) int {
	for _, row := range r.Rows {
		if row.Case != name || row.Tool != ToolPollux || !row.measured() {
			continue
		}
		for _, b := range r.Boots {
			if b.Number == row.Rounds[0].Boot {
				return b.Guest.CPUs
			}
		}
	}
	return 0
}
