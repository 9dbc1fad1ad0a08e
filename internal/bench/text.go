// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
)

// WriteText writes the report for people. Latencies are in microseconds, as in
// the published tables.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	r.Pollux.text(&b)
	for _, job := range r.Jobs {
		job.text(&b)
	}
	if len(r.Jobs) > 1 && r.Pollux.Group != nil {
		r.Pollux.Group.text(&b)
	}
	if r.Verify != nil {
		r.Verify.text(&b)
	}
	if r.Compare != nil {
		r.Compare.text(&b)
	}
	if r.Rows != nil {
		sweepText(&b, r.Rows)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (e Environment) text(b *strings.Builder) {
	fmt.Fprintf(b, "volume of %d members, chunk %s, %s\n", len(e.Members), FormatSize(e.Chunk), humanize.IBytes(uint64(e.Size)))
	for i, m := range e.Members {
		how := "polled"
		if !m.Polled {
			how = "NOT polled, driven by interrupts"
		}
		if m.PathPolicy != "" {
			how += fmt.Sprintf(", %d paths by %s", len(m.Paths), m.PathPolicy)
		}
		fmt.Fprintf(b, "  member %d: %s, %s, %s\n", i, m.Path, humanize.IBytes(uint64(m.Size)), how)
		for _, p := range m.Paths {
			p.text(b)
		}
	}
}

func (p PathInfo) text(b *strings.Builder) {
	fmt.Fprintf(b, "    path %s", p.Path)
	if p.Transport != "" {
		fmt.Fprintf(b, " (%s %s)", p.Transport, p.Address)
	}
	fmt.Fprintf(b, ": %s, %s I/Os of which %s polled, avg=%.2f usec, %s errors, %s sent again elsewhere", p.State,
		comma(p.PolledIOs+p.PlainIOs), comma(p.PolledIOs), float64(p.CLat.Mean)/1e3, comma(p.Errors), comma(p.Retries))
	if p.Error != "" {
		fmt.Fprintf(b, "; %s", p.Error)
	}
	b.WriteByte('\n')
}

func (j FioJob) text(b *strings.Builder) {
	o := j.Options
	fmt.Fprintf(b, "%s: rw=%s, bs=%s, iodepth=%s, hipri=%s", j.JobName, o["rw"], o["bs"], o["iodepth"], o["hipri"])
	if granted := j.Pollux.IODepth; granted > 0 && fmt.Sprint(granted) != o["iodepth"] {
		fmt.Fprintf(b, " (granted: iodepth=%d)", granted)
	}
	b.WriteByte('\n')
	if n := j.Pollux.NumJobs; n > 1 {
		fmt.Fprintf(b, "  %d jobs, of which each did %s I/Os at least and %s at most\n", n,
			comma(slices.Min(j.Pollux.IOsPerJob)), comma(slices.Max(j.Pollux.IOsPerJob)))
	}
	j.Read.text(b, "read")
	j.Write.text(b, "write")
	j.Pollux.Polled.text(b, "polled")
	j.Pollux.Plain.text(b, "not polled")
	total := j.Pollux.PolledIOs + j.Pollux.PlainIOs
	fmt.Fprintf(b, "  polled: %s of %s I/Os", comma(j.Pollux.PolledIOs), comma(total))
	if j.beside {
		b.WriteByte('\n') // the rest is known of all jobs together
		return
	}
	fmt.Fprintf(b, ", NVMe interrupts per I/O: %s", optional(j.Pollux.InterruptsPerIO, "%.2f"))
	fmt.Fprintf(b, ", io_uring worker threads: %d\n", j.Pollux.WorkerThreads)
}

// text writes nothing where all I/Os were of one mode.
func (m *ModeRates) text(b *strings.Builder, name string) {
	if m == nil {
		return
	}
	c := m.CLat
	fmt.Fprintf(b, "  %s: IOPS=%s (%s I/Os), clat (usec): avg=%.2f, stdev=%.2f, 99.99th=%.2f\n", name, comma(uint64(m.IOPS)), comma(m.TotalIOs),
		float64(c.Mean)/1e3, float64(c.StdDev)/1e3, c.at(99.99)/1e3)
}

// at returns the percentile p in nanoseconds.
func (q FioQuantity) at(p float64) float64 { return float64(q.latency.Percentile(p)) }

// text is the line for several jobs.
func (g GroupInfo) text(b *strings.Builder) {
	fmt.Fprintf(b, "all jobs: IOPS=%s, polled: %s of %s I/Os, NVMe interrupts per I/O: %s, per I/O that was not polled: %s, io_uring worker threads: %d\n",
		comma(uint64(g.IOPS)), comma(g.PolledIOs), comma(g.PolledIOs+g.PlainIOs),
		optional(g.InterruptsPerIO, "%.2f"), optional(g.InterruptsPerPlainIO, "%.2f"), g.Workers)
}

// text writes nothing for an operation that did not happen.
func (r FioRates) text(b *strings.Builder, name string) {
	if r.TotalIOs == 0 {
		return
	}
	fmt.Fprintf(b, "  %s: IOPS=%s, BW=%s/s (%s in %.3f s, %s I/Os)\n", name, comma(uint64(r.IOPS)),
		humanize.IBytes(r.BWBytes), humanize.IBytes(r.IOBytes), float64(r.Runtime)/1e3, comma(r.TotalIOs))
	c := r.CLat
	fmt.Fprintf(b, "    clat (usec): min=%.2f, avg=%.2f, max=%.2f, stdev=%.2f\n",
		float64(c.Min)/1e3, float64(c.Mean)/1e3, float64(c.Max)/1e3, float64(c.StdDev)/1e3)
	b.WriteString("    percentiles (usec):")
	for _, p := range c.Percentile {
		switch p.p {
		case 1, 50, 90, 99, 99.9, 99.99:
			fmt.Fprintf(b, " %gth=%.2f", p.p, float64(p.ns)/1e3)
		}
	}
	b.WriteByte('\n')
}

func (v Verified) text(b *strings.Builder) {
	if v.First == nil {
		fmt.Fprintf(b, "verify: %s bytes read back, all as written (seed %d)\n", comma(uint64(v.Bytes)), v.Seed)
		return
	}
	fmt.Fprintf(b, "verify: %s bytes read back, %d blocks are WRONG (seed %d)\n  first: %v\n",
		comma(uint64(v.Bytes)), v.WrongBlocks, v.Seed, v.First)
}

// sweepText writes the columns of the published table, the ratios of on to off,
// and the proof of polling.
func sweepText(b *strings.Builder, rows []Row) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "QD\toff latency\toff IOPS\ton latency\ton IOPS\ton/off latency\ton/off IOPS\toff intr/IO\ton intr/IO\t")
	for _, qd := range SweepDepths {
		off, on := find(rows, "off", qd), find(rows, "on", qd)
		if off == nil && on == nil {
			continue
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", qd,
			off.latency(), off.rate(), on.latency(), on.rate(),
			on.latencyRatio(), on.rateRatio(), off.interrupts(), on.interrupts())
	}
	_ = w.Flush() // to a strings.Builder, which takes everything
	for _, r := range rows {
		if r.Polling == "on" && r.PolledIOs < r.TotalIOs {
			b.WriteString("\"on\" asked for polling and did NOT get it for all I/O: see the members\n")
			break
		}
	}
	b.WriteString("latency in microseconds, the mean; medians of all rounds; intr/IO: NVMe interrupts per I/O\n")
}

func find(rows []Row, polling string, qd int) *Row {
	for i := range rows {
		if rows[i].Polling == polling && rows[i].QD == qd {
			return &rows[i]
		}
	}
	return nil
}

// The cells of the table are "-" for a row that was not measured.

func (r *Row) latency() string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(r.LatencyUS))
}

func (r *Row) rate() string {
	if r == nil {
		return "-"
	}
	return comma(uint64(r.IOPS))
}

func (r *Row) latencyRatio() string {
	if r == nil {
		return "-"
	}
	return optional(r.LatencyRatio, "%.2f")
}

func (r *Row) rateRatio() string {
	if r == nil {
		return "-"
	}
	return optional(r.IOPSRatio, "%.2f")
}

func (r *Row) interrupts() string {
	if r == nil {
		return "-"
	}
	return optional(r.InterruptsPerIO, "%.2f")
}

func optional(d *decimal, format string) string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf(format, float64(*d))
}

func comma(n uint64) string { return humanize.Comma(int64(n)) }
