// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"pollux/internal/bench"
	"pollux/internal/chart"
	"pollux/internal/hist"
	"pollux/poller"
)

// checkOutput finds what is wrong with a file that is to be written in the end, lest
// that is found after an hour, or is a device.
func checkOutput(faults *faults, flag, path string) {
	if path == "" {
		return
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		faults.add("--%s %s: is no regular file", flag, printable(path))
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		faults.add("--%s %s: %v", flag, printable(path), err)
	}
	if flag != "plot" {
		return
	}
	if _, err := chart.FormatOf(path); err != nil {
		faults.add("--plot %v", err)
	}
}

// plot draws what was measured: a sweep against the depth, anything else as the
// distributions of its latencies.
func (b *benchRun) plot() error {
	path := b.flags.plot
	if path == "" {
		return nil
	}
	format, err := chart.FormatOf(path)
	if err != nil {
		return err
	}
	var plots []chart.Plot
	title := fmt.Sprintf("volume %s of %s", b.vol.Stats().Name, counted(len(b.vol.drives), "member"))
	if b.report.Rows != nil {
		title += ", " + b.swept.RW.String() + " of " + bench.FormatSize(b.swept.BS)
		plots = sweepPlots(b.report.Rows)
	} else {
		plots = []chart.Plot{distribution(b.results)}
	}
	var picture bytes.Buffer
	if err := chart.Write(&picture, format, title, plots...); errors.Is(err, chart.ErrNoData) {
		b.warn("--plot %s: nothing was measured that could be drawn", printable(path))
		return nil
	} else if err != nil {
		return err
	}
	return os.WriteFile(path, picture.Bytes(), 0o644)
}

// sweepPlots are latency and IOPS against depth, with polling off and on.
func sweepPlots(rows []bench.Row) []chart.Plot {
	var depths []float64
	for _, d := range bench.SweepDepths {
		depths = append(depths, float64(d))
	}
	latency := chart.Plot{Title: "latency", X: "queue depth", Y: "microseconds, the mean", LogX: true, LogY: true, XTicks: depths}
	iops := chart.Plot{Title: "throughput", X: "queue depth", Y: "IOPS", LogX: true, XTicks: depths}
	for group, polling := range []string{"off", "on"} {
		name := "polling " + polling
		l, r := chart.Line{Name: name, Group: group}, chart.Line{Name: name, Group: group}
		for _, row := range rows {
			if row.Polling == polling {
				l.Points = append(l.Points, chart.Point{X: float64(row.QD), Y: float64(row.LatencyUS)})
				r.Points = append(r.Points, chart.Point{X: float64(row.QD), Y: float64(row.IOPS)})
			}
		}
		latency.Lines, iops.Lines = append(latency.Lines, l), append(iops.Lines, r)
	}
	return []chart.Plot{latency, iops}
}

// distribution is which share of a job's I/Os took at most how long, those polled and
// those not apart.
func distribution(results []bench.Result) chart.Plot {
	plot := chart.Plot{Title: "latency", X: "microseconds", Y: "% of I/Os that took at most that", LogX: true}
	for group, r := range results {
		for _, mode := range []poller.Mode{poller.Plain, poller.Polled} {
			h := r.Latency(mode)
			total := float64(h.Count())
			if total == 0 {
				continue
			}
			line := chart.Line{Name: r.Job.Name + ", " + mode.String(), Group: group, Dashed: mode == poller.Plain}
			below := uint64(0)
			for i, n := range h.Buckets {
				if n == 0 {
					continue
				}
				// A bucket's I/Os lie between its bounds.
				if below == 0 {
					line.Points = append(line.Points, chart.Point{X: float64(hist.LowerBound(i)) / 1e3})
				}
				below += n
				line.Points = append(line.Points, chart.Point{X: float64(hist.UpperBound(i)) / 1e3, Y: 100 * float64(below) / total})
			}
			plot.Lines = append(plot.Lines, line)
		}
	}
	return plot
}
