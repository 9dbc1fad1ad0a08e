// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testdata = "../../internal/experiments/testdata"

func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), args, &out, &errOut)
	return code, out.String(), errOut.String()
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		nil, {"nonsense"}, {"measure"}, {"measure", "--dir", "x"}, {"measure", "x"}, {"report"}, {"report", "--dir", "x"},
		{"report", "--dir", "x", "--out", "y", "z"}, {"report", "--experiment", "one"}, {"measure", "--nonsense"},
	} {
		if code, stdout, stderr := call(t, args...); code != codeUsage || stdout != "" || !strings.Contains(stderr, "Usage:") {
			t.Errorf("%q: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	if code, stdout, _ := call(t, "--help"); code != codeGood || !strings.Contains(stdout, "Usage:") {
		t.Errorf("--help: exit code %d, %q", code, stdout)
	}
}

// TestReport makes the three reports of recorded runs.
func TestReport(t *testing.T) {
	out := t.TempDir()
	for _, n := range []string{"1", "2", "3"} {
		code, stdout, stderr := call(t, "report", "--experiment", n, "--dir", testdata, "--out", out, "--source", "abc")
		if code != codeGood || !strings.HasPrefix(stdout, "ok  ") || strings.Contains(stdout, "NO") {
			t.Errorf("experiment %s: exit code %d\n%s%s", n, code, stdout, stderr)
		}
		for _, ext := range []string{"json", "md", "svg"} {
			if info, err := os.Stat(filepath.Join(out, n+"."+ext)); err != nil || info.Size() < 1000 {
				t.Errorf("experiment %s: %v, %v", n, info, err)
			}
		}
	}
	if code, _, stderr := call(t, "report", "--experiment", "4", "--dir", testdata, "--out", out); code != codeDidNot || !strings.Contains(stderr, "experiment 4") {
		t.Errorf("experiment 4: exit code %d, %q", code, stderr)
	}
	if code, _, _ := call(t, "report", "--experiment", "1", "--dir", testdata, "--out", out+"/none"); code != codeDidNot {
		t.Errorf("no folder to write to: exit code %d", code)
	}
}

// TestReportFails: what does not hold is said, and is exit code 1.
func TestReportFails(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join(testdata, "2.1.json"))
	if err != nil {
		t.Fatal(err)
	}
	var boot map[string]any
	if err := json.Unmarshal(data, &boot); err != nil {
		t.Fatal(err)
	}
	for _, s := range boot["samples"].([]any) {
		if s := s.(map[string]any); s["tool"] == "pollux" {
			s["interrupts"] = 1000000
		}
	}
	if data, err = json.Marshal(boot); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "2.1.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := call(t, "report", "--experiment", "2", "--dir", dir, "--out", t.TempDir())
	if code != codeFailed || !strings.Contains(stdout, "NO  polled by pollux") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// TestMeasureFails: without drives nothing is measured, and that is no result.
func TestMeasureFails(t *testing.T) {
	dir := t.TempDir()
	code, _, stderr := call(t, "measure", "--experiment", "4", "--dir", dir, "a", "b")
	if code != codeDidNot || !strings.Contains(stderr, "no experiment 4") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}
