// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pollux/internal/hist"
)

// runFio runs the real fio on a file and returns its json+ output.
func runFio(t *testing.T) map[string]any {
	t.Helper()
	path, err := exec.LookPath("fio")
	if err != nil {
		t.Skip("fio is missing (Debian package fio; scripts/test installs it)")
	}
	file := filepath.Join(t.TempDir(), "file")
	cmd := exec.CommandContext(t.Context(), path, "--name=randrw", "--filename="+file, "--size=4M", "--io_size=32M",
		"--rw=randrw", "--bs=4k", "--ioengine=psync", "--iodepth=1", "--output-format=json+")
	cmd.WaitDelay = time.Minute
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("fio: %v", err)
	}
	return decode(t, out[bytes.IndexByte(out, '{'):])
}

// at follows keys through objects and first elements of lists.
func at(v any, keys ...string) any {
	for _, k := range keys {
		if list, ok := v.([]any); ok && len(list) > 0 {
			v = list[0]
		}
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// Our percentiles of what fio measured are fio's, within one bucket of ours.
func TestPercentilesAreFios(t *testing.T) {
	out := runFio(t)
	for _, op := range []string{"read", "write"} {
		clat := at(out, "jobs", op, "clat_ns")
		var r hist.Recorder
		total := uint64(0)
		for ns, n := range at(clat, "bins").(map[string]any) {
			value, err := strconv.ParseInt(ns, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.Record(value, uint64(n.(float64)))
			total += uint64(n.(float64))
		}
		r.Publish()
		h := r.Snapshot()
		if n := at(out, "jobs", op, "total_ios").(float64); uint64(n) != total || h.Count() != total {
			t.Errorf("%s: %v I/Os, fio's bins have %d, our buckets %d", op, n, total, h.Count())
		}
		list := at(clat, "percentile").(map[string]any)
		if len(list) != len(fioPercentiles) {
			t.Errorf("%s: fio has %d percentiles, we %d", op, len(list), len(fioPercentiles))
		}
		for p, ns := range list {
			percent, err := strconv.ParseFloat(p, 64)
			if err != nil {
				t.Fatal(err)
			}
			ours, fios := hist.Index(h.Percentile(percent).Nanoseconds()), hist.Index(int64(ns.(float64)))
			if ours < fios-1 || ours > fios+1 {
				t.Errorf("%s: percentile %s is %v in bucket %d by ours, %v in %d by fio", op, p, h.Percentile(percent), ours, ns, fios)
			}
		}
	}
}

// Every key that we print is one of fio's, with the same type, save for those that
// compare leaves out. And the sum of the bins is the number of I/Os that were done.
func TestKeysAreFios(t *testing.T) {
	theirs := runFio(t)
	result, err := Run(t.Context(), newFake(4<<20), Job{RW: RandRW, IOSize: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	job := result.Fio()
	job.fullBins()
	var b bytes.Buffer
	if err := (Report{Jobs: []FioJob{job}}).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	ours := decode(t, b.Bytes())
	for _, op := range []string{"read", "write"} {
		sum := 0.0
		for _, n := range at(ours, "jobs", op, "clat_ns", "bins").(map[string]any) {
			sum += n.(float64)
		}
		if n := at(ours, "jobs", op, "total_ios"); sum != n || sum == 0 {
			t.Errorf("%s: the bins have %v of %v I/Os", op, sum, n)
		}
	}
	compare(t, "", ours, theirs)
}
