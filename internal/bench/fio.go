// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pollux/internal/hist"
	"pollux/poller"
)

// The types below are the part of fio 3.33's JSON output that has a meaning
// here, with its keys, types and units. bw is KiB/s, runtime ms, elapsed s.

// FioJob is one of jobs.
type FioJob struct {
	JobName string            `json:"jobname"`
	GroupID int               `json:"groupid"`
	Error   int               `json:"error"`
	Elapsed int64             `json:"elapsed"`
	Options map[string]string `json:"job options"`
	Read    FioRates          `json:"read"`
	Write   FioRates          `json:"write"`
	// Trim is there for programs that add up all three; nothing is trimmed.
	Trim       FioRates  `json:"trim"`
	JobRuntime int64     `json:"job_runtime"`
	Pollux     QueueInfo `json:"pollux"`

	beside bool
}

// FioRates is read or write of a job.
type FioRates struct {
	IOBytes  uint64      `json:"io_bytes"`
	IOKBytes uint64      `json:"io_kbytes"`
	BWBytes  uint64      `json:"bw_bytes"`
	BW       uint64      `json:"bw"`
	IOPS     decimal     `json:"iops"`
	Runtime  int64       `json:"runtime"`
	TotalIOs uint64      `json:"total_ios"`
	ShortIOs uint64      `json:"short_ios"`
	DropIOs  uint64      `json:"drop_ios"`
	CLat     FioQuantity `json:"clat_ns"`
	Lat      FioQuantity `json:"lat_ns"`
	// The rest is over the half seconds that lie within the run: bw in KiB/s, bw_agg
	// the mean's percentage of bw.
	BWMin       uint64  `json:"bw_min"`
	BWMax       uint64  `json:"bw_max"`
	BWAgg       decimal `json:"bw_agg"`
	BWMean      decimal `json:"bw_mean"`
	BWDev       decimal `json:"bw_dev"`
	BWSamples   int     `json:"bw_samples"`
	IOPSMin     uint64  `json:"iops_min"`
	IOPSMax     uint64  `json:"iops_max"`
	IOPSMean    decimal `json:"iops_mean"`
	IOPSStdDev  decimal `json:"iops_stddev"`
	IOPSSamples int     `json:"iops_samples"`
}

// FioQuantity is a distribution in nanoseconds.
type FioQuantity struct {
	Min        int64       `json:"min"`
	Max        int64       `json:"max"`
	Mean       decimal     `json:"mean"`
	StdDev     decimal     `json:"stddev"`
	N          uint64      `json:"N"`
	Percentile percentiles `json:"percentile,omitempty"`
	// Bins are all buckets that have any, by the latency that stands for them, as in
	// fio's json+ (Report.FullBins).
	Bins bins `json:"bins,omitempty"`

	latency hist.Histogram
}

// QueueInfo is what fio has no key for.
type QueueInfo struct {
	// IODepth is the depth granted, which may be less than the iodepth asked.
	IODepth      int  `json:"iodepth_granted"`
	FixedBuffers bool `json:"fixed_buffers"`
	// PolledIOs and PlainIOs add up to the total_ios of read and write.
	PolledIOs uint64 `json:"polled_ios"`
	PlainIOs  uint64 `json:"plain_ios"`
	// Polled and Plain are both apart, where there are both.
	Polled *ModeRates `json:"polled,omitempty"`
	Plain  *ModeRates `json:"plain,omitempty"`
	// NumJobs is how many goroutines did the job, IOsPerJob what each did.
	NumJobs   int      `json:"numjobs"`
	IOsPerJob []uint64 `json:"ios_per_job"`
	// Fallbacks counts I/O that was to be polled and was sent plain, by reason.
	// Where jobs ran beside each other nobody knows whose it was, nor whose the
	// Retries, the Splits and the interrupts were: they are those of the group.
	Fallbacks map[string]uint64 `json:"fallbacks"`
	// Polls and EmptyPolls, those that found nothing, are of the job's
	// queues; Retries and Splits of the drives below them.
	Polls      uint64 `json:"polls"`
	EmptyPolls uint64 `json:"empty_polls"`
	Retries    uint64 `json:"retries"`
	Splits     uint64 `json:"splits"`
	// WorkerThreads is how many io_uring worker threads there were at the end.
	WorkerThreads   int      `json:"iou_wrk_threads"`
	InterruptsPerIO *decimal `json:"interrupts_per_io"`
	Interrupted     bool     `json:"interrupted"`
}

// ModeRates are of the I/Os of a job that were polled, or were not, reads and writes
// together.
type ModeRates struct {
	TotalIOs uint64      `json:"total_ios"`
	IOPS     decimal     `json:"iops"`
	CLat     FioQuantity `json:"clat_ns"`
}

