// SPDX-License-Identifier: Apache-2.0

package experiments

import "fmt"

func (r *Result) secondText(d *document) {
	d.p("Published with a prototype that polled through the kernel's stacked block devices: RAID-0 over two Optane P4800X, random reads. " +
		"The review liked the feature, and asked for an operation of the queue instead of a second copy of the core. Linux's md has not got it; dm-stripe has.")
	d.p("![Latency and IOPS against depth](2.svg)")
	at := func(tool, target, polling string, qd int) *Row {
		return r.find(CaseSweep, tool, target, polling, 1, qd)
	}

	d.h("Published")
	d.table("QD>", "off: latency>", "IOPS>", "on: latency>", "IOPS>", "on/off: latency>", "IOPS>")
	for _, p := range publishedSweep {
		d.row(fmt.Sprint(p.QD), fmt.Sprintf("%.2f", p.OffUS), iops(p.Off), fmt.Sprintf("%.2f", p.OnUS), iops(p.On), times(p.OnUS/p.OffUS), times(p.On/p.Off))
	}
	d.end()

	d.h("Measured here: pollux")
	d.p("4 KiB random reads over two drives, one thread, chunks of %s; mean latency in microseconds; medians of the rounds. %s.", chunkText, upper(r.read()))
	d.table("QD>", "off: latency>", "IOPS>", "interrupts per I/O>", "on: latency>", "IOPS>", "interrupts per I/O>", "on/off: latency>", "IOPS>", "rounds>")
	var polling []*Ratio
	for _, qd := range r.depths() {
		off, on, q := at(ToolPollux, TargetStripe, Off, qd), at(ToolPollux, TargetStripe, On, qd), r.ratio(whatPolling, CaseSweep, "", 1, qd)
		if q == nil {
			continue
		}
		polling = append(polling, q)
		d.row(fmt.Sprint(qd), micro(off.Median.LatencyUS), iops(off.Median.IOPS), optional(off.Median.InterruptsPerIO),
			micro(on.Median.LatencyUS), iops(on.Median.IOPS), optional(on.Median.InterruptsPerIO), times(q.Latency), times(q.IOPS), fmt.Sprint(len(on.Rounds)))
	}
	d.end()

	d.h("The rivals: fio on the kernel's stripes")
	d.p("In the same boot, in turns with pollux (md, which wants the drives for itself, after each round). pollux reads the drives while dm-stripe has them. " +
		"fio's latency is its `lat`, from submission on, as pollux's is; its `clat` begins only when submitting has returned.")
	d.table("QD>", "dm-stripe off: latency>", "IOPS>", "dm-stripe on: latency>", "IOPS>", "interrupts per I/O>", "on/off: latency>", "md raid0 off: latency>", "IOPS>", "md raid0 on")
	for _, qd := range r.depths() {
		off, on, md, mdOn := at(ToolFio, TargetDM, Off, qd), at(ToolFio, TargetDM, On, qd), at(ToolFio, TargetMD, Off, qd), at(ToolFio, TargetMD, On, qd)
		cells := []string{fmt.Sprint(qd)}
		for _, row := range []*Row{off, on} {
			cells = append(cells, cellsOf(row)...)
		}
		interrupts, ratio := none, none
		if on.measured() {
			interrupts = optional(on.Median.InterruptsPerIO)
		}
		if q := r.ratio(whatDMPolling, CaseSweep, "", 1, qd); q != nil {
			ratio = times(q.Latency)
		}
		cells = append(append(cells, interrupts, ratio), cellsOf(md)...)
		d.row(append(cells, outcome(mdOn))...)
	}
	d.end()
	if said := r.mdSaid(); said != "" {
		d.p("md raid0, asked to poll:")
		d.code(said)
	}

	d.h("Ratios of pollux to the rivals")
	d.table("QD>", "latency, off: / dm-stripe>", "/ md raid0>", "latency, on: / dm-stripe>", "IOPS, off: / dm-stripe>", "/ md raid0>", "IOPS, on: / dm-stripe>")
	var overDM [2][]*Ratio
	for _, qd := range r.depths() {
		off, on, md := r.ratio(whatOverDM, CaseSweep, Off, 1, qd), r.ratio(whatOverDM, CaseSweep, On, 1, qd), r.ratio(whatOverMD, CaseSweep, Off, 1, qd)
		overDM[0], overDM[1] = append(overDM[0], off), append(overDM[1], on)
		d.row(fmt.Sprint(qd), latencyOf(off), latencyOf(md), latencyOf(on), iopsOf(off), iopsOf(md), iopsOf(on))
	}
	d.end()

	lower, of := lowerIn(polling)
	d.item("pollux's mean latency was lower with polling than without at %d of %d depths.", lower, of)
	if q := r.ratio(whatPolling, CaseSweep, "", 1, 1); q != nil {
		p := publishedSweep[0]
		d.item("At depth 1 it was %s of unpolled; published: %s. Lower in %d of %s.", times(q.Latency), times(p.OnUS/p.OffUS), q.Lower, plural(q.Pairs, "round"))
	}
	if q := r.ratio(whatOnOverDMOff, CaseSweep, "", 1, 1); q != nil {
		d.item("At depth 1 pollux, polled, took %s of the time of fio on dm-stripe, not polled. Lower in %d of %s.",
			times(q.Latency), q.Lower, plural(q.Pairs, "round"))
	}
	for i, polling := range []string{Off, On} {
		if lower, of := lowerIn(overDM[i]); of > 0 {
			d.item("%s: pollux's mean latency was lower than that of fio on dm-stripe at %d of %d depths.", upper(polled(polling)), lower, of)
		}
	}
	d.end()
}

// cellsOf are the latency and the IOPS of a row that may not be there.
func cellsOf(row *Row) []string {
	if !row.measured() {
		return []string{outcome(row), none}
	}
	return []string{micro(row.Median.LatencyUS), iops(row.Median.IOPS)}
}

// outcome says of a row without figures why.
func outcome(row *Row) string {
	switch {
	case row == nil:
		return none
	case row.Failed > 0 && row.Error == timedOut:
		return timedOut
	case row.Failed > 0:
		return "fails"
	}
	return "works"
}

func latencyOf(q *Ratio) string {
	if q == nil {
		return none
	}
	return times(q.Latency)
}

func iopsOf(q *Ratio) string {
	if q == nil {
		return none
	}
	return times(q.IOPS)
}

// mdSaid is what fio said of polling md; "" if it did not fail.
func (r *Result) mdSaid() string {
	for _, row := range r.Rows {
		if row.Target == TargetMD && row.Polling == On && row.Failed > 0 {
			return row.Error
		}
	}
	return ""
}
