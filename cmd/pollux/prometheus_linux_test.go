// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// What Prometheus has stored of a bench, once that is over, is what the bench says itself,
// to the last I/O, and Prometheus computes of it what follows from it.
func TestPrometheus(t *testing.T) {
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is missing: as root, apt-get install prometheus")
	}
	dir := t.TempDir()
	pollux := asPollux(t, dir)
	for _, name := range []string{"a.img", "b.img"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 16<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := pollux("create", "watched", "a.img", "b.img", "--allow-unpolled").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	served, api := freeAddress(t), freeAddress(t)
	startPrometheus(t, prometheus, dir, served, api)

	var report, said bytes.Buffer
	bench := pollux("bench", "watched", "--rw", "randrw", "--bs", "8k", "--iodepth", "8", "--runtime", "2s", "--hipri=off", "--destructive",
		"--output-format", "json+", "--output", "report.json", "--metrics-listen", served, "--metrics-linger", "60s")
	bench.Stdout, bench.Stderr = &report, &said
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- bench.Wait() }()
	defer func() {
		_ = bench.Process.Signal(syscall.SIGTERM)
		<-ended // lingering is no failure, and that it was cut short is none here
	}()
	var told struct {
		Pollux struct {
			SinceOpen []struct {
				Op, Mode string
				TotalIOs uint64 `json:"total_ios"`
				CLat     struct {
					Bins map[string]uint64
				} `json:"clat_ns"`
			} `json:"since_open"`
		}
	}
	eventually(t, "the report is there", func() error {
		data, err := os.ReadFile(filepath.Join(dir, "report.json"))
		if err != nil {
			return fmt.Errorf("%w; %s", err, said.String())
		}
		return json.Unmarshal(data, &told)
	})
	if len(told.Pollux.SinceOpen) != 2 {
		t.Fatalf("reads and writes were to be done: %+v", told.Pollux.SinceOpen)
	}
	// A scrape from now on has all of it. It may be half a second until there is one.
	for _, total := range told.Pollux.SinceOpen {
		labels := fmt.Sprintf(`{volume="watched",op=%q,mode=%q}`, total.Op, total.Mode)
		eventually(t, "Prometheus has scraped the end", func() error {
			n, err := queryOne(api, "pollux_volume_io_duration_seconds_count"+labels)
			if err == nil && n != float64(total.TotalIOs) {
				err = fmt.Errorf("%s: %v of %d", labels, n, total.TotalIOs)
			}
			return err
		})
		stored, err := query(api, "pollux_volume_io_duration_seconds_bucket"+labels)
		if err != nil || len(stored) != 22 {
			t.Fatalf("%s: %d buckets, %v", labels, len(stored), err)
		}
		for _, s := range stored {
			le, err := strconv.ParseFloat(s.Metric["le"], 64)
			if err != nil {
				t.Fatal(err)
			}
			var want uint64
			for text, n := range total.CLat.Bins {
				if ns, err := strconv.ParseFloat(text, 64); err != nil || ns <= math.Round(le*1e9) {
					want += n
				}
			}
			if s.value() != float64(want) {
				t.Errorf("%s: up to %v s Prometheus has %v, the report %d", labels, le, s.value(), want)
			}
		}
	}
	families := scrape(t, "http://"+served+"/metrics")
	compared := 0
	for _, m := range families["pollux_member_io_duration_seconds"].GetMetric() {
		h := m.GetHistogram()
		if h.GetSampleCount() == 0 {
			continue
		}
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
		got, err := queryOne(api, "histogram_quantile(0.99, pollux_member_io_duration_seconds_bucket{"+strings.Join(labels, ",")+"})")
		if want := quantile(0.99, h); err != nil || math.Abs(got-want) > 1e-9*want {
			t.Errorf("p99 of %v: Prometheus says %v, the buckets %v, %v", labels, got, want, err)
		}
		compared++
	}
	if compared < 4 {
		t.Errorf("%d members and operations of 4", compared)
	}
	promtool(t, "http://"+served+"/metrics")
}

// quantile is that of Prometheus: within a bucket values are taken for evenly spread.
func quantile(q float64, h *dto.Histogram) float64 {
	rank, below, from := q*float64(h.GetSampleCount()), 0.0, 0.0
	for _, b := range h.GetBucket() {
		if n := float64(b.GetCumulativeCount()); n >= rank {
			return from + (b.GetUpperBound()-from)*(rank-below)/(n-below)
		} else {
			below, from = n, b.GetUpperBound()
		}
	}
	return from
}

// asPollux returns what makes commands of the program under test, run in dir. What they
// publish goes to a folder of their own.
func asPollux(t *testing.T, dir string) func(args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// testscript's TestMain runs the command that the program is called as.
	link := filepath.Join(dir, "pollux")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) *exec.Cmd {
		cmd := exec.Command(link, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), devicesVariable+"=*.img", "GORACE=atexit_sleep_ms=0")
		return cmd
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startPrometheus starts one that scrapes an address, and waits until it is there.
func startPrometheus(t *testing.T, program, dir, target, api string) {
	t.Helper()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global:\n  scrape_interval: 250ms\n  scrape_timeout: 250ms\nscrape_configs:\n- job_name: pollux\n  static_configs:\n  - targets: [%q]\n", target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+api, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "Prometheus is ready", func() error {
		answer, err := http.Get("http://" + api + "/-/ready")
		if err != nil {
			return fmt.Errorf("%w; %s", err, log.String())
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s; %s", answer.Status, log.String())
		}
		return nil
	})
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() error) {
	t.Helper()
	const patience = 60 * time.Second
	var err error
	for start := time.Now(); time.Since(start) < patience; time.Sleep(50 * time.Millisecond) {
		if err = is(); err == nil {
			return
		}
	}
	t.Fatalf("after %v it is not so that %s: %v", patience, what, err)
}

type sample struct {
	Metric map[string]string
	Value  [2]any
}

func (s sample) value() float64 {
	text, _ := s.Value[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// query asks Prometheus for the samples that an expression has now.
func query(api, expression string) ([]sample, error) {
	answer, err := http.Get("http://" + api + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var result struct {
		Status, Error string
		Data          struct{ Result []sample }
	}
	if err := json.NewDecoder(answer.Body).Decode(&result); err != nil {
		return nil, err
	}
	if result.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expression, result.Error)
	}
	return result.Data.Result, nil
}

func queryOne(api, expression string) (float64, error) {
	samples, err := query(api, expression)
	if err == nil && len(samples) != 1 {
		err = fmt.Errorf("%s has %d results", expression, len(samples))
	}
	if err != nil {
		return 0, err
	}
	return samples[0].value(), nil
}

// scrape gets what Prometheus gets.
func scrape(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// promtool has its say about the names.
func promtool(t *testing.T, address string) {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = bytes.NewReader(text)
	out, err := check.CombinedOutput()
	if err != nil || len(slices.Compact(strings.Fields(string(out)))) > 0 {
		t.Errorf("promtool check metrics: %v: %s", err, out)
	}
}
