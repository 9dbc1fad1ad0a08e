// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"pollux/poller"
)

// ErrJob says that a job cannot be run as it was described.
var ErrJob = errors.New("the job cannot be run")

// Job is one workload. Fields are named as fio's options; zero values mean what
// is said beside them.
type Job struct {
	// Name appears in reports; "" means the name of the workload.
	Name string
	// NumJobs is how many goroutines do the same, each with a queue and offsets of
	// its own; 0 means 1. They are reported as one job.
	NumJobs int
	RW      RW
	// RWMixRead is the percentage of reads of a mixed workload, from 1 to 99; 0
	// means 50.
	RWMixRead int
	// BS is the bytes of one I/O; 0 means 4 KiB.
	BS int64
	// BSSplit replaces BS by several sizes, for reads and for writes; nil means BS.
	// The percentages of each add up to 100. Offsets are multiples of the smallest.
	BSSplit [2][]SizeShare
	// IODepth is how many I/Os are in flight; 0 means 1. The device may grant
	// less, which the Result says.
	IODepth int
	// IODepthBatch is how many I/Os are submitted together at most; 0 means as many as
	// have come back together, more than IODepth as many as that.
	IODepthBatch int
	// BatchCompleteMin and BatchCompleteMax are how many completions are waited for,
	// and taken at most, at a time; 0 means 1 and all.
	BatchCompleteMin, BatchCompleteMax int
	// NoFixedBufs keeps the memory from being registered with the rings.
	NoFixedBufs bool
	// HiPri is how many of a hundred I/Os ask to be polled.
	HiPri int
	// DSync makes every write durable before it completes (poller.FUA).
	DSync bool
	// NoWait fails what would block (poller.NoWait), and with it the run.
	NoWait bool
	// Priority is that of every I/O.
	Priority poller.Priority
	// Offset is where the part of the device begins that is touched.
	Offset int64
	// Size is how many bytes from Offset on are touched; 0 means all.
	Size int64
	// Runtime ends the run; 0 means that only IOSize does. It begins after RampTime.
	Runtime time.Duration
	// RampTime is how long I/O runs before it is measured.
	RampTime time.Duration
	// IOSize ends the run after so many bytes of I/O, of each of NumJobs; 0 means
	// that only Runtime does.
	IOSize int64
	// RateIOPS is how many I/Os per second each of NumJobs begins at most; 0 means
	// any number.
	RateIOPS int
	// Seed chooses the random offsets, and the pattern of Verify.
	Seed uint64
	// Grace is how long I/O may take to come back after the run has ended; 0
	// means 10 s. Then Run gives up on the device.
	Grace time.Duration
}

// SizeShare is a size of I/Os, in bytes, and how many of a hundred have it.
type SizeShare struct {
	BS      int64
	Percent int
}

const (
	defaultBS    = 4 << 10
	defaultGrace = 10 * time.Second
	maxIODepth   = 1 << 16
	maxNumJobs   = 1 << 10
	maxRateIOPS  = 1e9
)

// prepare returns j with every zero replaced by its meaning on a device with
// these limits. The error, which answers to ErrJob, lists all that is wrong.
func (j Job) prepare(l poller.Limits) (Job, error) {
	if j.Name == "" {
		j.Name = j.RW.String()
	}
	if j.NumJobs == 0 {
		j.NumJobs = 1
	}
	if j.RWMixRead == 0 {
		j.RWMixRead = 50
	}
	if j.BS == 0 {
		j.BS = defaultBS
	}
	if j.IODepth == 0 {
		j.IODepth = 1
	}
	// As in fio, a batch is never larger than the depth, whatever it was made for.
	j.IODepthBatch, j.BatchCompleteMin = min(j.IODepthBatch, j.IODepth), min(j.BatchCompleteMin, j.IODepth)
	if j.Size == 0 {
		j.Size = l.Size - min(j.Offset, l.Size)
	}
	if j.Grace == 0 {
		j.Grace = defaultGrace
	}
	var f jobFaults
	f.add(int(j.RW) >= len(rwNames), "rw %v is unknown", j.RW)
	f.add(j.NumJobs < 1 || j.NumJobs > maxNumJobs, "numjobs %d is not from 1 to %d", j.NumJobs, maxNumJobs)
	f.add(j.RWMixRead < 1 || j.RWMixRead > 99, "rwmixread %d is not from 1 to 99", j.RWMixRead)
	j.checkSizes(l, &f)
	f.add(j.IODepth < 0 || j.IODepth > maxIODepth, "iodepth %d is not from 1 to %d", j.IODepth, maxIODepth)
	f.add(j.IODepthBatch < 0, "iodepth-batch %d is negative", j.IODepthBatch)
	f.add(j.BatchCompleteMin < 0, "iodepth-batch-complete-min %d is negative", j.BatchCompleteMin)
	f.add(j.BatchCompleteMax < 0 || j.BatchCompleteMax > 0 && j.BatchCompleteMax < j.BatchCompleteMin,
		"iodepth-batch-complete-max %d is less than iodepth-batch-complete-min %d", j.BatchCompleteMax, j.BatchCompleteMin)
	f.add(j.HiPri < 0 || j.HiPri > 100, "hipri %d%% is not from 0%% to 100%%", j.HiPri)
	f.add(j.Runtime < 0, "runtime %v is negative", j.Runtime)
	f.add(j.RampTime < 0, "ramp-time %v is negative", j.RampTime)
	f.add(j.RampTime > 0 && j.Runtime == 0, "ramp-time needs a runtime")
	f.add(j.IOSize < 0, "io-size %d is negative", j.IOSize)
	f.add(j.RateIOPS < 0 || j.RateIOPS > maxRateIOPS, "rate-iops %d is not from 1 to %d", j.RateIOPS, int64(maxRateIOPS))
	f.add(j.Grace < 0, "grace %v is negative", j.Grace)
	if f != nil {
		return j, fmt.Errorf("%w: %s", ErrJob, strings.Join(f, "; "))
	}
	return j, nil
}

