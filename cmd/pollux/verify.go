// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pollux/internal/bench"
)

// newVerify is a bench --verify of a volume that needs to know nothing of benches.
func newVerify() *cobra.Command {
	f := &benchFlags{bs: 64 << 10, hipri: true, verify: true, rounds: defaultRounds}
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
			f.rw = rwFlag(bench.Write)
			if verifyOnly {
				f.rw = rwFlag(bench.Read)
			}
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
	flags.Var(&f.size, "size", "bytes of the volume that are verified, from its start (default all)")
	flags.Var(&f.bs, "bs", "bytes of one I/O")
	flags.IntVar(&f.iodepth, "iodepth", 8, "I/Os in flight")
	flags.Uint64Var(&f.seed, "seed", 0, "of the pattern")
	f.addOpening(flags)
	flags.BoolVar(&f.json, "json", false, "print JSON, as bench does")
	return cmd
}
