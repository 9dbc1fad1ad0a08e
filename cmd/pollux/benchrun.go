// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"pollux/internal/bench"
	"pollux/internal/blockdev"
	"pollux/internal/uring"
	"pollux/poller"
)

// errInterrupted ends a bench that a signal has ended early.
var errInterrupted = errors.New("ended early by a signal: the figures are of what was measured until then")

// run measures what the flags ask for and prints it, also when it fails on the
// way.
func (f *benchFlags) run(cmd *cobra.Command, devices []string) (err error) {
	if err := f.check(devices); err != nil {
		return err
	}
	if ignored := f.jobs.Ignored; len(ignored) > 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "pollux: ignored, as it cannot matter here: "+strings.Join(ignored, ", "))
	}
	if f.writes() && !f.destructive {
		what := devices[0]
		if !f.build {
			what = "volume " + what
		}
		return refusal(fmt.Sprintf("%s: this bench writes, and what is on it would be lost; say --destructive if that is meant", what))
	}
	vol, err := f.open(devices)
	if err != nil {
		return f.cure(err)
	}
	defer func() {
		if e := vol.Close(); err == nil {
			err = e
		}
	}()
	for _, path := range []string{f.output, f.plot} {
		if err := vol.refuseMember(path); err != nil {
			return err
		}
	}
	b := &benchRun{flags: f, vol: vol, stderr: cmd.ErrOrStderr()}
	b.describe()
	unwatch, err := b.watch()
	if err != nil {
		return err
	}
	defer func() {
		if e := unwatch(cmd.Context()); err == nil {
			err = e
		}
	}()
	err = f.cure(b.measure(cmd.Context()))
	if err == nil && cmd.Context().Err() != nil {
		err = errInterrupted
	}
	if !b.measured {
		return err
	}
	b.addPaths()
	b.report.Pollux.SinceOpen = bench.Totals(b.vol.Stats())
	if err != nil {
		b.report.Pollux.Error = oneLine(err.Error())
	}
	// The picture first, as what is wrong with it is told in the report.
	plotted := b.plot()
	if e := b.print(cmd.OutOrStdout()); err == nil {
		err = e
	}
	if err == nil {
		err = plotted
	}
	return err
}

