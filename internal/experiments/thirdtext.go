// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"slices"
	"strings"
)

// name of a workload, as in the published table.
func (w workload) String() string {
	return fmt.Sprintf("%s, QD%d, batch %d", plural(w.jobs, "thread"), w.depth, w.batch)
}

// thirdTargets are those of the tables, in order.
var thirdTargets = []struct {
	tool, target string
}{
	{ToolPollux, TargetPath}, {ToolPollux, TargetHead}, {ToolPollux, TargetJoined}, {ToolFio, TargetPath}, {ToolFio, TargetHead},
	{ToolPollux, TargetTCPPath}, {ToolPollux, TargetTCPHead},
}

func (r *Result) thirdText(d *document) {
	d.p("Published with the patches that made the kernel's native multipath heads pollable: remote Optane drives over an initiator, one option line with threads, depth and batch varied. " +
		"What it was to show is that a head costs nothing over a single path.")
	d.code("pollux bench --build DEVICE " + fmt.Sprintf(publishedLine, "60", "1", 32, 8, 16))
	runtime := "1 s"
	if r.Smoke {
		runtime = smokeRuntime.String()
	}
	d.p("This is the published line, but for numjobs, and for size and norandommap, which are added. %s. Here each run took %s. "+
		"Not polled is hipri=0. fio ran the same line on the same device.", upper(r.read()), runtime)
	d.p("![Mean latency by round](3.svg)")

	d.h("Measured here")
	d.p("4 KiB random reads; medians of the rounds; latencies in microseconds. One path is a block device of its own with nvme_core.multipath=N; native multipath is the head over two; pollux multipath is both of the former, joined by pollux. " +
		"Spread is the highest mean latency of the rounds over the lowest. Over TCP there are no NVMe interrupts to count.")
	if cpus := r.Boots[0].Guest.CPUs; cpus < workloads[2].jobs {
		d.p("The machine had %s, which the %d threads share.", plural(cpus, "CPU"), workloads[2].jobs)
	}
	for _, w := range workloads {
		d.p("**%s**", w)
		d.table("", "", "", "IOPS (k)>", "average>", "std. dev.>", "99.99th>", "interrupts per I/O>", "rounds>", "spread>")
		for _, what := range []string{pubSingle, pubHeadV2, pubHeadV3, pubHeadOff} {
			p := publishedPath(what, w)
			d.row("published", what, "", fmt.Sprint(p.KIOPS), fmt.Sprint(p.MeanUS), fmt.Sprint(p.StdDev), fmt.Sprint(p.P9999US), none, none, none)
		}
		for _, t := range thirdTargets {
			for _, polling := range []string{On, Off} {
				row := r.find(CasePaths, t.tool, t.target, polling, w.jobs, w.depth)
				if row == nil {
					continue
				}
				if !row.measured() {
					d.row(t.tool, t.target, polled(polling), outcome(row), none, none, none, none, fmt.Sprint(row.Failed), none)
					continue
				}
				m := row.Median
				d.row(t.tool, t.target, polled(polling), kilo(m.IOPS), micro(m.LatencyUS), micro(m.StdDevUS), microOf(m.P9999US),
					optional(m.InterruptsPerIO), fmt.Sprint(len(row.Rounds)), times(row.spread()))
			}
		}
		d.end()
	}
	r.thirdCost(d, "Native multipath against one path", whatHead, TargetHead, TargetPath)
	r.thirdCost(d, "Pollux multipath against one path", whatJoined, TargetJoined, TargetPath)
	r.thirdCost(d, "The same over TCP", whatTCPHead, TargetTCPHead, TargetTCPPath)
	r.thirdPolling(d)
}

