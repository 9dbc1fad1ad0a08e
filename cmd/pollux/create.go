// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pollux/internal/assembly"
	"pollux/poller"
	"pollux/stripe"
)

type createFlags struct {
	chunk         sizeFlag
	dryRun        bool
	force         bool
	allowUnpolled bool
	json          bool
	search        searchFlags
}

func newCreate() *cobra.Command {
	f := &createFlags{chunk: stripe.DefaultChunk}
	cmd := &cobra.Command{
		Use:   "create NAME DEVICE...",
		Short: "Create a striped volume (RAID-0) that is found again by its name",
		Long: `create makes the devices the members of a new volume, in the order given, and
writes on each who belongs together and how. From then on the volume is found by
its name or UUID, whatever its devices are called and in whatever order they come.

It prints what it is about to do before it does anything. --dry-run stops there; it
opens the devices read-only and exits as create would.

Refused are devices that are mounted or otherwise in use, that carry the signature
of a filesystem, a partition table, LVM, md, ZFS or the like, or that belong to
another volume; and a name that a volume has already. --force erases signatures and
what is left of volumes, but does not take a member from a volume that is there:
pollux destroy does. A create that fails puts back what it had overwritten.

A name has 1 to 63 of a-z, 0-9, dot, underscore and dash. The chunk is a power of
two from 4 KiB to 4 MiB. Of devices of unequal size, each is used as far as the
smallest reaches; the plan says what is wasted. 2 MiB of each hold superblocks.

A drive that cannot be polled is refused, or, with --allow-unpolled, taken as it is.

` + searchHelp + `

` + exitCodesHelp,
		Example: `  # See what would happen.
  pollux create fast /dev/nvme0n1 /dev/nvme1n1 --dry-run

  # Do it, with chunks of 128 KiB.
  pollux create fast /dev/nvme0n1 /dev/nvme1n1 --chunk 128KiB

  # The same over a filesystem that is not needed any more. IT IS LOST.
  pollux create fast /dev/nvme0n1 /dev/nvme1n1 --force

  # Try it on two files, which cannot be polled.
  truncate -s 64M a.img b.img
  pollux create try a.img b.img --allow-unpolled
  pollux list --device '*.img'`,
		DisableFlagsInUseLine: true,
		RunE:                  f.run,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, s string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp // a name that there is not yet
			}
			return completePaths(cmd, args, s)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(&f.chunk, "chunk", "contiguous bytes on one device")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the plan and write nothing")
	flags.BoolVar(&f.force, "force", false, "erase signatures of others: WHAT IS ON THE DEVICES IS LOST")
	flags.BoolVar(&f.allowUnpolled, "allow-unpolled", false, "take devices that cannot be polled")
	f.search.add(flags)
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f *createFlags) run(cmd *cobra.Command, args []string) (err error) {
	where, err := f.search.where()
	switch {
	case err != nil:
		return err
	case len(args) == 0:
		return usageError("name the volume and its devices: create NAME DEVICE...")
	case len(args) == 1:
		return usageError(fmt.Sprintf("volume %s needs at least one DEVICE", args[0]))
	}
	c, err := assembly.PrepareCreate(cmd.Context(), assembly.CreateOptions{
		Name:          args[0],
		Devices:       args[1:],
		Chunk:         int64(f.chunk),
		Force:         f.force,
		DryRun:        f.dryRun,
		AllowUnpolled: f.allowUnpolled,
		Where:         where,
	})
	if err != nil {
		return f.cure(err)
	}
	defer func() {
		if e := c.Close(); err == nil {
			err = e
		}
	}()
	out := cmd.OutOrStdout()
	if !f.json {
		if err := writePlan(out, c.Plan); err != nil {
			return err // whoever was to read the plan is not there
		}
	}
	err = errors.Join(c.Plan.Problems...)
	created := false
	if err == nil && !f.dryRun {
		err = notInterrupted(cmd.Context())
	}
	if err == nil && !f.dryRun {
		err = c.Commit()
		created = err == nil
	}
	switch {
	case f.json:
		if e := writeJSON(out, planAsJSON(c.Plan, f.dryRun, created, err)); err == nil {
			err = e
		}
	case created:
		_, err = fmt.Fprintf(out, "created volume %s, UUID %s\n", c.Plan.Name, c.Plan.UUID)
	case err == nil:
		_, err = fmt.Fprintln(out, "dry run: nothing was written")
	}
	return f.cure(err)
}

func (f *createFlags) cure(err error) error {
	if errors.Is(err, poller.ErrNotPollable) && !f.allowUnpolled {
		return cured{err, "or take it as it is: --allow-unpolled"}
	}
	return err
}
