// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"
)

// testdata has what Measure wrote in runs in the lab, of which some depths and rounds.
const testdata = "testdata"

var (
	testHost = Host{CPU: "Test CPU", Cores: 2, QEMU: "7.2"}
	testDate = time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC)
)

func readBoots(t *testing.T, experiment int) []Boot {
	t.Helper()
	boots, err := ReadBoots(testdata, experiment)
	if err != nil {
		t.Fatal(err)
	}
	return boots
}

func collect(t *testing.T, boots []Boot) *Result {
	t.Helper()
	r, err := Collect(boots, testHost, "v0-1-gabc", testDate)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// middle is a median of another making.
func middle(values []float64) float64 {
	sort.Float64s(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// TestMedians recomputes every row from the samples.
func TestMedians(t *testing.T) {
	for experiment := 1; experiment <= 3; experiment++ {
		boots := readBoots(t, experiment)
		r := collect(t, boots)
		figures := 0
		for _, row := range r.Rows {
			var latency, iops []float64
			failed := 0
			for _, b := range boots {
				for _, s := range b.Samples {
					if s.Case != row.Case || s.Tool != row.Tool || s.Target != row.Target || s.NumJobs != row.NumJobs || s.IODepth != row.IODepth || s.Batch != row.Batch {
						continue
					}
					if s.Error != "" && s.Polling == row.Polling {
						failed++
					}
					for _, p := range s.Parts {
						if p.Polling == row.Polling {
							latency, iops = append(latency, p.MeanUS), append(iops, p.IOPS)
						}
					}
				}
			}
			if failed != row.Failed || len(latency) != len(row.Rounds) {
				t.Errorf("experiment %d, %+v: %d rounds and %d failed; the samples have %d and %d", experiment, row.Key, len(row.Rounds), row.Failed, len(latency), failed)
			}
			if len(latency) == 0 {
				continue
			}
			figures++
			if got, want := row.Median.LatencyUS, round3(middle(latency)); got != want {
				t.Errorf("experiment %d, %+v: latency %v, want %v", experiment, row.Key, got, want)
			}
			if got, want := row.Median.IOPS, round3(middle(iops)); got != want {
				t.Errorf("experiment %d, %+v: IOPS %v, want %v", experiment, row.Key, got, want)
			}
		}
		if figures < 8 {
			t.Errorf("experiment %d: only %d rows have figures", experiment, figures)
		}
	}
}

// TestReports: the reports of real runs are good, whole, and have their figures in them.
func TestReports(t *testing.T) {
	for experiment := 1; experiment <= 3; experiment++ {
		r := collect(t, readBoots(t, experiment))
		for _, c := range r.Checks {
			if !c.OK {
				t.Errorf("experiment %d: NO: %s", experiment, c.Text)
			}
		}
		dir := t.TempDir()
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
		read := func(ext string) string {
			data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.%s", experiment, ext)))
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		text := read("md")
		for _, row := range r.Rows {
			if row.measured() && !strings.Contains(text, " "+micro(row.Median.LatencyUS)+" ") {
				t.Errorf("experiment %d: the report has no %s of %+v", experiment, micro(row.Median.LatencyUS), row.Key)
			}
		}
		for _, want := range []string{"Test CPU, 2 cores", "QEMU 7.2", "v0-1-gabc", "fio-3.33", "2026-12-01", "What may be concluded", "64 MiB are read, all of it written before", "software that runs on the CPUs",
			fmt.Sprintf("(%d.svg)", experiment), r.Boots[0].Guest.Kernel} {
			if !strings.Contains(text, want) {
				t.Errorf("experiment %d: the report has no %q", experiment, want)
			}
		}
		for _, bad := range []string{"NaN", "%!", "Inf", "**NO**"} {
			if strings.Contains(text, bad) {
				t.Errorf("experiment %d: the report has %q", experiment, bad)
			}
		}
		checkTables(t, text)
		checkXML(t, read("svg"))
		checkJSON(t, read("json"))
		// Nothing in it depends on when it is made: it changes with its data only.
		if again := collect(t, readBoots(t, experiment)); again.Markdown() != text {
			t.Errorf("experiment %d: made twice, it differs", experiment)
		}
	}
}

// checkTables: all rows of a table have as many cells as its header.
func checkTables(t *testing.T, text string) {
	t.Helper()
	cells, tables := 0, 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		if n := strings.Count(line, "|"); cells == 0 {
			cells = n
			tables++
		} else if n != cells {
			t.Errorf("%d cells instead of %d in %s", n, cells, line)
		}
	}
	if tables < 3 {
		t.Errorf("only %d tables", tables)
	}
}

func checkXML(t *testing.T, text string) {
	t.Helper()
	d, elements := xml.NewDecoder(strings.NewReader(text)), 0
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
		elements++
	}
	if elements < 50 {
		t.Errorf("the picture has only %d elements", elements)
	}
}

// checkJSON: it has the documented keys, and lists are never null.
func checkJSON(t *testing.T, text string) {
	t.Helper()
	var r map[string]any
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"schema_version", "experiment", "title", "date", "smoke", "emulated", "host", "source", "boots", "rows", "ratios", "checks", "published"} {
		if r[key] == nil {
			t.Errorf("the JSON has no %s", key)
		}
	}
	for _, row := range r["rows"].([]any) {
		row := row.(map[string]any)
		for _, key := range []string{"case", "tool", "target", "polling", "numjobs", "iodepth", "batch", "part", "command", "median", "rounds", "failed"} {
			if row[key] == nil {
				t.Errorf("a row of the JSON has no %s", key)
			}
		}
	}
}

// TestChecksSee: each thing that must hold is missed when it does not.
func TestChecksSee(t *testing.T) {
	zero, many := uint64(0), uint64(1e6)
	each := func(boots []Boot, is func(*Sample) bool, change func(*Sample)) {
		n := 0
		for i := range boots {
			for j := range boots[i].Samples {
				if s := &boots[i].Samples[j]; is(s) {
					change(s)
					n++
				}
			}
		}
		if n == 0 {
			t.Error("nothing to change")
		}
	}
	tool := func(name, tool, polling string) func(*Sample) bool {
		return func(s *Sample) bool { return s.Case == name && s.Tool == tool && s.Polling == polling && s.Error == "" }
	}
	for _, c := range []struct {
		name       string
		experiment int
		is         func(*Sample) bool
		change     func(*Sample)
		check      string
	}{
		{"polled I/O with interrupts", 2, tool(CaseSweep, ToolPollux, On), func(s *Sample) { s.Interrupts = &many }, "polled by pollux"},
		{"polled I/O that was not polled", 3, tool(CasePaths, ToolPollux, On), func(s *Sample) { s.Parts[0].PolledIOs-- }, "that were to be polled"},
		{"unpolled I/O without interrupts", 2, tool(CaseSweep, ToolPollux, Off), func(s *Sample) { s.Interrupts = &zero }, "unpolled at depth 1"},
		{"unpolled paths without interrupts", 3, tool(CasePaths, ToolFio, Off), func(s *Sample) { s.Interrupts = &zero }, "unpolled at depth 1"},
		{"interrupts of HiPri I/O", 1, tool(CaseHalf, ToolPollux, Mixed), func(s *Sample) { n := *s.Interrupts * 2; s.Interrupts = &n }, "pollux, half"},
		{"of one of two jobs", 1, tool(CaseTwo, ToolPollux, Mixed), func(s *Sample) { n := *s.Interrupts * 2; s.Interrupts = &n }, "pollux, 1+1"},
		{"of five of ten", 1, tool(CaseTen, ToolPollux, Mixed), func(s *Sample) { s.Interrupts = &many }, "pollux, 5+5"},
		{"a preadv2 that polls", 1, tool(CaseAlone, ToolFio, On), func(s *Sample) { s.Interrupts = &zero }, "RWF_HIPRI"},
		{"I/O of pollux that failed", 3, tool(CasePaths, ToolPollux, Off), func(s *Sample) { s.Error = "gone" }, "pollux: "},
		{"I/O of fio that failed", 2, tool(CaseSweep, ToolFio, Off), func(s *Sample) { s.Error = "gone" }, "fio: "},
		{"pollux that did not end", 2, tool(CaseSweep, ToolPollux, On), func(s *Sample) { s.Error = timedOut }, "pollux: "},
		{"a dm-stripe that does not poll", 2, func(s *Sample) bool { return s.Target == TargetDM && s.Polling == On }, func(s *Sample) { s.Interrupts = &many }, "dm-stripe, polled"},
		{"md that polls", 2, func(s *Sample) bool { return s.Target == TargetMD && s.Polling == On },
			func(s *Sample) {
				s.Error, s.Parts = "", []Part{{Name: "sweep", Polling: On, IOs: 1, IOPS: 1, MeanUS: 1}}
			}, "md raid0"},
	} {
		boots := readBoots(t, c.experiment)
		each(boots, c.is, c.change)
		r := collect(t, boots)
		seen := false
		for _, check := range r.Checks {
			if strings.Contains(check.Text, c.check) {
				seen = seen || !check.OK
			}
		}
		if !seen {
			t.Errorf("%s: not seen by %v", c.name, r.Checks)
		}
		if !strings.Contains(r.Markdown(), "**NO**") {
			t.Errorf("%s: the report does not say it", c.name)
		}
	}
	// A rival that does not end is a finding.
	boots := readBoots(t, 3)
	each(boots, tool(CasePaths, ToolFio, On), func(s *Sample) { s.Error, s.Parts = timedOut, nil })
	r := collect(t, boots)
	for _, c := range r.Checks {
		if !c.OK {
			t.Errorf("fio that does not end: NO: %s", c.Text)
		}
	}
	if !strings.Contains(r.Markdown(), "did not end in time") {
		t.Error("fio that does not end: the report does not say it")
	}
}

// TestWordsFollowData: what is said in words turns around with the figures.
func TestWordsFollowData(t *testing.T) {
	const want = "polling lost"
	turned := func(experiment int, factor float64) string {
		boots := readBoots(t, experiment)
		for i := range boots {
			for j := range boots[i].Samples {
				for k := range boots[i].Samples[j].Parts {
					p := &boots[i].Samples[j].Parts[k]
					p.MeanUS = 100
					if p.Polling == On {
						p.MeanUS *= factor
					}
				}
			}
		}
		return collect(t, boots).Markdown()
	}
	for _, c := range []struct {
		experiment int
		factor     float64
		has        []string
		hasNot     []string
	}{
		{1, 2, []string{"2 CPUs: " + want, "took 2.00 of the time", "less in 0 of"}, []string{"did not lose"}},
		{1, 0.5, []string{"polling did not lose", "took 0.50 of the time"}, []string{want, "less in 0 of"}},
		{2, 2, []string{"lower with polling than without at 0 of 2 depths", "it was 2.00 of unpolled"}, nil},
		{2, 0.5, []string{"lower with polling than without at 2 of 2 depths", "it was 0.50 of unpolled"}, nil},
	} {
		text := turned(c.experiment, c.factor)
		for _, s := range c.has {
			if !strings.Contains(text, s) {
				t.Errorf("experiment %d, factor %v: no %q", c.experiment, c.factor, s)
			}
		}
		for _, s := range c.hasNot {
			if strings.Contains(text, s) {
				t.Errorf("experiment %d, factor %v: there is %q", c.experiment, c.factor, s)
			}
		}
	}
	// A head that costs more than rounds differ by is said to.
	boots := readBoots(t, 3)
	for i := range boots {
		for j := range boots[i].Samples {
			s := &boots[i].Samples[j]
			for k := range s.Parts {
				if s.Parts[k].MeanUS = 100; s.Target == TargetHead {
					s.Parts[k].MeanUS = 101
				}
			}
		}
	}
	text := collect(t, boots).Markdown()
	if !strings.Contains(text, "is above all rounds of one path in 6 of 6 rows") || !strings.Contains(text, "| 1.01 |") {
		t.Errorf("a head that costs 1%%, always, is not seen:\n%s", text)
	}
	if !strings.Contains(text, "is above all rounds of one path in 0 of 6 rows") {
		t.Errorf("a head over TCP that costs nothing is seen as more:\n%s", text)
	}
}

// TestRealDrives: a report on drives of a host does not speak of emulation.
func TestRealDrives(t *testing.T) {
	boots := readBoots(t, 2)
	boots[0].Filled = false
	r, err := Collect(boots, Host{CPU: "Test CPU", Cores: 64}, "", testDate)
	if err != nil {
		t.Fatal(err)
	}
	title, _ := r.Plots()
	text := r.Markdown()
	if !strings.Contains(text, "64 MiB are read, which were not written before") {
		t.Error("it does not say that nothing was written")
	}
	// The drives' own name may be QEMU's: these are.
	for _, bad := range []string{"emulat", "QEMU 7"} {
		if strings.Contains(text+title, bad) {
			t.Errorf("it speaks of %q", bad)
		}
	}
}

func TestReadBootsRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadBoots(dir, 1); err == nil {
		t.Error("no file, and no error")
	}
	for name, content := range map[string]string{"1.1.json": "{", "2.1.json": `{"experiment":1}`, "3.1.json": `{"experiment":3}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for experiment := 1; experiment <= 2; experiment++ {
		if _, err := ReadBoots(dir, experiment); err == nil {
			t.Errorf("experiment %d: no error", experiment)
		}
	}
	boots, err := ReadBoots(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Collect(boots, testHost, "", testDate); err == nil {
		t.Error("a report on nothing")
	}
	if _, err := Collect(nil, testHost, "", testDate); err == nil {
		t.Error("a report on no boots")
	}
}

// TestWriteRead: what one half writes the other reads.
func TestWriteRead(t *testing.T) {
	dir := t.TempDir()
	for _, b := range readBoots(t, 3) {
		if err := b.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadBoots(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(readBoots(t, 3))
	if string(a) != string(b) {
		t.Error("what was read is not what was written")
	}
}

// TestDocumentedKeys: every key of the JSON is in docs/experiments.md.
func TestDocumentedKeys(t *testing.T) {
	data, err := os.ReadFile("../../docs/experiments.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, v := range []any{Result{}, BootInfo{}, Guest{}, Host{}, Row{}, Key{}, Figures{}, Round{}, Ratio{}, Check{}} {
		for i := range reflect.TypeOf(v).NumField() {
			if key, _, _ := strings.Cut(reflect.TypeOf(v).Field(i).Tag.Get("json"), ","); key != "" {
				keys[key] = true
			}
		}
	}
	if len(keys) < 40 {
		t.Errorf("only %d keys", len(keys))
	}
	for key := range keys {
		if !strings.Contains(string(data), "`"+key+"`") {
			t.Errorf("docs/experiments.md has no key %s", key)
		}
	}
}
