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
	RW   RW
	// BS is the bytes of one I/O; 0 means 4 KiB.
	BS int64
	// IODepth is how many I/Os are in flight; 0 means 1. The device may grant
	// less, which the Result says.
	IODepth int
	// Runtime ends the run; 0 means that only IOSize does.
	Runtime time.Duration
	// Size is how many bytes from the start of the device are touched; 0 means
	// all.
	Size int64
	// IOSize ends the run after so many bytes of I/O; 0 means that only Runtime
	// does.
	IOSize int64
	// HiPri asks that every I/O be polled.
	HiPri bool
	// Seed chooses the random offsets, and the pattern of Verify.
	Seed uint64
	// Grace is how long I/O may take to come back after the run has ended; 0
	// means 10 s. Then Run gives up on the device.
	Grace time.Duration
}

const (
	defaultBS    = 4 << 10
	defaultGrace = 10 * time.Second
	maxIODepth   = 1 << 16
)

// prepare returns j with every zero replaced by its meaning on a device with
// these limits. The error, which answers to ErrJob, lists all that is wrong.
func (j Job) prepare(l poller.Limits) (Job, error) {
	if j.Name == "" {
		j.Name = j.RW.String()
	}
	if j.BS == 0 {
		j.BS = defaultBS
	}
	if j.IODepth == 0 {
		j.IODepth = 1
	}
	if j.Size == 0 {
		j.Size = l.Size
	}
	if j.Grace == 0 {
		j.Grace = defaultGrace
	}
	var faults []string
	fault := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	fault(int(j.RW) >= len(rwNames), "rw %v is unknown", j.RW)
	fault(j.BS < 0 || l.BlockSize > 0 && j.BS%l.BlockSize != 0, "bs %s is no multiple of the block size %s", FormatSize(j.BS), FormatSize(l.BlockSize))
	fault(j.BS > l.MaxTransfer, "bs %s is more than the %s that one I/O on this device can have", FormatSize(j.BS), FormatSize(l.MaxTransfer))
	fault(j.IODepth < 0 || j.IODepth > maxIODepth, "iodepth %d is not from 1 to %d", j.IODepth, maxIODepth)
	fault(j.BS > 0 && j.IODepth > 0 && j.BS > poller.MaxArena/int64(j.IODepth), "iodepth %d times bs %s is more than the %s of memory that one queue can have",
		j.IODepth, FormatSize(j.BS), FormatSize(poller.MaxArena))
	fault(j.Size < 0 || j.Size > l.Size, "size %s is more than the %s of the device", FormatSize(j.Size), FormatSize(l.Size))
	fault(j.Size >= 0 && j.Size < j.BS, "size %s is less than bs %s", FormatSize(j.Size), FormatSize(j.BS))
	fault(l.BlockSize > 0 && j.Size%l.BlockSize != 0, "size %s is no multiple of the block size %s", FormatSize(j.Size), FormatSize(l.BlockSize))
	fault(j.Runtime < 0, "runtime %v is negative", j.Runtime)
	fault(j.IOSize < 0, "io-size %d is negative", j.IOSize)
	fault(j.Grace < 0, "grace %v is negative", j.Grace)
	if faults != nil {
		return j, fmt.Errorf("%w: %s", ErrJob, strings.Join(faults, "; "))
	}
	return j, nil
}

// ios returns after how many I/Os the run ends.
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

func (j Job) flags() poller.Flags {
	if j.HiPri {
		return poller.HiPri
	}
	return 0
}
