// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pollux/internal/assembly"
	"pollux/internal/bench"
	"pollux/internal/blockdev"
	"pollux/internal/superblock"
)

func newInspect() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "inspect DEVICE...",
		Short: "Show all that there is to know of devices, superblocks included",
		Long: `inspect looks at each device or file, read-only and without a lock, and shows both
copies of pollux's superblock with every field, what is concluded from them, foreign
signatures (on a member, those outside of its data), who uses the device, and
whether it can be polled.

Exit codes:
  0  a superblock was found on all of them
  1  one has none, or cannot be read
  2  wrong usage`,
		Example: `  pollux inspect /dev/nvme0n1
  pollux inspect --json /dev/nvme?n1`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspect(cmd, args, asJSON)
		},
		ValidArgsFunction: completePaths,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// notFound is why inspect exits with 1, also where a path does not exist.
type notFound []string

func (e notFound) Error() string { return strings.Join(e, "; ") }

func inspect(cmd *cobra.Command, paths []string, asJSON bool) error {
	if len(paths) == 0 {
		return usageError("name the devices to inspect: inspect DEVICE...")
	}
	out := inspectionsJSON{SchemaVersion: schemaVersion}
	var without notFound
	var text strings.Builder
	for i, path := range paths {
		in, err := assembly.Inspect(path)
		if errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		switch {
		case err != nil:
			without = append(without, oneLine(err.Error()))
			out.Devices = append(out.Devices, inspectionJSON{Path: path, Error: oneLine(err.Error())})
			continue
		case in.Label.Named() == nil:
			without = append(without, printable(path)+": "+in.Label.Verdict.String())
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		writeInspection(&text, in)
		out.Devices = append(out.Devices, inspectionAsJSON(in))
	}
	var err error
	if asJSON {
		err = writeJSON(cmd.OutOrStdout(), out)
	} else {
		_, err = io.WriteString(cmd.OutOrStdout(), text.String())
	}
	if err == nil && len(without) > 0 {
		err = without
	}
	return err
}

func writeInspection(w io.Writer, in assembly.Inspection) {
	info := in.Info
	fmt.Fprintf(w, "%s: %s\n", printable(in.Path), sentence(in.Label))
	t := table(w)
	line := func(key, format string, args ...any) {
		fmt.Fprintf(t, "  %s:\t%s\n", key, oneLine(fmt.Sprintf(format, args...)))
	}
	line("size", "%d bytes (%s)", info.Size, bytesText(info.Size))
	line("logical block", "%d bytes", info.BlockSize)
	line("driver", "%s", driverText(info))
	line("identity", "%s", identity(info))
	line("polling", "%s", pollingText(info))
	one := []blockdev.Info{info}
	if paths := pathsOf(one); pathsNote(one, paths) != "" {
		line("paths", "%s", pathsNote(one, paths))
		for _, p := range paths {
			device, way := p.cells()
			line("  "+device, "%s", way)
		}
	}
	line("used by", "%s", usedBy(in))
	if len(in.Foreign) == 0 {
		line("foreign", "nothing found")
	}
	for _, s := range in.Foreign {
		line("foreign", "%s (%x)", s, s.Magic)
	}
	writeCopy(line, "copy A", in.Label.A)
	writeCopy(line, "copy B", in.Label.B)
	_ = t.Flush() // to a strings.Builder, which takes everything
}

func writeCopy(line func(key, format string, args ...any), name string, c superblock.Copy) {
	switch {
	case c.Offset < 0:
		line(name, "no room for one")
	case c.Superblock == nil:
		line(name, "at %d: %v", c.Offset, c.Err)
	}
	sb := c.Superblock
	if sb == nil {
		return
	}
	line(name, "at %d: valid", c.Offset)
	line("  state", "%s", sb.State)
	line("  sequence", "%d", sb.Sequence)
	line("  volume", "%s", sb.Name)
	line("  UUID", "%s", sb.UUID)
	line("  created", "%s", sb.Created.Format(time.RFC3339Nano))
	line("  layout", "%s", layoutText(sb.Layout))
	line("  chunk", "%s", bench.FormatSize(sb.Chunk))
	line("  volume size", "%d bytes (%s)", volumeSize(sb), bytesText(volumeSize(sb)))
	line("  slot", "%d of %d", sb.Slot, len(sb.Members))
	line("  data", "%d bytes at %d", sb.DataSize, sb.DataOffset)
	line("  logical block", "%d bytes", sb.BlockSize)
	for slot, m := range sb.Members {
		own := ""
		if slot == sb.Slot {
			own = ", this one"
		}
		line(fmt.Sprintf("  member %d", slot), "%s, %d bytes%s", m.UUID, m.Size, own)
	}
}

// sentence is the verdict on a device, with whose it is.
func sentence(l superblock.Label) string {
	sb := l.Named()
	if sb == nil {
		return l.Verdict.String()
	}
	return fmt.Sprintf("member %d of volume %s (UUID %s, %s): %s", sb.Slot, sb.Name, sb.UUID, sb.State, l.Verdict)
}

func layoutText(layout uint32) string {
	if layout == superblock.LayoutStriped {
		return "striped"
	}
	return fmt.Sprint(layout)
}

func driverText(in blockdev.Info) string {
	text := string(in.Driver)
	if text == "" {
		text = "unknown"
	}
	if in.Transport != "" {
		text += " over " + in.Transport
	}
	return text
}

func pollingText(in blockdev.Info) string {
	if cure := blockdev.PollCure(in); cure != "" {
		return "not possible: " + cure
	}
	return "offered"
}

// usedBy says who has the device.
func usedBy(in assembly.Inspection) string {
	var who []string
	switch {
	case in.LockedToWrite:
		who = append(who, "a pollux that writes")
	case in.Locked:
		who = append(who, "a pollux that reads")
	}
	if in.InUse != nil {
		who = append(who, strings.TrimPrefix(in.InUse.Error(), in.Path+": "))
	}
	if len(who) == 0 {
		return "nobody, as far as can be seen"
	}
	return strings.Join(who, "; ")
}
