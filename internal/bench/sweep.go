// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"slices"

	"pollux/poller"
)

// SweepDepths are the queue depths of the published table.
var SweepDepths = []int{1, 2, 4, 8, 16, 32, 64, 128}

// Row is one point of a sweep.
type Row struct {
	// Polling is "on" or "off".
	Polling string `json:"polling"`
	QD      int    `json:"qd"`
	// Granted is the depth that the device gave.
	Granted int `json:"iodepth_granted"`
	// LatencyUS, the mean in microseconds, and IOPS are the medians of the
	// rounds.
	LatencyUS decimal `json:"latency_us"`
	IOPS      decimal `json:"iops"`
	// InterruptsPerIO is over all rounds; nil if the host has no NVMe
	// interrupts to count.
	InterruptsPerIO *decimal `json:"interrupts_per_io"`
	// The ratios of a row with polling to the one without, on over off.
	LatencyRatio *decimal `json:"latency_ratio,omitempty"`
	IOPSRatio    *decimal `json:"iops_ratio,omitempty"`
	// WorkerThreads is the most that any round saw.
	WorkerThreads int `json:"iou_wrk_threads"`
	// PolledIOs of TotalIOs were polled, over all rounds.
	PolledIOs uint64 `json:"polled_ios"`
	TotalIOs  uint64 `json:"total_ios"`
}

// Step tells what a sweep is about to measure.
type Step struct {
	Round, Rounds int
	QD            int
	HiPri         bool
}

// Sweep runs job at every depth of SweepDepths, plain and, if job.HiPri, polled
// next to it, rounds times over. Taking turns means that what disturbs the host
// for a while disturbs both; medians leave out what disturbs one round.
// job.Runtime is the time of one point in one round. progress, if not nil, is
// called before each.
//
// The rows are in the order of the depths, plain before polled. When ctx is
// cancelled or a run fails, they are of what was measured so far.
func Sweep(ctx context.Context, dev poller.Device, job Job, rounds int, progress func(Step)) ([]Row, Result, error) {
	modes := []int{0}
	if job.HiPri > 0 {
		modes = append(modes, 100)
	}
	points := make([][]Result, len(SweepDepths)*len(modes))
	var last Result
	var err error
measure:
	for round := range rounds {
		for i := range points {
			step := job
			step.IODepth, step.HiPri = SweepDepths[i/len(modes)], modes[i%len(modes)]
			if progress != nil {
				progress(Step{round + 1, rounds, step.IODepth, step.HiPri > 0})
			}
			// Each round draws other blocks, both modes of it the same.
			step.Seed += uint64(round)
			last, err = Run(ctx, dev, step)
			if err != nil || last.Interrupted {
				break measure
			}
			points[i] = append(points[i], last)
		}
	}
	var rows []Row
	for i, results := range points {
		if len(results) == 0 {
			continue
		}
		row := newRow(results)
		if modes[i%len(modes)] > 0 && len(points[i-1]) != 0 {
			off := newRow(points[i-1])
			row.LatencyRatio = ratio(row.LatencyUS, off.LatencyUS)
			row.IOPSRatio = ratio(row.IOPS, off.IOPS)
		}
		rows = append(rows, row)
	}
	return rows, last, err
}

// newRow sums up the rounds of a point.
func newRow(results []Result) Row {
	row := Row{Polling: "off", QD: results[0].Job.IODepth, Granted: results[0].IODepth}
	if results[0].Job.HiPri > 0 {
		row.Polling = "on"
	}
	var latencies, iops []float64
	var interrupts uint64
	known := true
	for _, r := range results {
		read, write := r.Rates(poller.Read), r.Rates(poller.Write)
		both := read.Latency.Add(write.Latency)
		if n := both.Count(); n > 0 {
			latencies = append(latencies, float64(both.Sum)/float64(n)/1e3)
		}
		iops = append(iops, read.IOPS+write.IOPS)
		row.TotalIOs += read.IOs + write.IOs
		row.PolledIOs += read.Polled + write.Polled
		row.WorkerThreads = max(row.WorkerThreads, r.Workers)
		row.Granted = min(row.Granted, r.IODepth)
		interrupts += r.Interrupts
		known = known && r.InterruptsKnown
	}
	row.LatencyUS, row.IOPS = decimal(median(latencies)), decimal(median(iops))
	if known {
		row.InterruptsPerIO = ratio(decimal(interrupts), decimal(row.TotalIOs))
	}
	return row
}

func ratio(a, b decimal) *decimal {
	if b == 0 {
		return nil
	}
	q := a / b
	return &q
}

// median returns the middle value, the mean of the two middle ones, or 0 of
// none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
