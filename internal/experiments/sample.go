// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// Boot is what was measured between one start of a machine and the next. Measure makes
// it, and Collect puts several together.
type Boot struct {
	Experiment int `json:"experiment"`
	// Number tells the boots of one experiment apart, from 1 on.
	Number int `json:"boot"`
	// Setup is which machine it was: one of the Setup constants.
	Setup string `json:"setup"`
	Smoke bool   `json:"smoke"`
	// Filled says that what was read had been written before.
	Filled  bool     `json:"filled"`
	Guest   Guest    `json:"guest"`
	Samples []Sample `json:"samples"`
}

// Sample is one run of one program.
type Sample struct {
	Key
	Round   int    `json:"round"`
	Command string `json:"command"`
	// Error is why there are no figures, in the program's words; "" if there are.
	Error string `json:"error,omitempty"`
	// Interrupts are those of all NVMe drives during the run; nil where nobody knows.
	Interrupts *uint64 `json:"interrupts,omitempty"`
	Parts      []Part  `json:"parts,omitempty"`
}

// Key says what was measured. Samples with the same one are rounds of the same.
type Key struct {
	// Case is one of the Case constants.
	Case string `json:"case"`
	// Tool is ToolPollux or ToolFio.
	Tool string `json:"tool"`
	// Target is what the I/O went to: one of the Target constants.
	Target string `json:"target"`
	// Polling is "on", "off" or, where both are in one run, "mixed".
	Polling string `json:"polling"`
	NumJobs int    `json:"numjobs"`
	IODepth int    `json:"iodepth"`
	// Batch is fio's iodepth_batch; 0 means all that came back together.
	Batch int `json:"batch"`
}

// Part is a share of the I/O of a Sample that is reported apart: a job, or what was
// polled of it.
type Part struct {
	Name string `json:"name"`
	// Polling is "on" if the program asked for it.
	Polling string `json:"polling"`
	IOs     uint64 `json:"ios"`
	// PolledIOs of IOs were polled, as pollux counts; fio does not know.
	PolledIOs uint64  `json:"polled_ios"`
	IOPS      float64 `json:"iops"`
	// The latencies, in microseconds, are from when an I/O was submitted to when it was
	// seen to be done. P9999US, the 99.99th percentile, is 0 where it is not known.
	MeanUS   float64 `json:"mean_us"`
	StdDevUS float64 `json:"stddev_us"`
	P9999US  float64 `json:"p9999_us"`
}

// The values of Sample and Boot.
const (
	ToolPollux = "pollux"
	ToolFio    = "fio"

	On, Off, Mixed = "on", "off", "mixed"

	// What the first experiment runs: half of one queue's I/O polled, two jobs and ten
	// of which half poll, and one job alone.
	CaseHalf  = "half"
	CaseTwo   = "1+1"
	CaseTen   = "5+5"
	CaseAlone = "alone"
	// CaseSweep is the second experiment's, CasePaths the third's.
	CaseSweep = "sweep"
	CasePaths = "paths"

	TargetDrive    = "one drive"
	TargetStripe   = "stripe over two drives"
	TargetDM       = "dm-stripe"
	TargetMD       = "md raid0"
	TargetPath     = "one path"
	TargetHead     = "native multipath"
	TargetJoined   = "pollux multipath"
	TargetTCPPath  = "one TCP path"
	TargetTCPHead  = "native multipath over TCP"
	SetupOneCPU    = "one-cpu"
	SetupTwoCPUs   = "two-cpus"
	SetupMultipath = "multipath"
	SetupNoHead    = "no-multipath"
	SetupHost      = "host"
)

// maxFile is the largest file that ReadBoots takes: far more than Measure writes.
const maxFile = 64 << 20

// ReadBoots reads the files that Measure has written for one experiment into a folder,
// in the order of the boots. Without any it is an error.
func ReadBoots(dir string, experiment int) ([]Boot, error) {
	files, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%d.*.json", experiment)))
	if err != nil {
		return nil, err
	}
	var boots []Boot
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Size() > maxFile {
			return nil, fmt.Errorf("%s: no file of this program's", name)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var b Boot
		if err := json.Unmarshal(data, &b); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if b.Experiment != experiment {
			return nil, fmt.Errorf("%s: is of experiment %d", name, b.Experiment)
		}
		boots = append(boots, b)
	}
	if len(boots) == 0 {
		return nil, fmt.Errorf("%s: nothing was measured for experiment %d", dir, experiment)
	}
	slices.SortFunc(boots, func(a, b Boot) int { return a.Number - b.Number })
	return boots, nil
}

// Write writes the boot as a file that ReadBoots finds in dir.
func (b *Boot) Write(dir string) error {
	data, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.%d.json", b.Experiment, b.Number)), append(data, '\n'), 0o644)
}

// round3 keeps three places: nanoseconds of a microsecond.
func round3(f float64) float64 { return math.Round(f*1e3) / 1e3 }
