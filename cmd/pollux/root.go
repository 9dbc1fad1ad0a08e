// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pollux/internal/fio"
)

// run is the program: it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The first signal ends a bench in good order. A second one is for those
	// who cannot wait for that: it kills.
	context.AfterFunc(ctx, stop)

	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitGood
	}
	line := "pollux: " + oneLine(err.Error())
	code := exitCode(err)
	if code == exitUsage {
		line += "; see " + cmd.CommandPath() + " --help"
	}
	fmt.Fprintln(stderr, line)
	return code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "pollux",
		Short: "Striped volumes over NVMe drives, with polled I/O",
		Long: `pollux stripes over several NVMe drives (RAID-0) in user space and polls them for
completions instead of waiting for interrupts. RAID-0 HAS NO REDUNDANCY: when one
drive is lost, everything on the volume is.

Commands that print for people print for programs with --json: an object whose first
key is schema_version, sizes in bytes.

` + exitCodesHelp,
		Example: `  # Make a volume of two drives, see it, measure it, and take it apart.
  pollux create fast /dev/nvme0n1 /dev/nvme1n1
  pollux list
  pollux bench fast --rw randread --iodepth 32
  pollux destroy fast

  # Measure a stripe over two drives without making a volume of them.
  pollux bench --build /dev/nvme0n1 /dev/nvme1n1 --rw randread --iodepth 32`,
		Version:       version(),
		SilenceErrors: true, // run prints them, on one line
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate("pollux {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError(err.Error()) })
	root.SetGlobalNormalizationFunc(fioSpelling)
	root.AddCommand(newCreate(), newList(), newInspect(), newDestroy(), newBench(), newVerify(), newExporter(), newMan(), newVersion())
	root.SetHelpCommand(newHelp(root))
	return root
}

// noCommand is for a first argument that is no command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		text += "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return usageError(text)
}

// newHelp replaces cobra's help command, which answers a wrong topic with a page
// and exit code 0.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usageError(fmt.Sprintf("no help for %q", strings.Join(args, " ")))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// fioSpelling lets flags be written as fio writes its options: with underscores,
// and by their second names.
func fioSpelling(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(fio.Canonical(name))
}

// oneLine joins the lines of what libraries say.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
