// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"pollux/internal/bench"
	"pollux/internal/rival"
)

// fioMembers stands for the drives of the volume.
const fioMembers = "members"

// checkCompare finds what does not go with --compare.
func (f *benchFlags) checkCompare(faults *faults) {
	device, ok := strings.CutPrefix(f.compare, "fio:")
	switch {
	case f.compare == "":
		return
	case !ok || device == "":
		faults.add("--compare %s: write fio:DEVICE, or fio:members", printable(f.compare))
	case f.sweep || f.verify || f.plot != "":
		faults.add("--compare excludes --sweep, --verify and --plot")
	case f.jobs.Len() > 1:
		faults.add("--compare takes one job; there are %d", f.jobs.Len())
	case f.writes() && !f.fill && device == fioMembers && !f.build:
		faults.add("--compare fio:members: fio would write over the superblocks of the volume; name another device")
	}
}

// compareWithFio runs the job here and by fio, in turns.
func (b *benchRun) compareWithFio(ctx context.Context, job bench.Job) error {
	f := b.flags
	device := strings.TrimPrefix(f.compare, "fio:")
	devices := []string{device}
	if device == fioMembers {
		devices = nil
		for _, d := range b.vol.drives {
			devices = append(devices, d.info().Path)
		}
	}
	command, err := rival.Command(devices, job)
	if err != nil {
		return usageError(err.Error())
	}
	compared := &bench.Compared{Rival: "fio on " + strings.Join(devices, ", "), Command: command}
	defer b.clearProgress()
	for round := range f.rounds {
		step := job
		// Each round draws other offsets.
		step.Seed += uint64(round)
		if b.onTerminal() {
			b.show("round %d of %d: pollux", round+1, f.rounds)
		}
		ours, err := bench.Run(ctx, b.vol, step)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if b.onTerminal() {
			b.show("round %d of %d: fio", round+1, f.rounds)
		}
		theirs, err := rival.Run(ctx, devices, step, f.destructive && job.RW.Writes())
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		compared.Version = theirs.Version
		compared.Add(ours.Figures(), bench.NewFigures(theirs.IOPS, theirs.LatencyMean, theirs.LatencyP9999))
		b.report.Compare, b.measured = compared, true
	}
	return nil
}
