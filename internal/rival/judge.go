// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"pollux/internal/bench"
)

// report is the part of fio's JSON that is used.
type report struct {
	Version string `json:"fio version"`
	Jobs    []struct {
		Error int `json:"error"`
		// Mixed is what unified_rw_reporting makes of read and write.
		Mixed *struct {
			TotalIOs uint64  `json:"total_ios"`
			ShortIOs uint64  `json:"short_ios"`
			IOPS     float64 `json:"iops"`
			CLat     struct {
				Mean       float64            `json:"mean"`
				Percentile map[string]float64 `json:"percentile"`
			} `json:"clat_ns"`
		} `json:"mixed"`
	} `json:"jobs"`
}

// judge makes figures, or one error, of how fio ended.
func judge(ctx context.Context, devices []string, job bench.Job, stdout, stderr []byte, err error) (Figures, error) {
	on := strings.Join(devices, ", ")
	fail := func(format string, args ...any) (Figures, error) {
		return Figures{}, fmt.Errorf("%w on %s "+format, append([]any{ErrFio, on}, args...)...)
	}
	var exit *exec.ExitError
	switch cause := context.Cause(ctx); {
	case err == nil:
	case errors.Is(err, exec.ErrNotFound):
		return Figures{}, fmt.Errorf("%w is not installed: install the Debian package fio", ErrFio)
	case errors.Is(cause, ErrFio):
		return Figures{}, cause
	case cause != nil:
		return fail("was stopped: %w", cause)
	}
	r, parseErr := parse(stdout)
	failed := 0
	for _, j := range r.Jobs {
		if failed == 0 {
			failed = j.Error
		}
	}
	if errors.As(err, &exit) || failed != 0 {
		return fail("failed: %s%s", complaint(stderr, stdout, err, failed), cure(job, failed))
	}
	if err != nil {
		return fail("could not be run: %w", err)
	}
	if parseErr != nil {
		return fail("did not say what it measured (%w); is it fio 3.33 or newer? install the Debian package fio", parseErr)
	}
	m := r.Jobs[0].Mixed
	switch {
	case m.ShortIOs > 0:
		return fail("had %d I/Os that were cut short: the device ends before the job does", m.ShortIOs)
	case m.TotalIOs == 0:
		return fail("did no I/O within %v; choose a longer runtime", job.Runtime)
	}
	return Figures{
		IOPS:         m.IOPS,
		LatencyMean:  m.CLat.Mean,
		LatencyP9999: m.CLat.Percentile[p9999],
		Version:      r.Version,
		IOs:          m.TotalIOs,
	}, nil
}

// p9999 is fio's name of the 99.99th percentile.
const p9999 = "99.990000"

// parse finds the JSON in fio's output, which notes may stand before, and makes sure
// that it has all that is wanted.
func parse(stdout []byte) (report, error) {
	var r report
	at := bytes.IndexByte(stdout, '{')
	if at < 0 {
		return r, errors.New("its output has no JSON")
	}
	if err := json.NewDecoder(bytes.NewReader(stdout[at:])).Decode(&r); err != nil {
		return r, fmt.Errorf("its JSON cannot be read: %w", err)
	}
	if len(r.Jobs) != 1 || r.Jobs[0].Mixed == nil {
		return r, errors.New("its JSON is not that of one job")
	}
	m := r.Jobs[0].Mixed
	if _, ok := m.CLat.Percentile[p9999]; !ok && m.TotalIOs > 0 {
		return r, errors.New("its JSON has no 99.99th percentile")
	}
	return r, nil
}

// complaint is the first thing that fio complained of, in one line.
func complaint(stderr, stdout []byte, err error, errno int) string {
	for _, text := range [][]byte{stderr, stdout} {
		for line := range strings.Lines(string(text)) {
			line = strings.Join(strings.Fields(line), " ")
			if rest, ok := strings.CutPrefix(line, "fio: "); ok && rest != "" {
				return limit(rest)
			}
		}
	}
	if line := strings.Join(strings.Fields(string(stderr)), " "); line != "" {
		return limit(line)
	}
	if errno != 0 {
		return syscall.Errno(errno).Error()
	}
	return err.Error()
}

// limit keeps a line readable.
func limit(line string) string {
	const most = 300
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}

// cure is what helps against the errors that people will meet.
func cure(job bench.Job, errno int) string {
	switch {
	case errno == int(syscall.EOPNOTSUPP) && job.HiPri > 0:
		return "; it cannot be polled (no poll queues, or Linux md): compare with hipri off"
	case errno == int(syscall.EINVAL):
		return "; does it take direct I/O of this bs?"
	}
	return ""
}