// GroupInfo is what is known only of all jobs together that ran at once.
type GroupInfo struct {
	// Runtime is in ms, from when the last ramp time was over.
	Runtime    int64             `json:"runtime"`
	PolledIOs  uint64            `json:"polled_ios"`
	PlainIOs   uint64            `json:"plain_ios"`
	IOPS       decimal           `json:"iops"`
	Fallbacks  map[string]uint64 `json:"fallbacks"`
	Retries    uint64            `json:"retries"`
	Splits     uint64            `json:"splits"`
	Workers    int               `json:"iou_wrk_threads"`
	Interrupts *uint64           `json:"interrupts"`
	// InterruptsPerPlainIO counts on polled I/O to cause none.
	InterruptsPerIO      *decimal `json:"interrupts_per_io"`
	InterruptsPerPlainIO *decimal `json:"interrupts_per_plain_io"`
}

// bins is an object whose keys are nanoseconds, in order.
type bins []bin

type bin struct {
	ns    int64
	count uint64
}

// MarshalJSON implements json.Marshaler.
func (bs bins) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, bin := range bs {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"%d":%d`, bin.ns, bin.count)
	}
	return append(b, '}'), nil
}

// decimal has six places, as fio's have.
type decimal float64

// MarshalJSON implements json.Marshaler.
func (d decimal) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(d), 'f', 6, 64), nil
}

// percentiles is an object whose order is that of the list.
type percentiles []percentile

type percentile struct {
	p  float64
	ns int64
}

// MarshalJSON implements json.Marshaler.
func (ps percentiles) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range ps {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strconv.FormatFloat(p.p, 'f', 6, 64) + `":` + strconv.FormatInt(p.ns, 10))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// fioPercentiles is fio's default list.
var fioPercentiles = []float64{1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99}

// Fio returns the result in fio's structure.
func (r Result) Fio() FioJob {
	job := FioJob{
		JobName:    r.Job.Name,
		Error:      int(r.Errno),
		Elapsed:    int64((r.Elapsed + time.Second - 1) / time.Second),
		Options:    r.Job.options(),
		Read:       r.fioRates(poller.Read),
		Write:      r.fioRates(poller.Write),
		JobRuntime: r.Elapsed.Milliseconds(),
	}
	read, write := r.Rates(poller.Read), r.Rates(poller.Write)
	polled := read.Polled + write.Polled
	job.Pollux = QueueInfo{
		IODepth:       r.IODepth,
		FixedBuffers:  r.FixedBuffers,
		PolledIOs:     polled,
		PlainIOs:      read.IOs + write.IOs - polled,
		Fallbacks:     r.Fallbacks(),
		Polls:         r.Stats.Polls,
		EmptyPolls:    r.Stats.EmptyPolls,
		Retries:       r.sum(func(c poller.Counters) uint64 { return c.Retries }),
		Splits:        splitsByDrives(r.Stats),
		WorkerThreads: r.Workers,
		Interrupted:   r.Interrupted,
	}
	job.Pollux.NumJobs, job.Pollux.IOsPerJob = max(len(r.IOsPerJob), 1), r.IOsPerJob
	if job.beside = r.Beside; r.Beside {
		job.Pollux.Fallbacks = nil
	}
	if polled > 0 && job.Pollux.PlainIOs > 0 {
		job.Pollux.Polled, job.Pollux.Plain = r.modeRates(poller.Polled), r.modeRates(poller.Plain)
	}
	if perIO, ok := r.InterruptsPerIO(); ok {
		job.Pollux.InterruptsPerIO = (*decimal)(&perIO)
	}
	return job
}

// Latency returns that of all I/Os of one mode, reads and writes together.
func (r Result) Latency(mode poller.Mode) hist.Histogram {
	return r.Stats.IO[poller.Read][mode].Latency.Add(r.Stats.IO[poller.Write][mode].Latency)
}

func (r Result) modeRates(mode poller.Mode) *ModeRates {
	latency := r.Latency(mode)
	return &ModeRates{
		TotalIOs: latency.Count(),
		IOPS:     decimal(perSecond(latency.Count(), r.Elapsed)),
		CLat:     fioQuantity(latency),
	}
}

// Fio returns what is known of the jobs together.
func (g Group) Fio() *GroupInfo {
	var polled, total uint64
	for _, op := range operations {
		polled += g.Stats.IO[op][poller.Polled].Latency.Count()
	}
	total = ioCount(g.Stats)
	r := Result{Stats: g.Stats}
	info := &GroupInfo{
		Runtime:   g.Elapsed.Milliseconds(),
		PolledIOs: polled,
		PlainIOs:  total - polled,
		IOPS:      decimal(perSecond(total, g.Elapsed)),
		Fallbacks: r.Fallbacks(),
		Retries:   r.sum(func(c poller.Counters) uint64 { return c.Retries }),
		Splits:    splitsByDrives(r.Stats),
		Workers:   g.Workers,
	}
	if g.InterruptsKnown {
		info.Interrupts = &g.Interrupts
		info.InterruptsPerIO = ratio(decimal(g.Interrupts), decimal(total))
		info.InterruptsPerPlainIO = ratio(decimal(g.Interrupts), decimal(total-polled))
	}
	return info
}

func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func (j *FioJob) fullBins() {
	all := []*FioQuantity{&j.Read.CLat, &j.Write.CLat}
	for _, mode := range []*ModeRates{j.Pollux.Polled, j.Pollux.Plain} {
		if mode != nil {
			all = append(all, &mode.CLat)
		}
	}
	for _, q := range all {
		q.fullBins()
	}
}

func (q *FioQuantity) fullBins() {
	for i, n := range q.latency.Buckets {
		if n > 0 {
			q.Bins = append(q.Bins, bin{hist.UpperBound(i), n})
		}
	}
}

func (r Result) fioRates(op poller.Op) FioRates {
	rates := r.Rates(op)
	out := FioRates{
		IOBytes:  rates.Bytes,
		IOKBytes: rates.Bytes >> 10,
		BWBytes:  uint64(rates.BytesPerSecond),
		BW:       uint64(rates.BytesPerSecond) >> 10,
		IOPS:     decimal(rates.IOPS),
		TotalIOs: rates.IOs,
		CLat:     fioQuantity(rates.Latency),
	}
	if rates.IOs > 0 {
		out.Runtime = r.Elapsed.Milliseconds()
	}
	out.Lat = out.CLat
	out.Lat.Percentile = nil // fio has them in clat alone
	out.fillSamples(r.Samples[op])
	return out
}

func fioQuantity(h hist.Histogram) FioQuantity {
	q := FioQuantity{N: h.Count(), latency: h}
	if q.N == 0 {
		return q
	}
	q.Min, q.Max = h.Min().Nanoseconds(), h.Max().Nanoseconds()
	q.Mean, q.StdDev = decimal(float64(h.Sum)/float64(q.N)), decimal(h.StdDev())
	for _, p := range fioPercentiles {
		q.Percentile = append(q.Percentile, percentile{p, h.Percentile(p).Nanoseconds()})
	}
	return q
}

// options are those that were given or stand for what is done, in fio's spelling.
func (j Job) options() map[string]string {
	o := map[string]string{
		"name":    j.Name,
		"rw":      j.RW.String(),
		"bs":      FormatSize(j.BS),
		"iodepth": strconv.Itoa(j.IODepth),
		"size":    FormatSize(j.Size),
		"hipri":   "0",
	}
	set := func(is bool, name, value string) {
		if is {
			o[name] = value
		}
	}
	set(j.HiPri == 100, "hipri", "1")
	set(j.HiPri > 0 && j.HiPri < 100, "hipri", fmt.Sprintf("%d%%", j.HiPri))
	set(j.NumJobs > 1, "numjobs", strconv.Itoa(j.NumJobs))
	set(j.RW.Reads() && j.RW.Writes(), "rwmixread", strconv.Itoa(j.RWMixRead))
	set(j.IODepthBatch > 0, "iodepth_batch", strconv.Itoa(j.IODepthBatch))
	set(j.BatchCompleteMin > 0, "iodepth_batch_complete_min", strconv.Itoa(j.BatchCompleteMin))
	set(j.BatchCompleteMax > 0, "iodepth_batch_complete_max", strconv.Itoa(j.BatchCompleteMax))
	set(j.NoFixedBufs, "fixedbufs", "0")
	set(j.DSync, "sync", "dsync")
	set(j.NoWait, "nowait", "1")
	set(j.Priority != 0, "prio", strconv.Itoa(int(j.Priority&(1<<13-1))))
	set(j.Priority>>13 != 0, "prioclass", strconv.Itoa(int(j.Priority>>13)))
	set(j.Offset > 0, "offset", FormatSize(j.Offset))
	set(j.Runtime > 0, "runtime", j.Runtime.String())
	set(j.RampTime > 0, "ramp_time", j.RampTime.String())
	set(j.IOSize > 0, "io_size", FormatSize(j.IOSize))
	set(j.RateIOPS > 0, "rate_iops", strconv.Itoa(j.RateIOPS))
	set(j.Seed != 0, "randseed", strconv.FormatUint(j.Seed, 10))
	if read, write := splitText(j.BSSplit[poller.Read]), splitText(j.BSSplit[poller.Write]); read != "" || write != "" {
		o["bssplit"] = cmp.Or(read, FormatSize(j.BS)+"/100") + "," + cmp.Or(write, FormatSize(j.BS)+"/100")
	}
	return o
}

// splitText is fio's bssplit of one operation.
func splitText(shares []SizeShare) string {
	var parts []string
	for _, s := range shares {
		parts = append(parts, fmt.Sprintf("%s/%d", FormatSize(s.BS), s.Percent))
	}
	return strings.Join(parts, ":")
}