// jobFaults are what is wrong with a job.
type jobFaults []string

func (f *jobFaults) add(is bool, format string, args ...any) {
	if is {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// checkSizes finds what is wrong with the bytes of a job.
func (j Job) checkSizes(l poller.Limits, f *jobFaults) {
	for _, n := range j.sizes() {
		f.add(n <= 0 || l.BlockSize > 0 && n%l.BlockSize != 0, "bs %s is no multiple of the block size %s", FormatSize(n), FormatSize(l.BlockSize))
		f.add(n > l.MaxTransfer, "bs %s is more than the %s that one I/O on this device can have", FormatSize(n), FormatSize(l.MaxTransfer))
	}
	for op, shares := range j.BSSplit {
		sum := 0
		for _, s := range shares {
			f.add(s.Percent < 0 || s.Percent > 100, "bssplit has %d%%", s.Percent)
			sum += s.Percent
		}
		f.add(shares != nil && sum != 100, "the percentages of bssplit for %ss add up to %d", poller.Op(op), sum)
	}
	most := j.maxBS()
	f.add(most > 0 && j.IODepth > 0 && most > poller.MaxArena/int64(j.IODepth), "iodepth %d times bs %s is more than the %s of memory that one queue can have",
		j.IODepth, FormatSize(most), FormatSize(poller.MaxArena))
	f.add(j.Offset < 0 || j.Offset > l.Size || l.BlockSize > 0 && j.Offset%l.BlockSize != 0, "offset %s is no multiple of the block size %s within the %s of the device",
		FormatSize(j.Offset), FormatSize(l.BlockSize), FormatSize(l.Size))
	f.add(j.Size < 0 || j.Size > l.Size-max(j.Offset, 0), "size %s is more than the %s of the device from offset %s on", FormatSize(j.Size), FormatSize(l.Size), FormatSize(j.Offset))
	f.add(j.Size >= 0 && j.Size < most, "size %s is less than bs %s", FormatSize(j.Size), FormatSize(most))
	f.add(l.BlockSize > 0 && j.Size%l.BlockSize != 0, "size %s is no multiple of the block size %s", FormatSize(j.Size), FormatSize(l.BlockSize))
}

// sizes returns the sizes of the job's I/Os.
func (j Job) sizes() []int64 {
	var all []int64
	for op, shares := range j.BSSplit {
		if op == int(poller.Read) && !j.RW.Reads() || op == int(poller.Write) && !j.RW.Writes() {
			continue
		}
		if shares == nil {
			all = append(all, j.BS)
		}
		for _, s := range shares {
			all = append(all, s.BS)
		}
	}
	return all
}

// maxBS and minBS are the longest and the shortest I/O.
func (j Job) maxBS() int64 {
	most := int64(0)
	for _, n := range j.sizes() {
		most = max(most, n)
	}
	return most
}

func (j Job) minBS() int64 {
	least := int64(math.MaxInt64)
	for _, n := range j.sizes() {
		least = min(least, n)
	}
	return least
}

// ios returns after how many I/Os the run ends, where all have the same size.
func (j Job) ios() int64 {
	if j.IOSize == 0 {
		return math.MaxInt64
	}
	return (j.IOSize-1)/j.BS + 1
}

// op returns the operation of a workload that has only one.
func (rw RW) op() poller.Op {
	if rw.Reads() {
		return poller.Read
	}
	return poller.Write
}

// flags are those of an I/O that is to be polled or not.
func (j Job) flags(op poller.Op, hipri bool) poller.Flags {
	var f poller.Flags
	if hipri {
		f |= poller.HiPri
	}
	if j.DSync && op == poller.Write {
		f |= poller.FUA
	}
	if j.NoWait {
		f |= poller.NoWait
	}
	return f
}
