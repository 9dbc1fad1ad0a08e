// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"

	"pollux/internal/chart"
)

// Plots returns the picture of an experiment.
func (r *Result) Plots() (title string, plots []chart.Plot) {
	title = fmt.Sprintf("%d. %s", r.Experiment, r.Title)
	if r.Emulated {
		title += " (emulated drives: only ratios count)"
	}
	switch r.Experiment {
	case 1:
		return title, r.firstPlots()
	case 2:
		return title, r.secondPlots()
	}
	return title, r.thirdPlots()
}

const meanAxis = "mean latency (µs)"

// byRound is a row's mean latency in each of its rounds, over all boots.
func byRound(row *Row) []chart.Point {
	var points []chart.Point
	if row == nil {
		return nil
	}
	for i, round := range row.Rounds {
		points = append(points, chart.Point{X: float64(i + 1), Y: round.LatencyUS})
	}
	return points
}

// roundTicks are as many as the longest line has.
func roundTicks(lines []chart.Line) []float64 {
	n := 0
	for _, l := range lines {
		n = max(n, len(l.Points))
	}
	var ticks []float64
	for i := range n {
		ticks = append(ticks, float64(i+1))
	}
	return ticks
}

// firstPlots have the three runs in which polled and plain I/O meet.
func (r *Result) firstPlots() []chart.Plot {
	var plots []chart.Plot
	for _, s := range firstRuns[:3] {
		p := chart.Plot{Title: s.title, X: "round", Y: meanAxis}
		for group, polling := range []string{On, Off} {
			row := r.find(s.name, s.tool, s.target, polling, s.jobs, 1)
			p.Lines = append(p.Lines, chart.Line{Name: polled(polling), Points: byRound(row), Group: group + 1})
		}
		p.XTicks = roundTicks(p.Lines)
		plots = append(plots, p)
	}
	return plots
}

// secondPlots have latency and IOPS against depth.
func (r *Result) secondPlots() []chart.Plot {
	latency := chart.Plot{Title: "Latency", X: "queue depth", Y: meanAxis, LogX: true, LogY: true}
	rate := chart.Plot{Title: "IOPS", X: "queue depth", Y: "IOPS", LogX: true}
	for _, qd := range r.depths() {
		latency.XTicks = append(latency.XTicks, float64(qd))
	}
	rate.XTicks = latency.XTicks
	for _, l := range []struct {
		name, tool, target, polling string
		group                       int
	}{
		{"pollux, polled", ToolPollux, TargetStripe, On, 1},
		{"pollux, not polled", ToolPollux, TargetStripe, Off, 1},
		{"dm-stripe, polled", ToolFio, TargetDM, On, 2},
		{"dm-stripe, not polled", ToolFio, TargetDM, Off, 2},
		{"md raid0, not polled", ToolFio, TargetMD, Off, 3},
	} {
		line := chart.Line{Name: l.name, Group: l.group, Dashed: l.polling == Off}
		other := line
		for _, qd := range r.depths() {
			if row := r.find(CaseSweep, l.tool, l.target, l.polling, 1, qd); row.measured() {
				line.Points = append(line.Points, chart.Point{X: float64(qd), Y: row.Median.LatencyUS})
				other.Points = append(other.Points, chart.Point{X: float64(qd), Y: row.Median.IOPS})
			}
		}
		latency.Lines, rate.Lines = append(latency.Lines, line), append(rate.Lines, other)
	}
	return []chart.Plot{latency, rate}
}

// thirdPlots have one path and paths that are joined, by workload: first of the drive,
// then over TCP.
func (r *Result) thirdPlots() []chart.Plot {
	var plots []chart.Plot
	for _, where := range []struct {
		targets []string
		name    string
	}{
		{[]string{TargetPath, TargetHead, TargetJoined}, ""}, {[]string{TargetTCPPath, TargetTCPHead}, "TCP, "},
	} {
		for _, w := range workloads {
			p := chart.Plot{Title: fmt.Sprintf("%s%s, QD%d", where.name, plural(w.jobs, "thread"), w.depth), X: "round", Y: meanAxis}
			for group, target := range where.targets {
				for _, polling := range []string{On, Off} {
					name := []string{TargetPath, TargetHead, TargetJoined}[group] + ", " + polled(polling)
					row := r.find(CasePaths, ToolPollux, target, polling, w.jobs, w.depth)
					p.Lines = append(p.Lines, chart.Line{Name: name, Points: byRound(row), Group: group + 1, Dashed: polling == Off})
				}
			}
			p.XTicks = roundTicks(p.Lines)
			plots = append(plots, p)
		}
	}
	return plots
}
