// SPDX-License-Identifier: Apache-2.0

// Package rival runs a job through the real fio, to say how pollux compares with what
// people would use instead.
package rival

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pollux/internal/bench"
	"pollux/poller"
)

// ErrJob says that fio cannot do a job as pollux does it.
var ErrJob = errors.New("fio cannot do this job alike")

// Command returns the command line, program included, by which fio 3.33 or newer does
// a job on devices. Several devices are read and written in turn: the members of a
// stripe, but without its order. Errors answer to ErrJob and name the option that is in
// the way.
//
// What fio could do in several ways is done so:
//
//   - I/O goes through io_uring as ours does: direct, by registered files, and by fixed
//     buffers unless the job has none; with hipri through an IOPOLL ring.
//   - A job without batch options submits whatever has come back together. fio comes
//     nearest with batches as large as the depth: it then takes all that is there,
//     waiting for one, and submits as many with one system call. Its own default, a system
//     call for each I/O, would be an easier rival.
//   - iodepth_batch is passed as it is, though fio means "at most" (it also submits
//     fewer before it waits).
//   - Offsets are drawn with replacement, and buffers are not filled anew for each
//     write: as in pollux.
//   - Reads and writes are reported together (unified_rw_reporting), since percentiles
//     of two distributions cannot be added up afterwards.
func Command(devices []string, job bench.Job) ([]string, error) {
	if err := check(devices, job); err != nil {
		return nil, err
	}
	filename, err := filename(devices)
	if err != nil {
		return nil, err
	}
	depth := max(job.IODepth, 1)
	c := command{"fio", "--name=rival", "--output-format=json", "--eta=never", "--unified_rw_reporting=mixed"}
	if !job.RW.Writes() {
		c.add("readonly")
	}
	c.add("filename=%s", filename)
	// What is not there is not made: fio would measure the page cache.
	c.add("allow_file_create=0")
	c.add("ioengine=io_uring")
	c.add("hipri=%d", job.HiPri/100)
	c.add("direct=1")
	c.add("fixedbufs=%d", number(!job.NoFixedBufs))
	c.add("registerfiles=1")
	c.add("rw=%v", job.RW)
	if job.RW.Reads() && job.RW.Writes() {
		c.add("rwmixread=%d", mixRead(job))
	}
	c.add("bs=%d", blockSize(job))
	if split := bssplit(job); split != "" {
		c.add("bssplit=%s", split)
	}
	c.add("norandommap=1")
	c.add("scramble_buffers=0")
	c.add("iodepth=%d", depth)
	c.add("iodepth_batch=%d", cmp.Or(job.IODepthBatch, depth))
	c.add("iodepth_batch_complete_min=%d", max(job.BatchCompleteMin, 1))
	c.add("iodepth_batch_complete_max=%d", cmp.Or(job.BatchCompleteMax, depth))
	c.add("numjobs=%d", max(job.NumJobs, 1))
	c.add("thread=1")
	c.add("group_reporting=1")
	if job.Offset > 0 {
		c.add("offset=%d", job.Offset)
	}
	if job.Size > 0 {
		c.add("size=%d", job.Size)
	}
	if job.Runtime > 0 {
		c.add("runtime=%s", microseconds(job.Runtime))
	}
	if job.IOSize > 0 {
		c.add("io_size=%d", job.IOSize)
	} else {
		c.add("time_based=1")
	}
	if job.RampTime > 0 {
		c.add("ramp_time=%s", microseconds(job.RampTime))
	}
	if job.RateIOPS > 0 {
		c.add("rate_iops=%s", rateIOPS(job))
	}
	// fio's seeds are signed, and 0 would give all of numjobs the same offsets.
	if seed := job.Seed & math.MaxInt64; seed > 0 {
		c.add("randseed=%d", seed)
	}
	if job.DSync && job.RW.Writes() {
		c.add("sync=dsync")
	}
	if job.NoWait {
		c.add("nowait=1")
	}
	if job.Priority != 0 {
		c.add("prioclass=%d", job.Priority>>13)
		c.add("prio=%d", job.Priority&(1<<13-1))
	}
	return c, nil
}

