// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pollux/internal/assembly"
	"pollux/internal/superblock"
)

type destroyFlags struct {
	force  bool
	dryRun bool
	json   bool
	search searchFlags
}

func newDestroy() *cobra.Command {
	f := &destroyFlags{}
	cmd := &cobra.Command{
		Use:   "destroy NAME|UUID",
		Short: "Destroy a volume, or what is left of one",
		Long: `destroy erases the superblocks of a volume's members: of all, where it is whole, or
of those that are there. Without them nothing says how the data on the drives
belongs together, and there is no way back. The data itself is not overwritten.

It shows what will be destroyed and what is left alone, then asks on the terminal
for the volume's name. Without a terminal it needs --force. A volume that some
process has open is refused.

` + searchHelp + `

` + exitCodesHelp,
		Example: `  pollux destroy fast --dry-run
  pollux destroy fast
  pollux destroy 0d1ee5a4-4b3f-4d0e-9a33-7a2b6f0f6c11 --force`,
		DisableFlagsInUseLine: true,
		RunE:                  f.run,
	}
	cmd.ValidArgsFunction = completeVolume(&f.search)
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.force, "force", false, "do not ask: THE VOLUME IS LOST")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be destroyed and write nothing")
	f.search.add(flags)
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f *destroyFlags) run(cmd *cobra.Command, args []string) (err error) {
	name, err := oneVolume(args)
	if err != nil {
		return err
	}
	where, err := f.search.where()
	if err != nil {
		return err
	}
	if f.dryRun {
		return f.look(cmd, name, where)
	}
	d, err := assembly.PrepareDestroy(cmd.Context(), name, where)
	if err != nil {
		return err
	}
	defer func() {
		if e := d.Close(); err == nil {
			err = e
		}
	}()
	out, said := cmd.OutOrStdout(), cmd.OutOrStdout()
	if f.json {
		said = cmd.ErrOrStderr()
	}
	if !f.json || !f.force {
		if err := writeDestruction(said, d.Set); err != nil {
			return err // whoever was to read it is not there
		}
	}
	err = f.confirm(cmd, d.Set)
	if err == nil {
		err = notInterrupted(cmd.Context())
	}
	if err == nil {
		err = d.Commit()
	}
	switch {
	case f.json:
		if e := writeJSON(out, destructionAsJSON(d.Set, false, err == nil, err)); err == nil {
			err = e
		}
	case err == nil:
		_, err = fmt.Fprintf(out, "destroyed volume %s, UUID %s\n", d.Set.Reference.Name, d.Set.UUID)
	}
	return err
}

// look is a dry run.
func (f *destroyFlags) look(cmd *cobra.Command, name string, where assembly.Where) error {
	set, problems, err := assembly.PlanDestroy(cmd.Context(), name, where)
	if err != nil {
		return err
	}
	err = errors.Join(problems...)
	out := cmd.OutOrStdout()
	if f.json {
		if e := writeJSON(out, destructionAsJSON(set, true, false, err)); err == nil {
			err = e
		}
		return err
	}
	if e := writeDestruction(out, set); err == nil {
		err = e
	}
	if err == nil {
		_, err = fmt.Fprintln(out, "dry run: nothing was written")
	}
	return err
}

// confirm asks, unless told not to.
func (f *destroyFlags) confirm(cmd *cobra.Command, set *superblock.Set) error {
	name := set.Reference.Name
	if f.force {
		return nil
	}
	if !isTerminal(cmd.InOrStdin()) {
		return refusal(fmt.Sprintf("volume %s: what is on it would be lost, and there is no terminal to ask on; say --force if that is meant", name))
	}
	fmt.Fprint(cmd.ErrOrStderr(), "type the volume's name to destroy it: ")
	answer, err := readLine(cmd.Context(), cmd.InOrStdin())
	if err != nil {
		return fmt.Errorf("volume %s: not destroyed: %w", name, err)
	}
	if answer != name {
		return refusal(fmt.Sprintf("volume %s: not destroyed: the answer was %q and not its name", name, answer))
	}
	return nil
}

