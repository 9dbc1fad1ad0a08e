// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// seed is POLLUX_SEED or drawn, and printed when the test fails.
func seed(t *testing.T) uint64 {
	s := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("POLLUX_SEED"), 10, 64); err == nil {
		s = v
	}
	t.Logf("POLLUX_SEED=%d", s)
	return s
}

// TestPool: what is put together from the figures of parts is what all values have.
func TestPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	var parts []Part
	var all []float64
	for range 1 + rng.IntN(9) {
		var mine []float64
		for range 2 + rng.IntN(50) {
			mine = append(mine, rng.Float64()*1e4)
		}
		mean, dev := moments(mine)
		all = append(all, mine...)
		parts = pool(parts, Part{Name: "a", IOs: uint64(len(mine)), IOPS: float64(len(mine)), MeanUS: mean, StdDevUS: dev, P9999US: 1})
	}
	parts = pool(parts, Part{Name: "b", IOs: 1})
	if len(parts) != 2 {
		t.Fatalf("%d parts of two names", len(parts))
	}
	mean, dev := moments(all)
	got := parts[0]
	if got.IOs != uint64(len(all)) || got.IOPS != float64(len(all)) || math.Abs(got.MeanUS-mean) > 1e-6*mean || math.Abs(got.StdDevUS-dev) > 1e-6*dev {
		t.Errorf("pooled %+v; all values: %d, mean %f, deviation %f", got, len(all), mean, dev)
	}
}

func moments(values []float64) (mean, dev float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		dev += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(dev)
}

// TestParts reads what the programs print, in their structure.
func TestParts(t *testing.T) {
	fio := func(name string, code, ios int) string {
		return fmt.Sprintf(`{"jobname":%q,"error":%d,"read":{"total_ios":%d,"iops":10,
			"lat_ns":{"mean":5000,"stddev":1000,"percentile":{"99.990000":9000}},"clat_ns":{"mean":1,"stddev":1}}}`, name, code, ios)
	}
	ours := `{"jobname":"j","error":0,"read":{"total_ios":10,"iops":10,"lat_ns":{"mean":3},"clat_ns":{"mean":2000,"percentile":{"99.990000":8000}}},
		"pollux":{"polled_ios":10}}`
	mixed := `{"jobname":"j","error":0,"read":{"total_ios":10,"iops":10},"pollux":{"polled_ios":4,
		"polled":{"total_ios":4,"iops":4,"clat_ns":{"mean":1000}},"plain":{"total_ios":6,"iops":6,"clat_ns":{"mean":2000}}}}`
	for _, c := range []struct {
		name, out string
		want      []Part
		err       string
	}{
		{"fio's lat", `{"jobs":[` + fio("a", 0, 7) + `]}`, []Part{{Name: "a", Polling: On, IOs: 7, IOPS: 10, MeanUS: 5, StdDevUS: 1, P9999US: 9}}, ""},
		{"notes before it", "note: {both}\n{\"jobs\":[" + fio("a", 0, 7) + "]}\n", []Part{{Name: "a", Polling: On, IOs: 7, IOPS: 10, MeanUS: 5, StdDevUS: 1, P9999US: 9}}, ""},
		{"pollux's clat", `{"jobs":[` + ours + `]}`, []Part{{Name: "j", Polling: On, IOs: 10, PolledIOs: 10, IOPS: 10, MeanUS: 2, P9999US: 8}}, ""},
		{"both apart", `{"jobs":[` + mixed + `]}`, []Part{{Name: "polled", Polling: On, IOs: 4, PolledIOs: 4, IOPS: 4, MeanUS: 1}, {Name: "not polled", Polling: Off, IOs: 6, IOPS: 6, MeanUS: 2}}, ""},
		{"by name", `{"jobs":[` + fio("low", 0, 1) + `]}`, []Part{{Name: "low", Polling: Off, IOs: 1, IOPS: 10, MeanUS: 5, StdDevUS: 1, P9999US: 9}}, ""},
		{"numjobs", `{"jobs":[` + fio("a", 0, 7) + "," + fio("a", 0, 7) + `]}`, []Part{{Name: "a", Polling: On, IOs: 14, IOPS: 20, MeanUS: 5, StdDevUS: 1}}, ""},
		{"an error", `{"jobs":[` + fio("a", 95, 7) + `]}`, nil, "error 95"},
		{"no I/O", `{"jobs":[` + fio("a", 0, 0) + `]}`, nil, "no I/O"},
		{"pollux's error", `{"jobs":[],"pollux":{"error":"gone"}}`, nil, "gone"},
		{"no jobs", `{}`, nil, "no job"},
		{"no JSON", "fio: bad\n", nil, "no JSON"},
		{"nothing", "", nil, "no JSON"},
		{"half of it", `{"jobs":[`, nil, "cannot be read"},
		{"another type", `{"jobs":7}`, nil, "cannot be read"},
	} {
		out, err := decode([]byte(c.out))
		var got []Part
		if err == nil {
			got, err = out.parts(map[string]string{"": On, "low": Off})
		}
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v instead of %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

func TestComplaint(t *testing.T) {
	for said, want := range map[string]string{
		"fio: io_u error on file /dev/md0: Operation not supported: read offset=2023424, buflen=4096\nfio: pid=1, err=95\n": "fio: io_u error on file /dev/md0: Operation not supported",
		"pollux: ignored, as it cannot matter here: thread\npollux: a: no such drive\n":                                     "pollux: a: no such drive",
		"pollux: a: broken\npollux: warning: slow\n":                                                                        "pollux: a: broken",
		"device-mapper: reload ioctl failed: busy\nCommand failed.\n":                                                       "device-mapper: reload ioctl failed: busy",
		"": "",
	} {
		if got := complaint(said); got != want {
			t.Errorf("complaint(%q) = %q, want %q", said, got, want)
		}
	}
}
