// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"pollux/poller"
)

// decode returns v as JSON reads it back.
func decode(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return out
}

func reportOf(t *testing.T, job Job) (Result, Report) {
	t.Helper()
	result, err := Run(t.Context(), newFake(1<<20), job)
	if err != nil {
		t.Fatal(err)
	}
	return result, Report{Version: "test", Jobs: []FioJob{result.Fio()}}
}

// TestJSONHasKeysAndTypesOfFio compares with what fio 3.33 printed for such a
// job.
func TestJSONHasKeysAndTypesOfFio(t *testing.T) {
	data, err := os.ReadFile("testdata/fio-3.33.json")
	if err != nil {
		t.Fatal(err)
	}
	_, report := reportOf(t, Job{RW: RandRead, IODepth: 4, IOSize: 4 << 20})
	var ours bytes.Buffer
	if err := report.WriteJSON(&ours); err != nil {
		t.Fatal(err)
	}
	compare(t, "", decode(t, ours.Bytes()), decode(t, data))
}

func compare(t *testing.T, path string, ours, fios any) {
	t.Helper()
	if a, b := fmt.Sprintf("%T", ours), fmt.Sprintf("%T", fios); a != b {
		t.Errorf("%s is a %s, fio's is a %s", path, a, b)
		return
	}
	switch ours := ours.(type) {
	case map[string]any:
		if strings.HasSuffix(path, "/bins") {
			return // keys are latencies
		}
		for key, value := range ours {
			// What is ours, and options, whose values the user gives.
			if strings.HasPrefix(key, "pollux") || key == "job options" || key == "schema_version" {
				continue
			}
			theirs, ok := fios.(map[string]any)[key]
			if !ok {
				t.Errorf("%s/%s is no key of fio's", path, key)
				continue
			}
			compare(t, path+"/"+key, value, theirs)
		}
	case []any:
		for i := range ours {
			compare(t, fmt.Sprintf("%s/%d", path, i), ours[i], fios.([]any)[i])
		}
	}
}

func TestJSONFigures(t *testing.T) {
	result, report := reportOf(t, Job{RW: RandRW, IODepth: 4, IOSize: 1000 * 4096, HiPri: 100})
	var b bytes.Buffer
	if err := report.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	job := decode(t, b.Bytes())["jobs"].([]any)[0].(map[string]any)
	total := 0.0
	for op, name := range map[poller.Op]string{poller.Read: "read", poller.Write: "write"} {
		rates := job[name].(map[string]any)
		clat := rates["clat_ns"].(map[string]any)
		want := result.Rates(op)
		if rates["total_ios"] != float64(want.IOs) || clat["N"] != float64(want.IOs) || rates["io_bytes"] != float64(want.IOs*4096) {
			t.Errorf("%s: %v, want %d I/Os", name, rates, want.IOs)
		}
		if p := clat["percentile"].(map[string]any); p["99.990000"] == nil || p["1.000000"] == nil || len(p) != 17 {
			t.Errorf("%s: percentiles %v", name, p)
		}
		if mean := clat["mean"].(float64); mean != 1000 {
			t.Errorf("%s: mean %v, want 1000", name, mean)
		}
		total += rates["total_ios"].(float64)
	}
	queue := job["pollux"].(map[string]any)
	if total != 1000 || queue["polled_ios"] != 1000.0 || queue["plain_ios"] != 0.0 || queue["iodepth_granted"] != 4.0 {
		t.Errorf("%v I/Os, %v", total, queue)
	}
}

