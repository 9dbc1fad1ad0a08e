// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"strconv"
	"time"

	"pollux/internal/hist"
	"pollux/poller"
)

// The types below are the part of fio 3.33's JSON output that has a meaning
// here, with its keys, types and units. bw is KiB/s, runtime ms, elapsed s.

// FioJob is one of jobs.
type FioJob struct {
	JobName    string            `json:"jobname"`
	GroupID    int               `json:"groupid"`
	Error      int               `json:"error"`
	Elapsed    int64             `json:"elapsed"`
	Options    map[string]string `json:"job options"`
	Read       FioRates          `json:"read"`
	Write      FioRates          `json:"write"`
	JobRuntime int64             `json:"job_runtime"`
	Pollux     QueueInfo         `json:"pollux"`
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
}

// FioQuantity is a distribution in nanoseconds.
type FioQuantity struct {
	Min        int64       `json:"min"`
	Max        int64       `json:"max"`
	Mean       decimal     `json:"mean"`
	StdDev     decimal     `json:"stddev"`
	N          uint64      `json:"N"`
	Percentile percentiles `json:"percentile,omitempty"`
}

// QueueInfo is what fio has no key for.
type QueueInfo struct {
	// IODepth is the depth granted, which may be less than the iodepth asked.
	IODepth      int  `json:"iodepth_granted"`
	FixedBuffers bool `json:"fixed_buffers"`
	// PolledIOs and PlainIOs add up to the total_ios of read and write.
	PolledIOs uint64 `json:"polled_ios"`
	PlainIOs  uint64 `json:"plain_ios"`
	// Fallbacks counts I/O that was to be polled and was sent plain, by reason.
	Fallbacks map[string]uint64 `json:"fallbacks"`
	// Polls and EmptyPolls, those that found nothing, are of the device's
	// queue; Retries and Splits of the drives below it.
	Polls      uint64 `json:"polls"`
	EmptyPolls uint64 `json:"empty_polls"`
	Retries    uint64 `json:"retries"`
	Splits     uint64 `json:"splits"`
	// WorkerThreads is how many io_uring worker threads there were at the end.
	WorkerThreads   int      `json:"iou_wrk_threads"`
	InterruptsPerIO *decimal `json:"interrupts_per_io"`
	Interrupted     bool     `json:"interrupted"`
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
		Splits:        r.sum(func(c poller.Counters) uint64 { return c.Splits }),
		WorkerThreads: r.Workers,
		Interrupted:   r.Interrupted,
	}
	if perIO, ok := r.InterruptsPerIO(); ok {
		job.Pollux.InterruptsPerIO = (*decimal)(&perIO)
	}
	return job
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
	return out
}

func fioQuantity(h hist.Histogram) FioQuantity {
	q := FioQuantity{N: h.Count()}
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

// options are those that were given or stood for, in fio's spelling.
func (j Job) options() map[string]string {
	o := map[string]string{
		"name":    j.Name,
		"rw":      j.RW.String(),
		"bs":      FormatSize(j.BS),
		"iodepth": strconv.Itoa(j.IODepth),
		"size":    FormatSize(j.Size),
		"hipri":   "0",
	}
	if j.HiPri {
		o["hipri"] = "1"
	}
	if j.Runtime > 0 {
		o["runtime"] = j.Runtime.String()
	}
	if j.IOSize > 0 {
		o["io_size"] = FormatSize(j.IOSize)
	}
	return o
}
