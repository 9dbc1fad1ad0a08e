// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"slices"
	"time"

	"pollux/poller"
)

// sampleEvery is over what time fio averages for iops_min, bw_min and the like.
const sampleEvery = 500 * time.Millisecond

// Samples are the rates of one operation of a job in intervals of half a second that
// lie within what is measured.
type Samples struct {
	IOPS, BytesPerSecond []float64
}

// sampled is what a job had counted at the last look.
type sampled struct {
	at    time.Time
	ios   [2]uint64
	bytes [2]uint64
}

// sample looks at all jobs every half second until quit is closed.
func (g *group) sample(quit <-chan struct{}) {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	last := make([]sampled, len(g.jobs))
	g.mu.Lock()
	for i := range g.jobs {
		last[i].at = g.jobs[i].rampEnd // nothing was counted before it
	}
	g.mu.Unlock()
	for {
		select {
		case <-quit:
			return
		case <-ticker.C:
		}
		for i := range g.jobs {
			js := &g.jobs[i]
			now := js.count()
			g.mu.Lock()
			measured := js.measuring && !last[i].at.Before(js.rampEnd)
			g.mu.Unlock()
			if measured && !js.ended() {
				js.addSample(last[i], now)
			}
			last[i] = now
		}
	}
}

// count sums up what the job's queues have counted.
func (js *jobSessions) count() sampled {
	now := sampled{at: time.Now()}
	for _, s := range js.sessions {
		stats := s.queue.Stats()
		for op := range now.ios {
			for _, io := range stats.IO[op] {
				now.ios[op] += io.Latency.Count()
				now.bytes[op] += io.Bytes
			}
		}
	}
	return now
}

// ended says that one of the job's goroutines has been told to end, or has done so.
func (js *jobSessions) ended() bool {
	return slices.ContainsFunc(js.sessions, func(s *session) bool { return s.stop.Load() || s.ended.Load() })
}

func (js *jobSessions) addSample(last, now sampled) {
	seconds := now.at.Sub(last.at).Seconds()
	if seconds <= 0 {
		return
	}
	for op := range now.ios {
		s := &js.samples[op]
		s.IOPS = append(s.IOPS, float64(now.ios[op]-last.ios[op])/seconds)
		s.BytesPerSecond = append(s.BytesPerSecond, float64(now.bytes[op]-last.bytes[op])/seconds)
	}
}

// spread is what fio tells of samples.
type spread struct{ min, max, mean, stddev float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	s := spread{min: slices.Min(values), max: slices.Max(values)}
	for _, v := range values {
		s.mean += v / float64(len(values))
	}
	if len(values) > 1 {
		sum := 0.0
		for _, v := range values {
			sum += (v - s.mean) * (v - s.mean)
		}
		s.stddev = math.Sqrt(sum / float64(len(values)-1))
	}
	return s
}

// fillSamples puts the samples of an operation where fio has them, rates of bytes in
// KiB/s.
func (f *FioRates) fillSamples(s Samples) {
	iops, bw := spreadOf(s.IOPS), spreadOf(s.BytesPerSecond)
	f.IOPSMin, f.IOPSMax = uint64(iops.min), uint64(iops.max)
	f.IOPSMean, f.IOPSStdDev, f.IOPSSamples = decimal(iops.mean), decimal(iops.stddev), len(s.IOPS)
	f.BWMin, f.BWMax = uint64(bw.min)>>10, uint64(bw.max)>>10
	f.BWMean, f.BWDev, f.BWSamples = decimal(bw.mean/1024), decimal(bw.stddev/1024), len(s.BytesPerSecond)
	if f.BW > 0 {
		f.BWAgg = min(100, 100*f.BWMean/decimal(f.BW))
	}
}

// operations are those that are measured.
var operations = [...]poller.Op{poller.Read, poller.Write}