func TestSweep(t *testing.T) {
	dev := newFake(1 << 20)
	dev.grant = 100
	var steps []Step
	job := Job{RW: RandRead, IOSize: 100 * 4096, HiPri: 100}
	rows, _, err := Sweep(t.Context(), dev, job, 3, func(s Step) { steps = append(steps, s) })
	if err != nil || len(rows) != 16 || len(steps) != 48 {
		t.Fatalf("%d rows, %d steps, %v", len(rows), len(steps), err)
	}
	for i, row := range rows {
		polling, polled := "off", uint64(0)
		if i%2 == 1 {
			polling, polled = "on", 300
		}
		qd := SweepDepths[i/2]
		if row.Polling != polling || row.QD != qd || row.TotalIOs != 300 || row.PolledIOs != polled || row.LatencyUS != 1 || row.IOPS <= 0 {
			t.Errorf("row %d: %+v", i, row)
		}
		if (row.IOPSRatio != nil) != (polling == "on") || row.Granted != min(qd, 100) {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	for i, s := range steps {
		if s.Round != i/16+1 || s.Rounds != 3 || s.HiPri != (i%2 == 1) || s.QD != SweepDepths[i%16/2] {
			t.Errorf("step %d: %+v", i, s)
		}
	}
	data, err := json.Marshal(rows[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"polling", "qd", "latency_us", "iops", "interrupts_per_io"} {
		if _, ok := decode(t, data)[key]; !ok {
			t.Errorf("%s has no %s", data, key)
		}
	}
}

func TestSweepWithoutPolling(t *testing.T) {
	rows, _, err := Sweep(t.Context(), newFake(1<<20), Job{IOSize: 4096}, 1, nil)
	if err != nil || len(rows) != 8 || rows[0].Polling != "off" || rows[0].IOPSRatio != nil {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestSweepKeepsWhatWasMeasured(t *testing.T) {
	dev := newFake(1 << 20)
	step := 0
	rows, _, err := Sweep(t.Context(), dev, Job{IOSize: 10 * 4096, HiPri: 100}, 1, func(Step) {
		if step++; step == 4 {
			dev.failAt = 5
		}
	})
	if err == nil || len(rows) != 3 {
		t.Errorf("%d rows, %v; want 3 and an error", len(rows), err)
	}
}

func TestInterruptsPerIO(t *testing.T) {
	r := Result{Interrupts: 5, InterruptsKnown: true}
	if _, ok := r.InterruptsPerIO(); ok {
		t.Error("known without I/O")
	}
	result, err := Run(t.Context(), newFake(1<<20), Job{IOSize: 10 * 4096})
	if err != nil {
		t.Fatal(err)
	}
	result.Interrupts, result.InterruptsKnown = 5, true
	if per, ok := result.InterruptsPerIO(); !ok || per != 0.5 {
		t.Errorf("%v, %v", per, ok)
	}
	if row := newRow([]Result{result, result}); row.InterruptsPerIO == nil || *row.InterruptsPerIO != 0.5 {
		t.Errorf("%+v", row)
	}
	unknown := result
	unknown.InterruptsKnown = false
	if row := newRow([]Result{result, unknown}); row.InterruptsPerIO != nil {
		t.Errorf("%+v", row)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		in   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{4, 2}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(tt.in); got != tt.want {
			t.Errorf("median(%v) is %v, want %v", tt.in, got, tt.want)
		}
	}
}

func TestSweepText(t *testing.T) {
	half, zero := decimal(0.5), decimal(0)
	r := Report{Rows: []Row{
		{Polling: "off", QD: 1, LatencyUS: 12.03, IOPS: 78_800},
		{Polling: "on", QD: 1, LatencyUS: 9, IOPS: 108_000, LatencyRatio: &half, IOPSRatio: &half, InterruptsPerIO: &zero, PolledIOs: 1, TotalIOs: 1},
		{Polling: "off", QD: 128, LatencyUS: 517.27, IOPS: 247_000},
	}}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	want := []string{
		"QD off latency off IOPS on latency on IOPS on/off latency on/off IOPS off intr/IO on intr/IO",
		"1 12.03 78,800 9.00 108,000 0.50 0.50 - 0.00",
		"128 517.27 247,000 - - - - - -",
	}
	for i, w := range want {
		if got := strings.Join(strings.Fields(lines[i+1]), " "); got != w {
			t.Errorf("line %d is %q, want %q", i, got, w)
		}
	}
}
