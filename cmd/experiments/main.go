// SPDX-License-Identifier: Apache-2.0

// Command experiments measures, and reports on, the three published experiments. It is
// the part of scripts/experiments that is no shell; docs/experiments.md tells about both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"pollux/internal/experiments"
)

const usage = `Usage: experiments measure --experiment N --boot N --setup NAME --dir DIR [--smoke] [--fill] DEVICE...
       experiments report --experiment N --dir DIR --out DIR [--source VERSION] [--real]

measure runs one boot's share of an experiment and writes DIR/EXPERIMENT.BOOT.json.
report makes N.json, N.md and N.svg in DIR of --out from these files, and prints what
had to hold: exit code 1 if something did not.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes.
const (
	codeGood   = 0
	codeFailed = 1
	codeUsage  = 64
	codeDidNot = 70
)

var errUsage = errors.New("wrong usage")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	held := true
	err := errUsage
	if len(args) > 0 {
		switch args[0] {
		case "measure":
			err = measure(ctx, args[1:], stderr)
		case "report":
			held, err = report(ctx, args[1:], stdout)
		case "-h", "--help", "help":
			fmt.Fprint(stdout, usage)
			return codeGood
		}
	}
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "experiments: %v\n%s", err, usage)
		return codeUsage
	case err != nil:
		fmt.Fprintf(stderr, "experiments: %v\n", err)
		return codeDidNot
	case !held:
		return codeFailed
	}
	return codeGood
}

// parse reads flags; what is wrong with them answers to errUsage.
func parse(flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return nil
}

func measure(ctx context.Context, args []string, stderr io.Writer) error {
	c := experiments.Config{Log: stderr}
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	flags.IntVar(&c.Experiment, "experiment", 0, "")
	flags.IntVar(&c.Number, "boot", 1, "")
	flags.StringVar(&c.Setup, "setup", "", "")
	flags.BoolVar(&c.Smoke, "smoke", false, "")
	flags.BoolVar(&c.Fill, "fill", false, "")
	dir := flags.String("dir", "", "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if c.Devices = flags.Args(); *dir == "" || len(c.Devices) == 0 {
		return fmt.Errorf("%w: measure wants --dir and devices", errUsage)
	}
	boot, err := experiments.Measure(ctx, c)
	return errors.Join(err, boot.Write(*dir))
}

// report says whether all held that had to.
func report(ctx context.Context, args []string, stdout io.Writer) (bool, error) {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	experiment := flags.Int("experiment", 0, "")
	dir := flags.String("dir", "", "")
	out := flags.String("out", "", "")
	source := flags.String("source", "", "")
	real := flags.Bool("real", false, "")
	if err := parse(flags, args); err != nil {
		return false, err
	}
	if *dir == "" || *out == "" || flags.NArg() > 0 {
		return false, fmt.Errorf("%w: report wants --dir and --out, and nothing else", errUsage)
	}
	boots, err := experiments.ReadBoots(*dir, *experiment)
	if err != nil {
		return false, err
	}
	result, err := experiments.Collect(boots, experiments.FindHost(ctx, !*real), *source, time.Now())
	if err != nil {
		return false, err
	}
	held := true
	for _, c := range result.Checks {
		word := "ok"
		if !c.OK {
			word, held = "NO", false
		}
		fmt.Fprintf(stdout, "%s  %s\n", word, c.Text)
	}
	return held, result.Write(*out)
}
