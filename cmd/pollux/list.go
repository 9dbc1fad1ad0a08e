// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pollux/internal/assembly"
	"pollux/internal/bench"
)

type listFlags struct {
	json   bool
	search searchFlags
}

func newList() *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List volumes and what is wrong with them",
		Long: `list looks at devices, read-only and without a lock, and shows the volumes that they
make up, with their members by slot.

A volume is whole when every member is there once and as it was; incomplete when one
is missing, doubled, stale or not what it was; unfinished when its creation or
destruction was interrupted, which pollux create or pollux destroy puts right.
OPEN says whether a process has it open, for reading or for writing.

Under a member whose drive is reached over several paths these are listed: those that
pollux joins, or that the kernel does, and those over which it was not found.

` + searchHelp + `

What could not be read is told on the standard error, and is no failure.

` + exitCodesHelp,
		Example: `  pollux list
  pollux list --json
  pollux list --device '/dev/nvme*n1' --device backup.img`,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE:                  f.run,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.search.add(flags)
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f *listFlags) run(cmd *cobra.Command, _ []string) error {
	where, err := f.search.where()
	if err != nil {
		return err
	}
	list, err := assembly.Search(cmd.Context(), where)
	if err != nil {
		return err
	}
	var volumes []volumeJSON
	for _, s := range list.Sets {
		volumes = append(volumes, volumeOf(s, list))
	}
	if len(list.Unread) > 0 {
		var why []string
		for _, u := range list.Unread {
			why = append(why, u.Err.Error())
		}
		warn(cmd.ErrOrStderr(), "%s could not be read: %s", counted(len(why), "device"), some(why))
	}
	if f.json {
		return writeJSON(cmd.OutOrStdout(), listAsJSON(volumes, list))
	}
	return writeList(cmd.OutOrStdout(), volumes, len(list.Looks))
}

func writeList(w io.Writer, volumes []volumeJSON, looked int) error {
	var b strings.Builder
	if len(volumes) == 0 {
		fmt.Fprintf(&b, "no volume (looked at %s)\n", counted(looked, "device"))
	}
	if len(volumes) > 0 {
		t := table(&b)
		fmt.Fprintln(t, "NAME\tUUID\tSTATE\tSIZE\tCHUNK\tMEMBERS\tOPEN")
		for _, v := range volumes {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n", v.Name, v.UUID, v.State,
				bytesText(v.Size), bench.FormatSize(v.Chunk), v.MembersFound, v.MembersTotal, v.Open)
		}
		_ = t.Flush() // to a strings.Builder, which takes everything
	}
	for _, v := range volumes {
		fmt.Fprintf(&b, "\n%s:\n", v.Name)
		t := table(&b)
		for _, m := range v.Members {
			slot, path := "-", printable(m.Path)
			if m.Slot >= 0 {
				slot = fmt.Sprint(m.Slot)
			}
			if m.Path == "" {
				path = "-"
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\n", slot, path, m.describe())
			if m.note == "" {
				continue
			}
			for _, p := range m.Paths {
				device, way := p.cells()
				fmt.Fprintf(t, "  \t  %s\t  %s\n", device, way)
			}
		}
		_ = t.Flush()
		for _, p := range v.Problems {
			fmt.Fprintf(&b, "  problem: %s\n", p)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
