// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// document is Markdown that is being written.
type document struct{ strings.Builder }

// p writes a paragraph, h a heading, item one of a list.
func (d *document) p(format string, args ...any) { fmt.Fprintf(d, format+"\n\n", args...) }

func (d *document) h(text string) { fmt.Fprintf(d, "## %s\n\n", text) }

func (d *document) item(format string, args ...any) { fmt.Fprintf(d, "- "+format+"\n", args...) }

func (d *document) end() { d.WriteByte('\n') }

func (d *document) code(lines ...string) {
	for _, l := range lines {
		fmt.Fprintf(d, "    %s\n", l)
	}
	d.end()
}

// table begins one; a header that ends in ">" is of a column of numbers.
func (d *document) table(headers ...string) {
	rule := make([]string, len(headers))
	for i, h := range headers {
		rule[i] = "---"
		if strings.HasSuffix(h, ">") {
			headers[i], rule[i] = strings.TrimSuffix(h, ">"), "---:"
		}
	}
	d.row(headers...)
	d.row(rule...)
}

func (d *document) row(cells ...string) { fmt.Fprintf(d, "| %s |\n", strings.Join(cells, " | ")) }

// chunkText is the chunk for people.
var chunkText = fmt.Sprintf("%d KiB", chunkKiB)

// none is in a cell that has nothing.
const none = "–"

// micro is a latency in microseconds.
func micro(us float64) string {
	switch {
	case us == 0:
		return none
	case us < 1000:
		return strconv.FormatFloat(us, 'f', 1, 64)
	}
	return humanize.Comma(int64(us + 0.5))
}

func microOf(us *float64) string {
	if us == nil {
		return none
	}
	return micro(*us)
}

func iops(n float64) string { return humanize.Comma(int64(n + 0.5)) }

// kilo is thousands of IOPS, as the third experiment was published in.
func kilo(n float64) string { return strconv.FormatFloat(n/1e3, 'f', 2, 64) }

// optional is a figure that may not be known.
func optional(f *float64) string {
	if f == nil {
		return none
	}
	return strconv.FormatFloat(*f, 'f', 2, 64)
}

func times(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// polled is On and Off in words.
func polled(polling string) string {
	if polling == On {
		return "polled"
	}
	return "not polled"
}

// upper begins a sentence.
func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// plural is "1 round", "2 rounds".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

// Markdown returns the report for people. It is made from the Result alone.
func (r *Result) Markdown() string {
	d := &document{}
	fmt.Fprintf(d, "# %d. %s\n\n", r.Experiment, r.Title)
	if r.Smoke {
		d.p("**A smoke test.** Its runs were too short for any figure below to mean anything.")
	}
	switch r.Experiment {
	case 1:
		r.firstText(d)
	case 2:
		r.secondText(d)
	case 3:
		r.thirdText(d)
	}
	r.conclusions(d)
	r.machine(d)
	r.checked(d)
	d.p("Made by `scripts/experiments %d` from [%d.json](%d.json), which has every round and every command.", r.Experiment, r.Experiment, r.Experiment)
	return strings.TrimRight(d.String(), "\n") + "\n"
}

// read says what is read.
func (r *Result) read() string {
	if r.Filled {
		return "64 MiB are read, all of it written before"
	}
	return "64 MiB are read, which were not written before: parts of it may be answered without looking anywhere"
}

// conclusions says what figures such as these can show.
func (r *Result) conclusions(d *document) {
	d.h("What may be concluded, and what not")
	if r.Emulated {
		d.item("The drives are software that runs on the CPUs of the programs it serves. No microsecond and no IOPS here is a drive's.")
		d.item("Ratios are of medians of rounds that alternate between what is compared. They tell which way costs less, not how much less a drive would show.")
		d.item("From the depth on at which the emulation has no CPU left, it is what is measured: neither polling nor the program makes a difference there that a drive would also show.")
	} else {
		d.item("The figures are this machine's, with these drives. Ratios are of medians of rounds that alternate between what is compared.")
	}
	d.item("Interrupts are counted by the kernel and exact, whatever the machine.")
	switch r.Experiment {
	case 1:
		d.item("A poller keeps a CPU busy while it waits. With more pollers than CPUs expect polling to lose, on any drive: each waits for a CPU that another one spins on.")
	case 3:
		d.item("A head whose median lies among the rounds of one path, or on their better side, has no cost that was measured. The wider these are spread, the less that says.")
		if r.Emulated {
			d.item("The TCP paths lead over the loopback address to the same CPUs. That shows that polling gets through such paths, and not what it gains over a network.")
		}
	}
	d.end()
}

// machine says where and with what.
func (r *Result) machine(d *document) {
	d.h("Machine and versions")
	d.table("", "")
	d.row("date", r.Date)
	d.row("CPU", fmt.Sprintf("%s, %s", r.Host.CPU, plural(r.Host.Cores, "core")))
	if r.Emulated {
		d.row("machine", "virtual, emulated by QEMU "+r.Host.QEMU)
	}
	var guests []string
	for _, b := range r.Boots {
		g := fmt.Sprintf("%s: %s", b.Setup, plural(b.Guest.CPUs, "CPU"))
		if b.Guest.IOPolicy != "" {
			g += ", iopolicy " + b.Guest.IOPolicy
		}
		guests = append(guests, g)
	}
	first := r.Boots[0].Guest
	d.row("boots", strings.Join(guests, "; "))
	d.row("drives", strings.Join(first.Drives, ", "))
	d.row("kernel", first.Kernel)
	version := first.Pollux
	if r.Source != "" {
		version += ", source " + r.Source
	}
	d.row("pollux", version)
	d.row("fio", first.Fio)
	d.end()
}

func (r *Result) checked(d *document) {
	d.h("What had to hold")
	for _, c := range r.Checks {
		word := "ok"
		if !c.OK {
			word = "**NO**"
		}
		d.item("%s: %s", word, c.Text)
	}
	d.end()
}

// lowerIn says in how many of the ratios A's latency was below B's.
func lowerIn(all []*Ratio) (lower, of int) {
	for _, q := range all {
		if q == nil {
			continue
		}
		of++
		if q.Latency < 1 {
			lower++
		}
	}
	return lower, of
}
