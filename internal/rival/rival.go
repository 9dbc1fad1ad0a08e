// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"pollux/internal/bench"
)

var (
	// ErrDestructive says that a job would write and was not allowed to.
	ErrDestructive = errors.New("the job writes")
	// ErrDevice says that a device is not there, or not as large as the job needs.
	ErrDevice = errors.New("fio has nothing to run on")
	// ErrFio says that fio is missing, failed, or did not say what it measured.
	ErrFio = errors.New("fio")
)

// Figures are what fio measured, of reads and writes together.
type Figures struct {
	IOPS float64
	// LatencyMean and LatencyP9999 are nanoseconds of clat: from when an I/O was
	// submitted to the kernel until fio had it back.
	LatencyMean, LatencyP9999 float64
	// Version is fio's, as "fio-3.33".
	Version string
	// IOs is how many were completed after the ramp time.
	IOs uint64
}

// grace is what fio may need beyond the times of the job, to start and to end.
const grace = 30 * time.Second

// Run does a job on devices, which are block devices or regular files, by the Command
// of the job. A job that writes destroys what is on them and is refused unless
// destructive.
//
// It returns when fio has ended, and nothing that fio started is left; that is at the
// latest when ctx is done, or 30 s after the job's runtime and ramp time. A job that
// ends by io-size alone has no deadline but that of ctx. Errors answer to ErrJob,
// ErrDestructive, ErrDevice, ErrFio, or to why ctx is done, and are one line. Any number
// of goroutines may call it.
func Run(ctx context.Context, devices []string, job bench.Job, destructive bool) (Figures, error) {
	argv, err := Command(devices, job)
	if err != nil {
		return Figures{}, err
	}
	if job.RW.Writes() && !destructive {
		return Figures{}, fmt.Errorf("%w: fio would overwrite %s; allow it, or compare a job that reads",
			ErrDestructive, strings.Join(devices, ", "))
	}
	for _, dev := range devices {
		if err := checkDevice(dev, job.Offset, job.Size/int64(len(devices))); err != nil {
			return Figures{}, err
		}
	}
	if job.Runtime > 0 {
		limit := job.Runtime + job.RampTime + grace
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w did not end within %v and was killed: %s does not answer",
			ErrFio, limit, strings.Join(devices, " or ")))
		defer cancel()
	}
	stdout, stderr, err := run(ctx, argv)
	return judge(ctx, devices, job, stdout, stderr, err)
}

// checkDevice refuses what fio would make, lengthen, or read beyond the end of, all of
// which it measures as if it was a drive.
func checkDevice(dev string, offset, size int64) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrDevice, err)
		}
	}()
	info, err := os.Stat(dev)
	if err != nil {
		return err
	}
	if t := info.Mode().Type(); t != 0 && t != fs.ModeDevice {
		return fmt.Errorf("%s is neither a block device nor a regular file", dev)
	}
	f, err := os.Open(dev)
	if err != nil {
		return err
	}
	defer f.Close()
	has, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	// What a job without a size leaves to fio is something, at least.
	if needs := offset + max(size, 1); has < needs {
		return fmt.Errorf("%s has %s, the job reaches to %s; choose a smaller size",
			dev, bench.FormatSize(has), bench.FormatSize(needs))
	}
	return nil
}