// print writes the report where the flags say.
func (b *benchRun) print(stdout io.Writer) error {
	f := b.flags
	write := b.report.WriteText
	if f.format != formatText {
		write = b.report.WriteJSON
	}
	if f.format == formatJSONPlus {
		b.report.FullBins()
	}
	if f.output == "" {
		return write(stdout)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	return os.WriteFile(f.output, text.Bytes(), 0o644)
}

// cure adds to an error what helps against it.
func (f *benchFlags) cure(err error) error {
	var failed *poller.Error
	switch {
	case errors.Is(err, poller.ErrNotPollable) && !f.allowUnpolled:
		return cured{err, "or drive it by interrupts: --allow-unpolled"}
	case errors.As(err, &failed):
		return cured{err, "dmesg has what the kernel says about the drive"}
	}
	return err
}

// cured is an error with one more cure.
type cured struct {
	error
	cure string
}

func (e cured) Error() string {
	// What the drive's driver has to say about polling ends in a library's
	// words for the same.
	text := strings.ReplaceAll(e.error.Error(), ", or allow unpolled I/O", "")
	return text + "; " + e.cure
}

func (e cured) Unwrap() error { return e.error }

// benchRun is one use of the command.
type benchRun struct {
	flags    *benchFlags
	vol      stack
	stderr   io.Writer
	report   bench.Report
	results  []bench.Result
	swept    bench.Job // of a sweep
	measured bool      // there is something to report
}

// describe puts into the report what is known before anything is measured.
func (b *benchRun) describe() {
	l := b.vol.Limits()
	geometry := b.vol.Geometry()
	_, _, release := blockdev.KernelVersion()
	b.report.Version = version()
	b.report.Pollux = bench.Environment{
		RingBackend: uring.Backend,
		Kernel:      release,
		Chunk:       geometry.Chunk(),
		Size:        l.Size,
		BlockSize:   l.BlockSize,
		Ignored:     b.flags.jobs.Ignored,
	}
	f := b.flags
	for _, d := range b.vol.drives {
		m := bench.MemberInfo{Path: d.info().Path, Size: d.info().Size, Polled: true}
		if why := d.device.Limits().NotPollable; why != nil {
			m.Polled, m.NotPolled = false, oneLine(why.Error())
			if f.jobs.Polls() {
				b.warn("%v; going on by interrupts", why)
			}
		}
		if text := d.missingPaths(); text != "" {
			b.warn("%s", text)
		}
		b.report.Pollux.Members = append(b.report.Pollux.Members, m)
	}
}

// measure runs what the flags ask for.
func (b *benchRun) measure(ctx context.Context) error {
	f := b.flags
	jobs, err := f.prepare(b.vol.Limits())
	if err != nil {
		return err
	}
	if f.fill {
		if err := b.fill(ctx, jobs); err != nil || ctx.Err() != nil {
			return err
		}
	} else if !f.writes() && !f.verify && neverWritten(b.vol, jobs) {
		b.warn("all that was looked at reads as zeros, as on a drive that was never written: it answers from its mapping table, faster than where data is; --fill --destructive writes first")
	}
	switch {
	case f.sweep:
		return b.sweep(ctx, jobs[0])
	case f.verify:
		return b.verify(ctx, jobs[0])
	case f.compare != "":
		return b.compareWithFio(ctx, jobs[0])
	}
	stop := b.progress(jobs)
	group, err := bench.RunJobs(ctx, b.vol, jobs)
	stop()
	for _, r := range group.Results {
		b.add(r)
	}
	if b.measured {
		b.report.Pollux.Group = group.Fio()
		b.warnWorkers(group.Workers)
	}
	return err
}

func (b *benchRun) sweep(ctx context.Context, job bench.Job) error {
	rows, last, err := bench.Sweep(ctx, b.vol, job, b.flags.rounds, b.step)
	b.clearProgress()
	b.report.Rows, b.swept = rows, last.Job
	b.measured = len(rows) > 0
	granted, workers := 0, 0
	for _, row := range rows {
		if row.Granted < row.QD {
			granted = row.Granted
		}
		if row.Polling == "on" {
			workers = max(workers, row.WorkerThreads)
		}
	}
	if granted > 0 {
		b.warn("the volume grants a depth of %d: deeper rows are of that", granted)
	}
	b.warnWorkers(workers)
	return err
}

func (b *benchRun) verify(ctx context.Context, job bench.Job) error {
	stop := b.progress([]bench.Job{job})
	found, results, err := bench.Verify(ctx, b.vol, job)
	stop()
	for _, r := range results {
		b.add(r)
		b.warnWorkers(r.Workers)
	}
	if b.measured {
		b.report.Verify = &found
	}
	var wrong *bench.Mismatch
	if !errors.As(err, &wrong) {
		return err
	}
	geometry := b.vol.Geometry()
	wrong.Member, wrong.MemberOffset, _ = geometry.At(wrong.Offset)
	return fmt.Errorf("%s: %w; %d blocks of %s differ: the drive, or another program wrote there",
		b.vol.drives[wrong.Member].info().Path, wrong, found.WrongBlocks, bench.FormatSize(results[len(results)-1].Job.BS))
}

// add puts a result into the report.
func (b *benchRun) add(r bench.Result) {
	if r.Elapsed == 0 {
		return // refused before anything was measured
	}
	b.measured = true
	b.report.Jobs = append(b.report.Jobs, r.Fio())
	b.results = append(b.results, r)
	if r.IODepth > 0 && r.IODepth < r.Job.IODepth {
		b.warn("the volume grants a depth of %d, not %d: its drives hold no more at once", r.IODepth, r.Job.IODepth)
	}
}

// warnWorkers tells when polled I/O is not what was measured.
func (b *benchRun) warnWorkers(workers int) {
	if workers > 0 && b.flags.jobs.Polls() && b.vol.Limits().NotPollable == nil {
		b.warn("%d io_uring worker threads: the kernel polls in them instead of in the caller, which is slow; use a smaller --iodepth or --bs", workers)
	}
}

// warn tells it at once, and the report as well.
func (b *benchRun) warn(format string, args ...any) {
	line := oneLine(fmt.Sprintf(format, args...))
	b.report.Pollux.Warnings = append(b.report.Pollux.Warnings, line)
	warn(b.stderr, "%s", line)
}
