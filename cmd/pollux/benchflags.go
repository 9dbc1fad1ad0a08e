// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"pollux/internal/bench"
	"pollux/internal/fio"
	"pollux/poller"
)

// benchFlags are those of the command line.
type benchFlags struct {
	build         bool
	chunk         sizeFlag
	allowUnpolled bool
	verify        bool
	destructive   bool
	fill          bool
	sweep         bool
	rounds        int
	force         bool
	format        formatFlag
	output        string
	plot          string
	compare       string
	search        searchFlags
	paths         pathFlags
	metrics       metricsFlags

	// options describe the jobs, in the order of the command line.
	options []fio.Option
	jobs    *fio.Set

	// given says which were set by the user.
	given func(name string) bool
}

const (
	defaultRuntime = 10 * time.Second
	defaultRounds  = 5
	// sweepPoint is the time of one row of a sweep, over all rounds.
	sweepPoint = 2 * time.Second
	// comparePoint is that of each of both in one round.
	comparePoint = 2 * time.Second
)

// jobFlag is an option of a job: where it stands says whose it is.
type jobFlag struct {
	flags      *benchFlags
	name, kind string
	standard   string
}

func (v *jobFlag) String() string { return v.standard }
func (v *jobFlag) Type() string   { return v.kind }

// Set implements pflag.Value.
func (v *jobFlag) Set(s string) error {
	if err := fio.Check(v.name, s); err != nil {
		return err
	}
	v.flags.options = append(v.flags.options, fio.Option{Name: v.name, Value: s})
	return nil
}

// addJobFlag adds an option of a job with its help; standard is what it is by default.
func (f *benchFlags) addJobFlag(flags *pflag.FlagSet, name, kind, standard, usage string) {
	flags.Var(&jobFlag{f, name, kind, standard}, name, usage)
	if fio.NeedsNoValue(name) {
		flags.Lookup(name).NoOptDefVal = "1"
	}
}

// addIgnored adds the options of fio that are accepted and do nothing.
func (f *benchFlags) addIgnored(flags *pflag.FlagSet) {
	for name := range fio.Ignored() {
		f.addJobFlag(flags, name, "value", "", "ignored")
		flags.Lookup(name).Hidden = true
	}
}

// jobFileFlag reads a job file of fio's where it stands.
type jobFileFlag struct{ flags *benchFlags }

func (v *jobFileFlag) String() string { return "" }
func (v *jobFileFlag) Type() string   { return "file" }

// Set implements pflag.Value.
func (v *jobFileFlag) Set(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(errors.New("not a regular file"), err)
	}
	options, err := fio.ReadFile(file, printable(filepath.Base(path)))
	v.flags.options = append(v.flags.options, options...)
	return err
}

// check finds what is wrong with the command line alone, before anything is
// opened, and makes the jobs. Without --build there is one argument, the volume.
func (f *benchFlags) check(devices []string) (err error) {
	var faults faults
	if f.jobs, err = fio.Parse(f.options); err != nil {
		return usageError(err.Error())
	}
	switch {
	case f.build && len(devices) == 0:
		faults.add("--build needs at least one DEVICE")
	case f.build && f.given("device"):
		faults.add("--device is where to look for a volume; devices of --build are arguments")
	case f.build:
	case len(devices) == 0:
		faults.add("name a volume, or the devices to stripe over: --build DEVICE...")
	case len(devices) > 1:
		faults.add("name one volume, or say --build to stripe over devices; there are %d arguments", len(devices))
	case f.given("chunk"):
		faults.add("--chunk is for --build; a volume has the chunk that it was created with")
	}
	for _, d := range devices {
		if d == "on" || d == "off" || d == "0" || d == "1" {
			faults.add("%q is taken for a device; write --hipri=%s", d, d)
		}
	}
	f.checkModes(&faults)
	if err := faults.err(); err != nil || f.build {
		return err
	}
	return checkVolume(devices[0])
}

// checkModes finds flags that do not go together.
func (f *benchFlags) checkModes(faults *faults) {
	if f.rounds < 1 {
		faults.add("--rounds %d: must be at least 1", f.rounds)
	}
	if f.given("rounds") && !f.sweep && f.compare == "" {
		faults.add("--rounds is for --sweep and --compare")
	}
	f.checkCompare(faults)
	for _, name := range []string{"iodepth", "io-size", "ramp-time", "verify"} {
		if f.sweep && f.given(name) {
			faults.add("--%s and --sweep exclude each other", name)
		}
	}
	for _, name := range []string{"runtime", "io-size", "ramp-time", "rate-iops", "bssplit", "numjobs", "fill"} {
		if f.verify && f.given(name) {
			faults.add("--%s and --verify exclude each other: all of --size is verified, once", name)
		}
	}
	if f.jobs.Len() > 1 && (f.sweep || f.verify) {
		faults.add("--sweep and --verify take one job; there are %d", f.jobs.Len())
	}
	checkOutput(faults, "output", f.output)
	checkOutput(faults, "plot", f.plot)
	if f.metrics.linger > 0 && f.metrics.listen == "" {
		faults.add("--metrics-linger is for --metrics-listen")
	}
	if f.plot != "" && f.verify {
		faults.add("--plot and --verify exclude each other")
	}
}

// writes says that data on the devices will be overwritten.
func (f *benchFlags) writes() bool {
	return f.fill || f.jobs.Writes() || f.verify && !f.given("rw")
}

// prepare returns the jobs for a device with these limits.
func (f *benchFlags) prepare(l poller.Limits) ([]bench.Job, error) {
	runtime := defaultRuntime
	switch {
	case f.sweep:
		runtime = sweepPoint / time.Duration(f.rounds)
	case f.compare != "":
		runtime = comparePoint
	}
	jobs, err := f.jobs.Jobs(l.Size, l.BlockSize, runtime)
	if err != nil {
		return nil, usageError(err.Error())
	}
	if f.verify && !f.given("rw") {
		jobs[0].RW = bench.Write
	}
	return jobs, bench.Check(l, jobs)
}

// formatFlag is how the report is printed.
type formatFlag string

const (
	formatText     formatFlag = "normal"
	formatJSON     formatFlag = "json"
	formatJSONPlus formatFlag = "json+"
)

func (f *formatFlag) String() string { return string(*f) }
func (f *formatFlag) Type() string   { return "format" }

// Set implements pflag.Value.
func (f *formatFlag) Set(s string) error {
	all := []string{string(formatText), string(formatJSON), string(formatJSONPlus)}
	if !slices.Contains(all, s) {
		return errors.New("none of " + strings.Join(all, ", "))
	}
	*f = formatFlag(s)
	return nil
}

// jsonFlag is --json, which is short for --output-format=json.
type jsonFlag struct{ format *formatFlag }

func (f *jsonFlag) String() string   { return "false" }
func (f *jsonFlag) Type() string     { return "bool" }
func (f *jsonFlag) IsBoolFlag() bool { return true }

// Set implements pflag.Value.
func (f *jsonFlag) Set(s string) error {
	yes, err := fio.ParseBool(s)
	if yes && *f.format != formatJSONPlus {
		*f.format = formatJSON
	}
	return err
}

// addFormat adds --json.
func (f *benchFlags) addJSON(flags *pflag.FlagSet, usage string) {
	if f.format == "" {
		f.format = formatText
	}
	flags.Var(&jsonFlag{&f.format}, "json", usage)
	flags.Lookup("json").NoOptDefVal = "true"
}