// thirdCost compares paths that are joined, called head here whoever does it, with one
// path. A native one is measured in boots of another kind, so what each boot had is shown
// as well.
func (r *Result) thirdCost(d *document, title, what, head, path string) {
	var rows [][]string
	var latencies, rates, of int
	for _, w := range workloads {
		for _, polling := range []string{On, Off} {
			q := r.ratio(what, CasePaths, polling, w.jobs, w.depth)
			if q == nil {
				continue
			}
			a, b := r.find(CasePaths, ToolPollux, head, polling, w.jobs, w.depth), r.find(CasePaths, ToolPollux, path, polling, w.jobs, w.depth)
			latencyWas, rateWas := none, none
			if polling == On {
				head, single := publishedPath(pubHeadV2, w), publishedPath(pubSingle, w)
				latencyWas, rateWas = times(head.MeanUS/single.MeanUS), times(head.KIOPS/single.KIOPS)
			}
			latency := a.Median.LatencyUS > slices.Max(b.latencies(0))
			rate := a.Median.IOPS < slices.Min(b.rates())
			of++
			latencies, rates = latencies+count(latency), rates+count(rate)
			rows = append(rows, []string{w.String(), polled(polling), times(q.Latency), times(q.IOPS), latencyWas, rateWas, byBoot(b), byBoot(a),
				times(b.spread()), yes(latency), yes(rate)})
		}
	}
	if of == 0 {
		return
	}
	d.h(title)
	d.p("Ratios of medians. By boot: the median of each boot's rounds, mean latencies in microseconds. The spread is that of one path's rounds, highest over lowest latency. " +
		"A cost would be a multipath whose median latency is above, or whose median IOPS are below, those of all of these rounds.")
	d.table("", "", "latency>", "IOPS>", "published: latency>", "IOPS>", "one path, by boot>", "multipath, by boot>", "spread>", "latency above all", "IOPS below all")
	for _, cells := range rows {
		d.row(cells...)
	}
	d.end()
	d.p("Its median latency is above all rounds of one path in %d of %s, and its median IOPS are below all in %d.", latencies, plural(of, "row"), rates)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// byBoot are the medians of each boot.
func byBoot(row *Row) string {
	var all []string
	for _, b := range row.boots() {
		all = append(all, micro(median(row.latencies(b))))
	}
	return strings.Join(all, ", ")
}

// thirdPolling compares polled with unpolled, and pollux with fio.
func (r *Result) thirdPolling(d *document) {
	d.h("Polled against not polled, and pollux against fio")
	d.p("Ratios of mean latencies. Published, native multipath (V2): polled / not polled is %s, %s, %s.",
		publishedPolling(workloads[0]), publishedPolling(workloads[1]), publishedPolling(workloads[2]))
	headers := []string{"compared"}
	for _, w := range workloads {
		headers = append(headers, w.String()+">")
	}
	d.table(headers...)
	for _, t := range []struct{ what, polling, title string }{
		{whatPathPolling, "", "polled / not polled, one path"},
		{whatHeadPolling, "", "polled / not polled, native multipath"},
		{whatJoinPolling, "", "polled / not polled, pollux multipath"},
		{whatTCP1Polling, "", "polled / not polled, one TCP path"},
		{whatTCPPolling, "", "polled / not polled, native multipath over TCP"},
		{whatPathsOverFio, On, "pollux / fio, one path, polled"},
		{whatPathsOverFio, Off, "pollux / fio, one path, not polled"},
		{whatHeadOverFio, On, "pollux / fio, native multipath, polled"},
		{whatHeadOverFio, Off, "pollux / fio, native multipath, not polled"},
	} {
		cells, any := []string{t.title}, false
		for _, w := range workloads {
			q := r.ratio(t.what, CasePaths, t.polling, w.jobs, w.depth)
			any = any || q != nil
			cells = append(cells, latencyOf(q))
		}
		if any {
			d.row(cells...)
		}
	}
	d.end()
}

func publishedPolling(w workload) string {
	return times(publishedPath(pubHeadV2, w).MeanUS / publishedPath(pubHeadOff, w).MeanUS)
}
