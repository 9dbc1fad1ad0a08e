// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"pollux/poller"
)

// Compared is a job beside the same job of a rival, measured in turns.
type Compared struct {
	// Rival says what ran it on what, Command how.
	Rival   string   `json:"rival"`
	Version string   `json:"rival_version"`
	Command []string `json:"command"`
	// Pollux and RivalFigures are medians of the rounds, Ratio pollux over the rival.
	Pollux       Figures         `json:"pollux"`
	RivalFigures Figures         `json:"rival_figures"`
	Ratio        Figures         `json:"ratio"`
	Rounds       []ComparedRound `json:"rounds"`
}

// ComparedRound is one turn of both.
type ComparedRound struct {
	Pollux Figures `json:"pollux"`
	Rival  Figures `json:"rival"`
}

// Figures are of all I/Os of a job, reads and writes together; latencies are in
// microseconds.
type Figures struct {
	IOPS      decimal `json:"iops"`
	LatencyUS decimal `json:"latency_us"`
	P9999US   decimal `json:"latency_p99_99_us"`
}

// NewFigures makes figures of IOPS and of latencies in nanoseconds.
func NewFigures(iops, mean, p9999 float64) Figures {
	return Figures{decimal(iops), decimal(mean / 1e3), decimal(p9999 / 1e3)}
}

// Figures returns those of the job.
func (r Result) Figures() Figures {
	h := r.Latency(poller.Plain).Add(r.Latency(poller.Polled))
	mean := 0.0
	if n := h.Count(); n > 0 {
		mean = float64(h.Sum) / float64(n)
	}
	return NewFigures(perSecond(h.Count(), r.Elapsed), mean, float64(h.Percentile(99.99)))
}

// Add adds a round, and brings medians and ratios up to date.
func (c *Compared) Add(ours, theirs Figures) {
	c.Rounds = append(c.Rounds, ComparedRound{ours, theirs})
	middle := func(of func(ComparedRound) decimal) decimal {
		var values []float64
		for _, r := range c.Rounds {
			values = append(values, float64(of(r)))
		}
		return decimal(median(values))
	}
	c.Pollux = Figures{
		middle(func(r ComparedRound) decimal { return r.Pollux.IOPS }),
		middle(func(r ComparedRound) decimal { return r.Pollux.LatencyUS }),
		middle(func(r ComparedRound) decimal { return r.Pollux.P9999US }),
	}
	c.RivalFigures = Figures{
		middle(func(r ComparedRound) decimal { return r.Rival.IOPS }),
		middle(func(r ComparedRound) decimal { return r.Rival.LatencyUS }),
		middle(func(r ComparedRound) decimal { return r.Rival.P9999US }),
	}
	quotient := func(a, b decimal) decimal {
		if b == 0 {
			return 0
		}
		return a / b
	}
	c.Ratio = Figures{
		quotient(c.Pollux.IOPS, c.RivalFigures.IOPS),
		quotient(c.Pollux.LatencyUS, c.RivalFigures.LatencyUS),
		quotient(c.Pollux.P9999US, c.RivalFigures.P9999US),
	}
}

func (c *Compared) text(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tIOPS\tlatency\t99.99th\t")
	row := func(name string, f Figures) {
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\t\n", name, comma(uint64(f.IOPS)), float64(f.LatencyUS), float64(f.P9999US))
	}
	row("pollux", c.Pollux)
	row(c.Rival, c.RivalFigures)
	fmt.Fprintf(w, "pollux/fio\t%.2f\t%.2f\t%.2f\t\n", float64(c.Ratio.IOPS), float64(c.Ratio.LatencyUS), float64(c.Ratio.P9999US))
	_ = w.Flush() // to a strings.Builder, which takes everything
	fmt.Fprintf(b, "latency in microseconds, the mean; medians of %d rounds, in turns; %s: %s\n", len(c.Rounds), c.Version, strings.Join(c.Command, " "))
}
