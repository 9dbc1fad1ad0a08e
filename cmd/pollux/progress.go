// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"pollux/internal/bench"
	"pollux/poller"
)

// onTerminal says that somebody is watching.
func (b *benchRun) onTerminal() bool { return isTerminal(b.stderr) }

// show replaces the line of progress.
func (b *benchRun) show(format string, args ...any) {
	const toColumn0AndErase = "\r\x1b[K"
	fmt.Fprintf(b.stderr, toColumn0AndErase+format, args...)
}

func (b *benchRun) clearProgress() {
	if b.onTerminal() {
		b.show("")
	}
}

// progress shows a line every second until the returned function is called. It
// reads the volume's statistics, as any observer may, and costs the generator
// nothing.
func (b *benchRun) progress(job bench.Job) (stop func()) {
	if !b.onTerminal() {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		start := time.Now()
		last, before := start, b.total()
		first := before
		for {
			select {
			case <-quit:
				b.clearProgress()
				return
			case now := <-ticker.C:
				total := b.total()
				rate := float64(total.ios-before.ios) / now.Sub(last).Seconds()
				b.show("%s IOPS, %.0f %%", humanize.Comma(int64(rate)),
					100*b.share(job, now.Sub(start), total.bytes-first.bytes))
				last, before = now, total
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// step shows what a sweep is about to measure.
func (b *benchRun) step(s bench.Step) {
	if !b.onTerminal() {
		return
	}
	polling := "off"
	if s.HiPri {
		polling = "on"
	}
	b.show("round %d of %d: depth %d, polling %s", s.Round, s.Rounds, s.QD, polling)
}

// totals are what progress is made of.
type totals struct{ ios, bytes uint64 }

func (b *benchRun) total() (t totals) {
	stats := b.vol.Stats()
	for _, op := range []poller.Op{poller.Read, poller.Write} {
		for _, io := range stats.IO[op] {
			t.ios += io.Latency.Count()
			t.bytes += io.Bytes
		}
	}
	return t
}

// share returns how much of the job is done, from 0 to 1.
func (b *benchRun) share(job bench.Job, elapsed time.Duration, bytes uint64) float64 {
	want := job.IOSize
	if b.flags.verify {
		if want = job.Size; want == 0 {
			want = b.vol.Limits().Size
		}
		if job.RW.Writes() {
			want *= 2 // written and read back
		}
	}
	done := 0.0
	if want > 0 {
		done = float64(bytes) / float64(want)
	}
	if job.Runtime > 0 {
		done = max(done, float64(elapsed)/float64(job.Runtime))
	}
	return min(done, 1)
}
