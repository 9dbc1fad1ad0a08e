// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
	"pollux/volume"
)

const (
	testChunk = 16 << 10
	testSize  = 4 << 20
)

// rig is a volume over memories that can be disturbed; the last member has two paths.
type rig struct {
	*volume.Volume
	faults []*faultdev.Device
}

func newRig(t testing.TB, members int) *rig {
	t.Helper()
	r := &rig{}
	var devices []poller.Device
	for i := range members - 1 {
		f := faultdev.New(faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Name: fmt.Sprintf("/dev/m%d", i), Budget: 512}))
		r.faults = append(r.faults, f)
		devices = append(devices, f)
	}
	a := faultdev.NewMemory(testSize, 512, faultdev.MemoryOptions{Name: "/dev/a", GoneIsFinal: true, Budget: 512})
	f := faultdev.New(a)
	r.faults = append(r.faults, f)
	m, err := multipath.New([]poller.Device{f, a.Share(faultdev.MemoryOptions{Name: "/dev/b", GoneIsFinal: true, Budget: 512})}, multipath.Options{Policy: multipath.Failover})
	if err != nil {
		t.Fatal(err)
	}
	if r.Volume, err = volume.New(append(devices, m), volume.Geometry{Chunk: testChunk}); err != nil {
		t.Fatal(err)
	}
	devtest.Close(t, r.Volume)
	return r
}

