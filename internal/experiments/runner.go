// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"pollux/internal/blockdev"
)

// Config is what Measure needs to know.
type Config struct {
	Experiment int
	// Number and Setup are those of the Boot.
	Number int
	Setup  string
	// Devices are the drives, as paths of block devices: two. For the third experiment
	// one is enough, and two with SetupNoHead are paths to one drive.
	Devices []string
	// Smoke makes everything short.
	Smoke bool
	// Fill writes the part of the drives that will be read. Their content is lost.
	Fill bool
	// Pollux and Fio are the programs; "" finds them by PATH.
	Pollux, Fio string
	// Log takes a line now and then about how far it is.
	Log io.Writer
}

const (
	// size is the part of each target that is read. Each drive holds half of a stripe's,
	// and all of a single target's.
	size = "64M"
	// chunk is the same for pollux and its rivals: 64 KiB, in sectors 128.
	chunk        = "64KiB"
	chunkSectors = 128
	chunkKiB     = 64
	// slack is how long a program may take beyond its runtime.
	slack = 20 * time.Second
	// smokeRuntime is that of one run.
	smokeRuntime = 150 * time.Millisecond
)

// runner runs programs and keeps what they measured.
type runner struct {
	Config
	ctx  context.Context
	boot *Boot
}

// Measure runs one boot's share of an experiment. What it returns is also good when
// there is an error, as far as it goes. A run that fails is no error but a Sample with
// an Error.
func Measure(ctx context.Context, c Config) (*Boot, error) {
	if c.Pollux == "" {
		c.Pollux = "pollux"
	}
	if c.Fio == "" {
		c.Fio = "fio"
	}
	r := &runner{Config: c, ctx: ctx, boot: &Boot{Experiment: c.Experiment, Number: c.Number, Setup: c.Setup, Smoke: c.Smoke, Filled: c.Fill}}
	plans := map[int]func() error{1: r.first, 2: r.second, 3: r.third}
	plan, want := plans[c.Experiment], 2
	if c.Experiment == 3 {
		want = 1
	}
	if plan == nil {
		return r.boot, fmt.Errorf("there is no experiment %d", c.Experiment)
	}
	if len(c.Devices) < want {
		return r.boot, fmt.Errorf("experiment %d needs %d drives; there are %d", c.Experiment, want, len(c.Devices))
	}
	var err error
	if r.boot.Guest, err = findGuest(ctx, c); err != nil {
		return r.boot, err
	}
	if c.Fill {
		if err := r.fill(); err != nil {
			return r.boot, err
		}
	}
	if err = plan(); err == nil {
		err = ctx.Err()
	}
	return r.boot, err
}

// fill writes what will be read. A drive answers reads of what was never written
// without looking anywhere.
func (r *runner) fill() error {
	drives := r.Devices
	if r.Experiment == 3 {
		drives = drives[:1]
	}
	for _, d := range drives {
		if err := r.fillDevice(d); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) fillDevice(device string) error {
	_, stderr, err := r.output(time.Minute, r.Pollux, "bench", "--build", device, "--rw=write", "--bs=128k", "--iodepth=8",
		"--hipri=off", "--size="+size, "--io-size="+size, "--destructive", "--json")
	if err != nil {
		// pollux's own cure is not one that a user of this has.
		said := strings.Replace(failure(err, stderr), "--force writes over it", "wipefs -a "+device+" takes it off", 1)
		return fmt.Errorf("%s: cannot write what is to be read: %s", device, said)
	}
	return nil
}

// rounds returns how many there are, of n if it is no smoke test.
func (r *runner) rounds(n int) int {
	if r.Smoke {
		return 1
	}
	return n
}

// runtime returns the time of one run, d if it is no smoke test.
func (r *runner) runtime(d time.Duration) time.Duration {
	if r.Smoke {
		return smokeRuntime
	}
	return d
}

func (r *runner) say(format string, args ...any) {
	fmt.Fprintf(r.Log, "experiment %d: %s\n", r.Experiment, fmt.Sprintf(format, args...))
}

// pollux runs pollux bench over devices. polling is as in fioOutput.parts, runtime that
// of the options.
func (r *runner) pollux(key Key, round int, polling map[string]string, runtime time.Duration, devices []string, options ...string) {
	args := append([]string{"bench", "--build"}, devices...)
	args = append(append(args, "--chunk="+chunk), options...)
	key.Tool = ToolPollux
	r.run(key, round, polling, runtime, r.Pollux, append(args, "--json"))
}

// fio runs fio.
func (r *runner) fio(key Key, round int, polling map[string]string, runtime time.Duration, options ...string) {
	// The latency whose percentiles are wanted is the one that pollux measures.
	args := append(options, "--lat_percentiles=1", "--clat_percentiles=0", "--output-format=json")
	key.Tool = ToolFio
	r.run(key, round, polling, runtime, r.Fio, args)
}

func (r *runner) run(key Key, round int, polling map[string]string, runtime time.Duration, program string, args []string) {
	if r.ctx.Err() != nil {
		return
	}
	s := Sample{Key: key, Round: round, Command: commandLine(key.Tool, args)}
	before, known, err := blockdev.NVMeInterrupts()
	known = known && err == nil
	stdout, stderr, runErr := r.output(runtime+slack, program, args...)
	after, _, err := blockdev.NVMeInterrupts()
	known = known && err == nil
	if known {
		n := after - before
		s.Interrupts = &n
	}
	out, err := decode(stdout)
	if err == nil {
		if p := out.Pollux; p != nil && p.Group != nil {
			// pollux counts them around its measurement alone.
			s.Interrupts = p.Group.Interrupts
		}
		s.Parts, err = out.parts(polling)
	}
	if runErr != nil {
		err = runErr
	}
	if err != nil {
		s.Parts, s.Error = nil, failure(err, stderr)
	}
	if r.ctx.Err() == nil {
		r.boot.Samples = append(r.boot.Samples, s)
	}
}

// timedOut is the Error of a program that was killed.
const timedOut = "did not end in time"

// failure is one line on why a program failed.
func failure(err error, stderr string) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return timedOut
	}
	if said := complaint(stderr); said != "" {
		return said
	}
	return err.Error()
}

// output runs a program to its end, or for limit at most. It is then killed with all
// its children, which is an error that answers to context.DeadlineExceeded.
func (r *runner) output(limit time.Duration, program string, args ...string) (stdout []byte, stderr string, err error) {
	return output(r.ctx, limit, program, args...)
}

func output(ctx context.Context, limit time.Duration, program string, args ...string) (stdout []byte, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.Bytes(), errOut.String(), err
}

// must runs a program that makes something or takes it away. It is not cut when ctx is
// cancelled, since what is half made on a host would stay.
func (r *runner) must(program string, args ...string) error {
	_, stderr, err := output(context.WithoutCancel(r.ctx), slack, program, args...)
	if err != nil {
		return fmt.Errorf("%s: %s", commandLine(program, args), failure(err, stderr))
	}
	return nil
}

func commandLine(program string, args []string) string {
	return strings.Join(append([]string{program}, args...), " ")
}
