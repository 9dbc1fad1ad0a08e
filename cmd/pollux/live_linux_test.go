// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"pollux/poller"
)

// On a terminal a bench tells once a second what it does and how long it will take.
// The report, which goes elsewhere, knows nothing of it.
func TestLiveLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(file, bytes.Repeat([]byte{1}, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	bin, err := exec.LookPath("pollux")
	if err != nil {
		t.Fatal(err)
	}
	person, program := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), bin, "bench", "--build", file, "--rw", "randread", "--hipri=off", "--runtime", "3")
	var report strings.Builder
	cmd.Stdout, cmd.Stderr = &report, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := readUntil(t, person, " left")
	if !regexp.MustCompile(`[1-9][0-9,]* IOPS, [0-9.]+ [KMG]iB/s, p99 [0-9]+ us, 0 % polled, [12]s left`).MatchString(said) {
		t.Errorf("the line is %q", said)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if strings.Contains(report.String(), "left") || !strings.Contains(report.String(), "IOPS=") {
		t.Errorf("the report: %s", report.String())
	}
}

func TestLiveLineOfNothing(t *testing.T) {
	if got := liveLine(poller.Stats{}, time.Second); got != "0 IOPS, 0 B/s" {
		t.Errorf("%q", got)
	}
}