// gather registers a collector and returns what it tells, by name.
func gather(t testing.TB, c prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	if err := reg.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

// find returns the metric of a family that has these labels, "name=value".
func find(t testing.TB, all map[string]*dto.MetricFamily, name string, labels ...string) *dto.Metric {
	t.Helper()
	var found *dto.Metric
	for _, m := range all[name].GetMetric() {
		have := make(map[string]bool)
		for _, l := range m.GetLabel() {
			have[l.GetName()+"="+l.GetValue()] = true
		}
		matches := true
		for _, want := range labels {
			matches = matches && have[want]
		}
		if matches && found != nil {
			t.Fatalf("%s%v is there twice", name, labels)
		}
		if matches {
			found = m
		}
	}
	if found == nil {
		t.Fatalf("%s has none of %v", name, labels)
	}
	return found
}

func value(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }

// What a scrape says is what came back, to the last one, with names and labels that
// Prometheus's own linter has nothing to say against.
func TestCollect(t *testing.T) {
	v := newRig(t, 3)
	r := devtest.Open(t, v, poller.QueueConfig{Depth: 64})
	const requests = 30
	for i := range int64(requests) {
		r.MustDo(&poller.Request{Op: poller.Op(i % 2), Flags: poller.HiPri, Offset: i * testChunk, Buf: r.Buf(4096)})
	}
	long := &poller.Request{Op: poller.Read, Flags: poller.HiPri, Buf: r.Buf(3 * testChunk)}
	r.MustDo(long, &poller.Request{Op: poller.Flush, Flags: poller.HiPri})
	v.faults[1].SetRules(faultdev.Rule{Ops: faultdev.Reads, Times: 1, Err: syscall.ENODATA})
	r.Do(&poller.Request{Op: poller.Read, Offset: testChunk, Buf: r.Buf(512)})

	all := gather(t, NewCollector(v))
	if len(all) != len(table) {
		t.Errorf("%d metrics of %d", len(all), len(table))
	}
	if problems, err := testutil.CollectAndLint(NewCollector(v)); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	read := find(t, all, "pollux_volume_io_duration_seconds", "volume=build", "op=read", "mode=polled").GetHistogram()
	if read.GetSampleCount() != requests/2+1 {
		t.Errorf("%d reads of %d", read.GetSampleCount(), requests/2+1)
	}
	s := v.Stats()
	latency := s.IO[poller.Read][poller.Polled].Latency
	if len(read.GetBucket()) != 21 {
		t.Errorf("%d buckets", len(read.GetBucket()))
	}
	for i, b := range read.GetBucket() {
		ns := int64(1) << (10 + i)
		if b.GetUpperBound() != float64(ns)/1e9 || b.GetCumulativeCount() != latency.CumulativeLE(ns) {
			t.Errorf("bucket %d: up to %v %d, want up to %v %d", i, b.GetUpperBound(), b.GetCumulativeCount(), float64(ns)/1e9, latency.CumulativeLE(ns))
		}
	}
	if sum := float64(latency.Sum) / 1e9; math.Abs(read.GetSampleSum()-sum) > 1e-12 {
		t.Errorf("the sum is %v, want %v", read.GetSampleSum(), sum)
	}
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{float64(requests/2*4096 + 3*testChunk), "pollux_volume_io_bytes_total", []string{"op=read"}},
		{1, "pollux_volume_io_errors_total", []string{"op=read", "class=medium"}},
		{0, "pollux_volume_io_errors_total", []string{"op=write", "class=medium"}},
		{1, "pollux_member_io_errors_total", []string{"member=1", "device=/dev/m1", "op=read", "class=medium"}},
		{1, "pollux_volume_split_requests_total", nil},
		{64, "pollux_volume_queue_depth", nil},
		{1, "pollux_member_fallbacks_total", []string{"member=0", "reason=flush"}},
		{1, "pollux_member_up", []string{"member=0"}},
		{1, "pollux_volume_up", []string{"volume=build"}},
		{1, "pollux_path_up", []string{"member=2", "device=/dev/b"}},
		{0, "pollux_path_errors_total", []string{"member=2", "device=/dev/a"}},
		{1, "pollux_volume_info", []string{"chunk=16384", "members=3", "uuid="}},
	} {
		if got := value(find(t, all, c.name, c.labels...)); got != c.want {
			t.Errorf("%s%v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if n := find(t, all, "pollux_path_io_duration_seconds", "device=/dev/a", "op=read", "mode=polled").GetHistogram().GetSampleCount(); n == 0 {
		t.Error("nothing went over the first path")
	}
}

// What is lost shows: a path, and then a member with the volume.
func TestCollectLoss(t *testing.T) {
	v := newRig(t, 2)
	r := devtest.Open(t, v, poller.QueueConfig{})
	v.faults[1].SetRules(faultdev.Rule{Err: poller.ErrGone})
	r.MustDo(&poller.Request{Op: poller.Read, Offset: testChunk, Buf: r.Buf(512)})
	all := gather(t, NewCollector(v))
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{0, "pollux_path_up", []string{"device=/dev/a"}}, {1, "pollux_path_up", []string{"device=/dev/b"}},
		{1, "pollux_path_errors_total", []string{"device=/dev/a"}}, {1, "pollux_path_retries_total", []string{"device=/dev/a"}},
		{1, "pollux_path_state_changes_total", []string{"device=/dev/a"}},
		{1, "pollux_member_up", []string{"member=1"}}, {1, "pollux_volume_up", nil},
	} {
		if got := value(find(t, all, c.name, c.labels...)); got != c.want {
			t.Errorf("a path lost: %s%v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	v.faults[0].SetRules(faultdev.Rule{Err: poller.ErrGone})
	r.Do(&poller.Request{Op: poller.Read, Buf: r.Buf(512)})
	all = gather(t, NewCollector(v))
	if got := value(find(t, all, "pollux_volume_up")); got != 0 {
		t.Errorf("a member lost: volume_up is %v", got)
	}
	if got := value(find(t, all, "pollux_volume_io_errors_total", "op=read", "class=gone")); got != 1 {
		t.Errorf("a member lost: %v errors of class gone", got)
	}
}

// The member that is slow is the one that requests wait for.
func TestCollectStraggler(t *testing.T) {
	v := newRig(t, 4)
	const delay = 3 * time.Millisecond
	v.faults[1].SetRules(faultdev.Rule{Delay: delay})
	r := devtest.Open(t, v, poller.QueueConfig{})
	for range 5 {
		r.MustDo(&poller.Request{Op: poller.Read, Flags: poller.HiPri, Buf: r.Buf(4 * testChunk)})
	}
	all := gather(t, NewCollector(v))
	for member := range 4 {
		label := fmt.Sprintf("member=%d", member)
		n, s := value(find(t, all, "pollux_member_straggler_requests_total", label)), value(find(t, all, "pollux_member_straggler_seconds_total", label))
		if slow := member == 1; slow && (n != 5 || s < 5*(delay.Seconds()-1e-3)) || !slow && n != 0 {
			t.Errorf("member %d was last %v times, %v s late", member, n, s)
		}
	}
}

// Several volumes, also of one name, and one volume in several registries.
func TestCollectSeveral(t *testing.T) {
	a, b := newRig(t, 2), newRig(t, 2)
	c := NewCollector(a, b)
	for range 2 {
		all := gather(t, c)
		find(t, all, "pollux_volume_up", "volume=build")
		find(t, all, "pollux_volume_up", "volume=build-2")
	}
	// A device without members is a volume of none.
	disk := devtest.OpenDisk(t, devtest.TempFile(t, 1<<20))
	devtest.Close(t, disk)
	if all := gather(t, NewCollector(disk)); value(find(t, all, "pollux_volume_up")) != 1 || len(all["pollux_member_up"].GetMetric()) != 0 {
		t.Error("a disk is no volume without members")
	}
}

// With writers at work a scrape never goes back, and once they are done it has counted
// all of it, exactly.
func TestCollectBesideWriters(t *testing.T) {
	const writers, each, depth = 4, 8000, 8
	v := newRig(t, 3)
	c := NewCollector(v)
	stop := make(chan struct{})
	var scraper, all sync.WaitGroup
	scraper.Go(func() {
		last := uint64(0)
		for {
			n := totalIOs(gather(t, c))
			if n < last || n > writers*each {
				t.Errorf("after %d I/Os there are %d of %d", last, n, writers*each)
				return
			}
			last = n
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range writers {
		r := devtest.Open(t, v, poller.QueueConfig{Depth: depth, MaxTransfer: 4096, Queues: writers})
		all.Go(func() {
			reqs := make([]*poller.Request, depth)
			for i := range reqs {
				reqs[i] = &poller.Request{Op: poller.Write, Flags: poller.HiPri, Offset: int64(i) * testChunk, Buf: r.Buf(4096)}
			}
			for range each / depth {
				r.MustDo(reqs...)
			}
		})
	}
	all.Wait()
	close(stop)
	scraper.Wait()
	if n := totalIOs(gather(t, c)); n != writers*each {
		t.Errorf("at rest there are %d I/Os of %d", n, writers*each)
	}
}

func totalIOs(all map[string]*dto.MetricFamily) (n uint64) {
	for _, m := range all["pollux_volume_io_duration_seconds"].GetMetric() {
		n += m.GetHistogram().GetSampleCount()
	}
	return n
}

// A scrape costs what there is to tell, and no more: series and allocations grow with
// the members.
func TestScrapeIsLinear(t *testing.T) {
	series := func(volumes, members int) (n int) {
		var all []poller.Device
		for range volumes {
			v := newRig(t, members)
			for range 4 {
				devtest.Open(t, v, poller.QueueConfig{Depth: 4, MaxTransfer: 4096, Queues: 4})
			}
			all = append(all, v)
		}
		for _, f := range gather(t, NewCollector(all...)) {
			for _, m := range f.GetMetric() {
				if h := m.GetHistogram(); h != nil {
					n += len(h.GetBucket()) + 3 // +Inf, sum, count
				} else {
					n++
				}
			}
		}
		return n
	}
	two, three, eight, many := series(1, 2), series(1, 3), series(1, 8), series(16, 8)
	perMember := three - two
	const ofProcess = 2 // worker threads and what it was built from
	if eight != two+6*perMember || many != ofProcess+16*(eight-ofProcess) {
		t.Errorf("%d series with 2 members, %d with 3, %d with 8, %d in 16 volumes", two, three, eight, many)
	}
	t.Logf("%d series a member, %d for the rest of a volume with one that has two paths; 16 volumes of 8 members with 4 queues each: %d",
		perMember, two-2*perMember, many)
	if raceEnabled {
		return
	}
	v := newRig(t, 8)
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(v))
	allocs := testing.AllocsPerRun(5, func() {
		if _, err := reg.Gather(); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%.0f allocations a scrape of 8 members", allocs)
	if most := float64(12 * eight); allocs > most {
		t.Errorf("%.0f allocations for %d series, want %.0f at most", allocs, eight, most)
	}
}

// The names keep the conventions: seconds, bytes, and total for what counts.
func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range table {
		if seen[m.name] || !strings.HasPrefix(m.name, "pollux_") || m.help == "" {
			t.Errorf("%s: doubled, or without prefix or help", m.name)
		}
		seen[m.name] = true
		if total := strings.HasSuffix(m.name, "_total"); total != (m.kind == counter) {
			t.Errorf("%s is a %s", m.name, m.kind)
		}
		if m.kind == histogram && !strings.HasSuffix(m.name, "_seconds") {
			t.Errorf("%s: of what unit?", m.name)
		}
	}
}