// command is a command line.
type command []string

func (c *command) add(format string, args ...any) {
	*c = append(*c, "--"+fmt.Sprintf(format, args...))
}

// check finds what fio cannot do, or not as pollux does.
func check(devices []string, job bench.Job) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrJob}, args...)...)
	}
	switch {
	case len(devices) == 0:
		return refuse("it needs a device")
	case job.HiPri != 0 && job.HiPri != 100:
		return refuse("hipri=%d%%, where fio polls all I/O or none", job.HiPri)
	case job.RateIOPS > 0 && bssplit(job) != "":
		return refuse("rate-iops with bssplit, where fio limits bytes instead")
	case job.Offset > 0 && len(devices) > 1:
		return refuse("offset on %d devices, where fio begins there on each of them", len(devices))
	case job.Runtime <= 0 && job.IOSize <= 0:
		return refuse("it has neither runtime nor io-size")
	case job.RampTime > 0 && job.Runtime <= 0:
		return refuse("ramp-time needs a runtime")
	case job.Runtime > 0 && job.Runtime < time.Millisecond:
		return refuse("runtime=%v is less than 1ms", job.Runtime)
	case job.RateIOPS > 0 && job.RW.Reads() && job.RW.Writes() && strings.Contains(","+rateIOPS(job)+",", ",0,"):
		return refuse("rate-iops=%d is too little to be shared by reads and writes", job.RateIOPS)
	}
	return nil
}

// filename joins devices as fio reads them: separated by colons, those within a name
// after a backslash.
func filename(devices []string) (string, error) {
	var names []string
	for _, dev := range devices {
		// An absolute path is neither "-", which is standard input, nor an option.
		path, err := filepath.Abs(dev)
		if err != nil {
			return "", fmt.Errorf("fio's filename of %q: %w", dev, err)
		}
		if strings.TrimRight(path, " \t\n") != path {
			return "", fmt.Errorf("%w: %q ends in a blank, which fio cuts off; use a link to it", ErrJob, dev)
		}
		names = append(names, strings.ReplaceAll(path, ":", `\:`))
	}
	return strings.Join(names, ":"), nil
}

func blockSize(job bench.Job) int64 { return cmp.Or(job.BS, 4<<10) }
func mixRead(job bench.Job) int     { return cmp.Or(job.RWMixRead, 50) }

// bssplit is fio's option for what the job does, "" where all sizes are alike.
func bssplit(job bench.Job) string {
	var parts []string
	split := false
	for _, op := range []poller.Op{poller.Read, poller.Write} {
		if op == poller.Read && !job.RW.Reads() || op == poller.Write && !job.RW.Writes() {
			continue
		}
		shares := job.BSSplit[op]
		if shares == nil {
			shares = []bench.SizeShare{{BS: blockSize(job), Percent: 100}}
		} else {
			split = true
		}
		var sizes []string
		for _, s := range shares {
			if s.Percent > 0 {
				sizes = append(sizes, fmt.Sprintf("%d/%d", s.BS, s.Percent))
			}
		}
		parts = append(parts, strings.Join(sizes, ":"))
	}
	if !split {
		return ""
	}
	return strings.Join(parts, ",")
}

// rateIOPS is fio's option: it limits reads and writes each, where the job's figure is
// for both.
func rateIOPS(job bench.Job) string {
	if !job.RW.Reads() || !job.RW.Writes() {
		return strconv.Itoa(job.RateIOPS)
	}
	reads := job.RateIOPS * mixRead(job) / 100
	return fmt.Sprintf("%d,%d", reads, job.RateIOPS-reads)
}

func microseconds(d time.Duration) string {
	return strconv.FormatInt(max(d.Microseconds(), 1), 10) + "us"
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
