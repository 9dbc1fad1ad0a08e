// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"

	"pollux/internal/assembly"
	"pollux/internal/bench"
	"pollux/internal/blockdev"
)

// writePlan prints what create is about to do.
func writePlan(w io.Writer, p assembly.Plan) error {
	var b strings.Builder
	fmt.Fprintf(&b, "volume %s: %s, chunk %s", p.Name, counted(len(p.Members), "member"), bench.FormatSize(p.Chunk))
	if p.Size > 0 {
		fmt.Fprintf(&b, ", %s (%d bytes)", bytesText(p.Size), p.Size)
	}
	b.WriteByte('\n')
	t := table(&b)
	fmt.Fprintln(t, "SLOT\tDEVICE\tIDENTITY\tSIZE\tBLOCK\tDATA\tWASTE\tPOLLED")
	for slot, m := range p.Members {
		polled := "yes"
		if m.NotPollable != nil {
			polled = "NO"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", slot, printable(m.Path), identity(m.Info),
			bytesText(m.Info.Size), m.Info.BlockSize, bytesText(m.Data), bytesText(m.Waste), polled)
	}
	_ = t.Flush() // to a strings.Builder, which takes everything
	for _, m := range p.Members {
		// Where it is a problem, the error tells it.
		if m.NotPollable != nil && !slices.Contains(p.Problems, m.NotPollable) {
			fmt.Fprintf(&b, "unpolled: %s\n", oneLine(m.NotPollable.Error()))
		}
	}
	for _, m := range p.Members {
		if m.Replaces {
			fmt.Fprintf(&b, "will be erased: %s: %s\n", printable(m.Path), remains(m))
		}
		for _, s := range m.Erases {
			fmt.Fprintf(&b, "will be erased: %s: %s\n", printable(m.Path), s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// remains says what superblock will be erased from a device.
func remains(m assembly.PlannedMember) string {
	text := m.Label.Verdict.String()
	if sb := m.Label.Named(); sb != nil {
		text = fmt.Sprintf("superblock of volume %s (UUID %s, member %d, %s): %s", sb.Name, sb.UUID, sb.Slot, sb.State, text)
	}
	return text
}

// identity is what tells a drive from others, whatever it is called.
func identity(in blockdev.Info) string {
	if in.WWID == "" {
		return in.ID().String()
	}
	if in.PartStart > 0 {
		return in.Drive()
	}
	return in.WWID
}

// planJSON is what create prints as JSON.
type planJSON struct {
	SchemaVersion int           `json:"schema_version"`
	Name          string        `json:"name"`
	UUID          string        `json:"uuid"` // "" unless created
	Created       bool          `json:"created"`
	DryRun        bool          `json:"dry_run"`
	Size          int64         `json:"size"`
	Chunk         int64         `json:"chunk"`
	BlockSize     int64         `json:"block_size"`
	Members       []plannedJSON `json:"members"`
	Problems      []string      `json:"problems"`
	// Error is what kept it from creating, "" if nothing did.
	Error string `json:"error"`
}

type plannedJSON struct {
	Slot      int             `json:"slot"`
	Path      string          `json:"path"`
	Identity  string          `json:"identity"`
	WWID      string          `json:"wwid"`
	Driver    string          `json:"driver"`
	Size      int64           `json:"size"`
	BlockSize int64           `json:"block_size"`
	Data      int64           `json:"data"`
	Waste     int64           `json:"waste"`
	Polled    bool            `json:"polled"`
	NotPolled string          `json:"not_polled"`
	Erases    []signatureJSON `json:"erases"`
	// Replaces is what superblock is erased, "" for none.
	Replaces string `json:"replaces"`
}

// signatureJSON is a trace of somebody else.
type signatureJSON struct {
	Type   string `json:"type"`
	Offset int64  `json:"offset"`
	Magic  string `json:"magic"` // hexadecimal
}

func signaturesAsJSON(signatures []blockdev.Signature) []signatureJSON {
	out := []signatureJSON{}
	for _, s := range signatures {
		out = append(out, signatureJSON{s.Type, s.Offset, fmt.Sprintf("%x", s.Magic)})
	}
	return out
}

func planAsJSON(p assembly.Plan, dryRun, created bool, err error) planJSON {
	out := planJSON{
		SchemaVersion: schemaVersion,
		Name:          p.Name,
		Created:       created,
		DryRun:        dryRun,
		Size:          p.Size,
		Chunk:         p.Chunk,
		BlockSize:     p.BlockSize,
		Members:       []plannedJSON{},
		Problems:      texts(p.Problems),
	}
	// A dry run and the create after it give different ones.
	if created && p.UUID != uuid.Nil {
		out.UUID = p.UUID.String()
	}
	if err != nil {
		out.Error = oneLine(err.Error())
	}
	for slot, m := range p.Members {
		j := plannedJSON{
			Slot:      slot,
			Path:      m.Path,
			Identity:  identity(m.Info),
			WWID:      m.Info.WWID,
			Driver:    string(m.Info.Driver),
			Size:      m.Info.Size,
			BlockSize: m.Info.BlockSize,
			Data:      m.Data,
			Waste:     m.Waste,
			Polled:    m.NotPollable == nil,
			Erases:    signaturesAsJSON(m.Erases),
		}
		if m.NotPollable != nil {
			j.NotPolled = oneLine(m.NotPollable.Error())
		}
		if m.Replaces {
			j.Replaces = remains(m)
		}
		out.Members = append(out.Members, j)
	}
	return out
}
