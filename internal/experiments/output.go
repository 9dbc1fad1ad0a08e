// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// fioOutput is what is read of fio's JSON, and of pollux's, which has the same keys.
type fioOutput struct {
	Jobs   []fioJob `json:"jobs"`
	Pollux *struct {
		Group *struct {
			Interrupts *uint64 `json:"interrupts"`
		} `json:"group"`
		Error string `json:"error"`
	} `json:"pollux"`
}

type fioJob struct {
	JobName string `json:"jobname"`
	Error   int    `json:"error"`
	Read    struct {
		TotalIOs uint64          `json:"total_ios"`
		IOPS     float64         `json:"iops"`
		LatNS    fioDistribution `json:"lat_ns"`
		CLatNS   fioDistribution `json:"clat_ns"`
	} `json:"read"`
	Pollux *struct {
		PolledIOs uint64   `json:"polled_ios"`
		Polled    *fioMode `json:"polled"`
		Plain     *fioMode `json:"plain"`
	} `json:"pollux"`
}

type fioMode struct {
	TotalIOs uint64          `json:"total_ios"`
	IOPS     float64         `json:"iops"`
	CLatNS   fioDistribution `json:"clat_ns"`
}

type fioDistribution struct {
	N          uint64             `json:"N"`
	Mean       float64            `json:"mean"`
	StdDev     float64            `json:"stddev"`
	Percentile map[string]float64 `json:"percentile"`
}

// parts reads what a program printed. polling says what each of its jobs asked for, by
// name; a job that is not there has asked for the key "".
func (out *fioOutput) parts(polling map[string]string) ([]Part, error) {
	if out.Pollux != nil && out.Pollux.Error != "" {
		return nil, errors.New(out.Pollux.Error)
	}
	var parts []Part
	for _, j := range out.Jobs {
		if j.Error != 0 {
			return nil, fmt.Errorf("job %s ended with error %d", j.JobName, j.Error)
		}
		asked, ok := polling[j.JobName]
		if !ok {
			asked = polling[""]
		}
		for _, p := range j.parts(asked) {
			if p.IOs == 0 {
				return nil, fmt.Errorf("job %s did no I/O", p.Name)
			}
			parts = pool(parts, p)
		}
	}
	if len(parts) == 0 {
		return nil, errors.New("no job in what it printed")
	}
	for i := range parts {
		p := &parts[i]
		p.IOPS, p.MeanUS, p.StdDevUS, p.P9999US = round3(p.IOPS), round3(p.MeanUS), round3(p.StdDevUS), round3(p.P9999US)
	}
	return parts, nil
}

// parts returns what one job did: all of it, or apart what was polled and what not.
func (j *fioJob) parts(asked string) []Part {
	// fio's clat begins when submitting has returned. With io_uring the I/O has gone
	// on meanwhile, and on one CPU is often done by then. lat begins before, as
	// pollux's latency does, whose lat has no percentiles because it is its clat.
	latency := j.Read.LatNS
	if j.Pollux != nil {
		latency = j.Read.CLatNS
	}
	whole := latency.part(j.JobName, asked, j.Read.TotalIOs, j.Read.IOPS)
	if j.Pollux == nil {
		return []Part{whole}
	}
	whole.PolledIOs = j.Pollux.PolledIOs
	if j.Pollux.Polled == nil || j.Pollux.Plain == nil {
		return []Part{whole}
	}
	polled, plain := j.Pollux.Polled, j.Pollux.Plain
	parts := []Part{
		polled.CLatNS.part("polled", On, polled.TotalIOs, polled.IOPS),
		plain.CLatNS.part("not polled", Off, plain.TotalIOs, plain.IOPS),
	}
	parts[0].PolledIOs = polled.TotalIOs
	return parts
}

func (d *fioDistribution) part(name, polling string, ios uint64, iops float64) Part {
	return Part{Name: name, Polling: polling, IOs: ios, IOPS: iops,
		MeanUS: d.Mean / 1e3, StdDevUS: d.StdDev / 1e3, P9999US: d.Percentile["99.990000"] / 1e3}
}

// pool adds a part to those of the same name: fio lists each of numjobs by itself.
// Percentiles cannot be put together.
func pool(parts []Part, p Part) []Part {
	for i := range parts {
		q := &parts[i]
		if q.Name != p.Name {
			continue
		}
		n, m := float64(q.IOs), float64(p.IOs)
		mean := (q.MeanUS*n + p.MeanUS*m) / (n + m)
		// The mean of squares is what can be averaged.
		squares := (n*(q.StdDevUS*q.StdDevUS+q.MeanUS*q.MeanUS) + m*(p.StdDevUS*p.StdDevUS+p.MeanUS*p.MeanUS)) / (n + m)
		q.MeanUS, q.StdDevUS, q.P9999US = mean, math.Sqrt(max(squares-mean*mean, 0)), 0
		q.IOs, q.PolledIOs, q.IOPS = q.IOs+p.IOs, q.PolledIOs+p.PolledIOs, q.IOPS+p.IOPS
		return parts
	}
	return append(parts, p)
}

// decode finds the JSON in what a program printed: fio prints notes before it.
func decode(stdout []byte) (*fioOutput, error) {
	at := 0
	if !bytes.HasPrefix(stdout, []byte("{")) {
		at = bytes.Index(stdout, []byte("\n{")) + 1
		if at == 0 {
			return nil, errors.New("it printed no JSON")
		}
	}
	var out fioOutput
	if err := json.NewDecoder(bytes.NewReader(stdout[at:])).Decode(&out); err != nil {
		return nil, fmt.Errorf("its JSON cannot be read: %w", err)
	}
	return &out, nil
}

// complaint finds in what a program said the line that tells why it failed. Offsets,
// which are drawn, are left out of it.
func complaint(stderr string) string {
	last := ""
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		if at := strings.Index(line, ": read offset="); strings.Contains(line, "io_u error") && at > 0 {
			return line[:at]
		}
		// What begins so is no reason, and dmsetup's is in the line above its last.
		if line != "" && !strings.HasPrefix(line, "pollux: warning:") && !strings.HasPrefix(line, "pollux: ignored") && line != "Command failed." {
			last = line
		}
	}
	return last
}