// writeDestruction prints what will be destroyed and what will not.
func writeDestruction(w io.Writer, s *superblock.Set) error {
	var b strings.Builder
	ref := s.Reference
	fmt.Fprintf(&b, "volume %s (UUID %s): %s, %s, created %s\n", ref.Name, s.UUID, s.Standing,
		bytesText(volumeSize(ref)), ref.Created.Format(time.RFC3339))
	for slot, found := range s.Slots {
		for _, f := range found {
			fmt.Fprintf(&b, "  will be destroyed: %s (member %d)\n", printable(f.Path), slot)
		}
	}
	for slot, found := range s.Slots {
		if len(found) == 0 {
			fmt.Fprintf(&b, "  missing, left as it is: member %d (UUID %s)\n", slot, ref.Members[slot].UUID)
		}
	}
	for _, f := range s.Strays {
		if f.Label.Verdict == superblock.Overwritten {
			fmt.Fprintf(&b, "  only copy B will be erased: %s: %v\n", printable(f.Path), f.Label.Verdict)
		}
	}
	for _, l := range leftAlone(s) {
		fmt.Fprintf(&b, "  left alone: %s: %s\n", printable(l.Path), l.Reason)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// destructionJSON is what destroy prints as JSON.
type destructionJSON struct {
	SchemaVersion int    `json:"schema_version"`
	Name          string `json:"name"`
	UUID          string `json:"uuid"`
	// State is what it was: whole, incomplete or unfinished.
	State     string            `json:"state"`
	Size      int64             `json:"size"`
	Destroyed bool              `json:"destroyed"`
	DryRun    bool              `json:"dry_run"`
	Members   []slotJSON        `json:"members"`
	Missing   []tableMemberJSON `json:"missing"`
	LeftAlone []leftJSON        `json:"left_alone"`
	// CopiesB are devices of which something else has overwritten copy A.
	CopiesB []string `json:"copies_b"`
	// Error is what kept it from destroying, "" if nothing did.
	Error string `json:"error"`
}

type slotJSON struct {
	Slot int    `json:"slot"`
	Path string `json:"path"`
}

type leftJSON struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func destructionAsJSON(s *superblock.Set, dryRun, destroyed bool, err error) destructionJSON {
	out := destructionJSON{
		SchemaVersion: schemaVersion,
		Name:          s.Reference.Name,
		UUID:          s.UUID.String(),
		State:         s.Standing.String(),
		Size:          volumeSize(s.Reference),
		Destroyed:     destroyed,
		DryRun:        dryRun,
		Members:       []slotJSON{},
		Missing:       []tableMemberJSON{},
		LeftAlone:     leftAlone(s),
		CopiesB:       []string{},
	}
	for _, f := range s.Strays {
		if f.Label.Verdict == superblock.Overwritten {
			out.CopiesB = append(out.CopiesB, f.Path)
		}
	}
	if err != nil {
		out.Error = oneLine(err.Error())
	}
	for slot, found := range s.Slots {
		for _, f := range found {
			out.Members = append(out.Members, slotJSON{slot, f.Path})
		}
		if len(found) == 0 {
			out.Missing = append(out.Missing, tableAsJSON(s.Reference)[slot])
		}
	}
	return out
}

// leftAlone are the devices that name the volume and are not destroyed, with what
// is wrong with them.
func leftAlone(s *superblock.Set) []leftJSON {
	out := []leftJSON{}
	for _, f := range s.Strays {
		if f.Label.Verdict == superblock.Overwritten {
			continue // its copy B is erased
		}
		l := leftJSON{Path: f.Path, Reason: f.Label.Verdict.String()}
		if i := slices.IndexFunc(s.Problems, func(p superblock.Problem) bool { return p.Path == f.Path }); i >= 0 {
			l.Reason = s.Problems[i].Text
		}
		out = append(out, l)
	}
	return out
}
