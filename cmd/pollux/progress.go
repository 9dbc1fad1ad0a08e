// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"pollux/internal/bench"
	"pollux/internal/hist"
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
func (b *benchRun) progress(jobs []bench.Job) (stop func()) {
	if !b.onTerminal() {
		return func() {}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		start, first := time.Now(), b.vol.Stats()
		last, before := start, first
		for {
			select {
			case <-quit:
				b.clearProgress()
				return
			case now := <-ticker.C:
				stats := b.vol.Stats()
				b.show("%s", liveLine(stats.Sub(before), now.Sub(last))+b.timeLeft(jobs, now.Sub(start), stats.Sub(first)))
				last, before = now, stats
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// liveLine is what happened in so much time.
func liveLine(s poller.Stats, d time.Duration) string {
	var latency hist.Histogram
	var polled, bytes uint64
	for _, op := range []poller.Op{poller.Read, poller.Write} {
		for mode, io := range s.IO[op] {
			latency = latency.Add(io.Latency)
			bytes += io.Bytes
			if poller.Mode(mode) == poller.Polled {
				polled += io.Latency.Count()
			}
		}
	}
	n := latency.Count()
	line := fmt.Sprintf("%s IOPS, %s/s", humanize.Comma(int64(float64(n)/d.Seconds())), humanize.IBytes(uint64(float64(bytes)/d.Seconds())))
	if n > 0 {
		line += fmt.Sprintf(", p99 %.0f us, %d %% polled", float64(latency.Percentile(99))/1e3, 100*polled/n)
	}
	return line
}

// timeLeft says how much longer it takes, "" if that cannot be told yet. since is what
// happened since the start.
func (b *benchRun) timeLeft(jobs []bench.Job, elapsed time.Duration, since poller.Stats) string {
	left := time.Duration(0)
	var want, done int64
	for _, j := range jobs {
		left = max(left, j.RampTime+j.Runtime-elapsed)
		if j.Runtime > 0 {
			continue
		}
		size := j.IOSize * int64(max(j.NumJobs, 1))
		if size == 0 { // all of it once
			if size = j.Size; size == 0 {
				size = b.vol.Limits().Size - j.Offset
			}
			if b.flags.verify && j.RW.Writes() {
				size *= 2 // written and read back
			}
		}
		want += size
	}
	for _, op := range []poller.Op{poller.Read, poller.Write} {
		for _, io := range since.IO[op] {
			done += int64(io.Bytes)
		}
	}
	if want > 0 && done > 0 {
		left = max(left, time.Duration(float64(elapsed)*float64(max(want-done, 0))/float64(done)))
	}
	if want > 0 && done == 0 {
		return ""
	}
	return fmt.Sprintf(", %v left", left.Round(time.Second))
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
