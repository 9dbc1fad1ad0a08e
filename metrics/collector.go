// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"pollux/internal/blockdev"
	"pollux/internal/hist"
	"pollux/poller"
	"pollux/stripe"
)

// Collector is a prometheus.Collector of devices. Any number of registries may have it,
// and gather at any time, until a device is closed and after.
type Collector struct {
	devices []named
}

type named struct {
	poller.Device
	name string
}

// NewCollector makes a collector of volumes (volume.Handle.Device, volume.New) or any
// other devices. Those of one name are told apart by a number behind it. It reads the
// Stats of each once a scrape, and does no I/O.
func NewCollector(devices ...poller.Device) *Collector {
	c := &Collector{}
	times := make(map[string]int)
	for _, d := range devices {
		name := d.Stats().Name
		if times[name]++; times[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, times[name])
		}
		c.devices = append(c.devices, named{d, name})
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range table {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	out := sink{ch}
	for _, d := range c.devices {
		s := d.Stats()
		out.volume(d.name, s)
		out.info(d, s)
	}
	if n, err := blockdev.WorkerThreads(); err == nil {
		out.value(workers, float64(n))
	}
	out.value(buildInfo, 1, version(), runtime.Version(), poller.RingBackend)
}

// sink makes metrics of numbers.
type sink struct{ ch chan<- prometheus.Metric }

func (k sink) value(m *metric, v float64, labels ...string) {
	kind := prometheus.GaugeValue
	if m.kind == counter {
		kind = prometheus.CounterValue
	}
	k.ch <- prometheus.MustNewConstMetric(m.desc, kind, v, labels...)
}

func (k sink) count(m *metric, n uint64, labels ...string) { k.value(m, float64(n), labels...) }

// volume tells of a volume, its members, and the paths to those.
func (k sink) volume(name string, s poller.Stats) {
	k.io(s, volumeLatency, volumeBytes, volumeErrors, name)
	k.value(volumeInFlight, float64(s.InFlight), name)
	k.value(volumeDepth, float64(s.Depth), name)
	k.count(volumePolls, s.Polls, name)
	k.count(volumeEmptyPolls, s.EmptyPolls, name)
	k.count(volumeSplits, s.Splits, name)
	k.value(volumeUp, up(s.Err == nil), name)
	for i, m := range s.Members {
		var last poller.Straggler
		if i < len(s.Stragglers) {
			last = s.Stragglers[i]
		}
		k.member(m, last, name, strconv.Itoa(i), m.Name)
	}
}

func (k sink) member(m poller.Stats, last poller.Straggler, labels ...string) {
	k.io(m, memberLatency, memberBytes, memberErrors, labels...)
	k.value(memberInFlight, float64(m.InFlight), labels...)
	k.value(memberDepth, float64(m.Depth), labels...)
	k.count(memberPolls, m.Polls, labels...)
	k.count(memberEmptyPolls, m.EmptyPolls, labels...)
	k.count(memberRetries, below(m, func(c poller.Counters) uint64 { return c.Retries }), labels...)
	k.count(memberSplits, below(m, func(c poller.Counters) uint64 { return c.Splits }), labels...)
	for why := range m.Fallbacks {
		n := below(m, func(c poller.Counters) uint64 { return c.Fallbacks[why] })
		k.count(memberFallbacks, n, append(labels, poller.Fallback(why).String())...)
	}
	k.value(stragglerTime, float64(last.Nanoseconds)/1e9, labels...)
	k.count(stragglers, last.Requests, labels...)
	k.value(memberUp, up(m.Err == nil), labels...)
	for i, p := range m.Paths {
		k.path(m.Members[i], p, labels[0], labels[1], m.Members[i].Name)
	}
}

func (k sink) path(s poller.Stats, p poller.PathStats, labels ...string) {
	k.io(s, pathLatency, pathBytes, nil, labels...)
	k.value(pathInFlight, float64(p.InFlight), labels...)
	k.value(pathUp, up(p.Live), labels...)
	k.count(pathErrors, p.Errors, labels...)
	k.count(pathRetries, p.Retries, labels...)
	k.count(pathChanges, p.Changes, labels...)
}

// io tells of reads, writes and flushes; errors nil leaves those out.
func (k sink) io(s poller.Stats, latency, bytes, errors *metric, labels ...string) {
	for op := range s.IO {
		name := poller.Op(op).String()
		for mode := range s.IO[op] {
			if poller.Op(op) != poller.Flush || poller.Mode(mode) == poller.Plain { // no flush is polled
				k.ch <- constHistogram(latency, s.IO[op][mode].Latency, append(labels, name, poller.Mode(mode).String())...)
			}
		}
		plain, polled := &s.IO[op][poller.Plain], &s.IO[op][poller.Polled]
		if poller.Op(op) != poller.Flush {
			k.count(bytes, plain.Bytes+polled.Bytes, append(labels, name)...)
		}
		if errors == nil {
			continue
		}
		for class := range plain.ErrorsBy {
			k.count(errors, plain.ErrorsBy[class]+polled.ErrorsBy[class], append(labels, name, poller.ErrorClass(class).String())...)
		}
	}
}

// The upper bounds of the buckets: powers of two of nanoseconds, which are edges of the
// histogram that counts, so that nothing is interpolated; about 1 us to 1 s.
const (
	leastLE = 10
	mostLE  = 30
)

func constHistogram(m *metric, h hist.Histogram, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, mostLE-leastLE+1)
	for power := leastLE; power <= mostLE; power++ {
		ns := int64(1) << power
		buckets[float64(ns)/1e9] = h.CumulativeLE(ns)
	}
	return prometheus.MustNewConstHistogram(m.desc, h.Count(), float64(h.Sum)/1e9, buckets, labels...)
}

// below sums a counter over a device and all that it is stacked on.
func below(s poller.Stats, counter func(poller.Counters) uint64) uint64 {
	n := counter(s.Counters)
	for _, m := range s.Members {
		n += below(m, counter)
	}
	return n
}

// info tells what a volume is, as far as the device says.
func (k sink) info(d named, s poller.Stats) {
	uuid, chunk := "", ""
	if v, ok := d.Device.(interface{ UUID() string }); ok {
		uuid = v.UUID()
	}
	if v, ok := d.Device.(interface{ Geometry() stripe.Geometry }); ok {
		g := v.Geometry()
		chunk = strconv.FormatInt(g.Chunk(), 10)
	}
	queues, fixed, flags := leaves(s)
	k.value(volumeInfo, 1, d.name, uuid, chunk, strconv.Itoa(len(s.Members)),
		poller.RingFlagNames(flags), strconv.FormatBool(queues > 0 && fixed == queues))
}

// leaves sums up what only disks know.
func leaves(s poller.Stats) (queues, fixed int, flags uint32) {
	if len(s.Members) == 0 {
		return s.Queues, s.FixedQueues, s.RingFlags
	}
	for _, m := range s.Members {
		q, f, fl := leaves(m)
		queues, fixed, flags = queues+q, fixed+f, flags|fl
	}
	return queues, fixed, flags
}

func up(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// version is that of the program, as far as the go command has left it there.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}
