// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pollux/internal/bench"
	"pollux/internal/fio"
)

// newVerify is a bench --verify of a volume that needs to know nothing of benches.
func newVerify() *cobra.Command {
	f := &benchFlags{
		verify: true,
		rounds: defaultRounds,
		// What the user says comes later, and wins.
		options: []fio.Option{{Name: "bs", Value: "64k"}, {Name: "iodepth", Value: "8"}},
	}
	verifyOnly := false
	cmd := &cobra.Command{
		Use:   "verify NAME|UUID",
		Short: "Write a pattern to a volume, read it back and compare",
		Long: `verify writes a pattern to all of --size of the volume, reads it back and compares
every byte. Of wrong data it tells the first byte, the member it is on and where.
What was on the volume is lost, so it needs --destructive.

--verify-only writes nothing and opens the volume read-only: it reads back what an
earlier run with the same --seed wrote, after a reboot or with the drives moved.

` + searchHelp + `

SIGINT or SIGTERM ends it early, with exit code 1.

` + exitCodesHelp,
		Example: `  # OVERWRITE the first GiB and read it back.
  pollux verify fast --size 1g --destructive

  # After a reboot: is it still there?
  pollux verify fast --size 1g --verify-only`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.destructive && verifyOnly {
				return usageError("--destructive and --verify-only exclude each other")
			}
			rw := bench.Write
			if verifyOnly {
				rw = bench.Read
			}
			f.options = append(f.options, fio.Option{Name: "rw", Value: rw.String()})
			// The workload is as good as given.
			f.given = func(name string) bool { return name == "rw" || cmd.Flags().Changed(name) }
			if !f.destructive && !verifyOnly {
				name, err := oneVolume(args)
				if err != nil {
					return err
				}
				return refusal(fmt.Sprintf("volume %s: verify writes, and what is on the volume would be lost; say --destructive if that is meant, or --verify-only to read what an earlier run wrote", name))
			}
			return f.run(cmd, args)
		},
	}
	cmd.ValidArgsFunction = completeVolume(&f.search)
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.destructive, "destructive", false, "allow writing: DATA ON THE VOLUME IS LOST")
	flags.BoolVar(&verifyOnly, "verify-only", false, "only read back what an earlier run of the same --seed wrote")
	f.addJobFlag(flags, "size", "size", "", "bytes of the volume that are verified (default all)")
	f.addJobFlag(flags, "offset", "size", "", "where these begin")
	f.addJobFlag(flags, "bs", "size", "64KiB", "bytes of one I/O")
	f.addJobFlag(flags, "iodepth", "int", "8", "I/Os in flight")
	f.addJobFlag(flags, "seed", "int", "0", "of the pattern")
	f.addHiPri(flags)
	f.addOpening(flags)
	f.paths.add(cmd)
	f.addJSON(flags, "print JSON, as bench does")
	return cmd
}
