// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"pollux/internal/assembly"
	"pollux/internal/blockdev"
	"pollux/internal/superblock"
)

// listJSON is what list prints as JSON.
type listJSON struct {
	SchemaVersion int          `json:"schema_version"`
	Volumes       []volumeJSON `json:"volumes"`
	// Looked is how many devices could be read.
	Looked int          `json:"devices_read"`
	Unread []unreadJSON `json:"unread"`
}

type unreadJSON struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// volumeJSON is one volume, whole or not.
type volumeJSON struct {
	Name string `json:"name"`
	UUID string `json:"uuid"`
	// State is whole, incomplete or unfinished.
	State   string    `json:"state"`
	Size    int64     `json:"size"`
	Chunk   int64     `json:"chunk"`
	Created time.Time `json:"created"`
	// MembersFound is of how many slots a device was found that may be taken.
	MembersTotal int `json:"members_total"`
	MembersFound int `json:"members_found"`
	// Open is no, reading or writing.
	Open     string       `json:"open"`
	Members  []memberJSON `json:"members"`
	Problems []string     `json:"problems"`
}

// memberJSON is a device of a volume, or one that is missing.
type memberJSON struct {
	// Slot is -1 where it is unknown.
	Slot int `json:"slot"`
	// Path is "" for one that is missing.
	Path string `json:"path"`
	UUID string `json:"uuid"`
	Size int64  `json:"size"`
	// State is good, missing, doubled, or wrong: not to be taken for a member.
	State string `json:"state"`
	// Verdict and VerdictText are about the superblocks of the device.
	Verdict     string `json:"verdict"`
	VerdictText string `json:"verdict_text"`
	// Paths are those to its drive, PathsFound over how many of them it was found.
	Paths      []pathJSON `json:"paths"`
	PathsFound int        `json:"paths_found"`

	note string // about the paths, for people
}

const (
	memberGood    = "good"
	memberMissing = "missing"
	memberDoubled = "doubled"
	memberWrong   = "wrong"
)

// describe is the member's column for people.
func (m memberJSON) describe() string {
	text := m.State
	if m.State == memberGood && m.Verdict != verdictWord(superblock.Good) {
		text += " (" + m.VerdictText + ")"
	}
	if m.note != "" {
		text += ", " + m.note
	}
	return text
}

func listAsJSON(volumes []volumeJSON, list *assembly.Listing) listJSON {
	out := listJSON{SchemaVersion: schemaVersion, Volumes: volumes, Looked: len(list.Looks), Unread: []unreadJSON{}}
	if volumes == nil {
		out.Volumes = []volumeJSON{}
	}
	for _, u := range list.Unread {
		out.Unread = append(out.Unread, unreadJSON{u.Path, oneLine(u.Err.Error())})
	}
	return out
}

// volumeOf describes a volume of a listing.
func volumeOf(s *superblock.Set, list *assembly.Listing) volumeJSON {
	ref := s.Reference
	v := volumeJSON{
		Name:         ref.Name,
		UUID:         s.UUID.String(),
		State:        s.Standing.String(),
		Size:         volumeSize(ref),
		Chunk:        ref.Chunk,
		Created:      ref.Created,
		MembersTotal: len(ref.Members),
		Open:         "no",
		Members:      []memberJSON{},
		Problems:     []string{},
	}
	for slot, found := range s.Slots {
		m := memberJSON{Slot: slot, UUID: ref.Members[slot].UUID.String(), Size: ref.Members[slot].Size, State: memberMissing, Paths: []pathJSON{}}
		if len(found) == 0 {
			v.Members = append(v.Members, m)
			continue
		}
		v.MembersFound++
		if superblock.OneDrive(found) {
			m.State = memberGood
			m.on(list, found...)
			v.Members = append(v.Members, m)
			continue
		}
		m.State = memberDoubled
		for _, f := range found {
			m.on(list, f)
			v.Members = append(v.Members, m)
		}
	}
	for _, f := range s.Strays {
		m := memberJSON{Slot: -1, State: memberWrong}
		if sb := f.Label.Current; sb != nil {
			m.Slot, m.UUID = sb.Slot, sb.Own().UUID.String()
		}
		m.on(list, f)
		v.Members = append(v.Members, m)
	}
	slices.SortStableFunc(v.Members, func(a, b memberJSON) int {
		return cmp.Compare(uint(a.Slot), uint(b.Slot)) // -1 last
	})
	for _, f := range s.Devices() {
		look, _ := list.Look(f.Path)
		switch {
		case look.LockedToWrite:
			v.Open = "writing"
		case look.Locked && v.Open == "no":
			v.Open = "reading"
		}
	}
	for _, p := range s.Problems {
		v.Problems = append(v.Problems, oneLine(p.String()))
	}
	return v
}

// on fills in what is known of a device, or of all paths to a drive.
func (m *memberJSON) on(list *assembly.Listing, paths ...superblock.Found) {
	first := paths[0]
	m.Path, m.Size = first.Path, first.Label.Size
	m.Verdict, m.VerdictText = verdictWord(first.Label.Verdict), first.Label.Verdict.String()
	var devices []blockdev.Info
	for _, f := range paths {
		look, _ := list.Look(f.Path)
		devices = append(devices, look.Info)
	}
	m.Paths, m.PathsFound = pathsOf(devices), len(devices)
	m.note = pathsNote(devices, m.Paths)
}

// volumeSize returns the bytes of the volume that a superblock describes.
func volumeSize(sb *superblock.Superblock) int64 {
	smallest := superblock.DataSize(sb.Members[0].Size, sb.Chunk)
	for _, m := range sb.Members[1:] {
		smallest = min(smallest, superblock.DataSize(m.Size, sb.Chunk))
	}
	return smallest * int64(len(sb.Members))
}

// verdictWord is a verdict for programs.
func verdictWord(v superblock.Verdict) string {
	switch v {
	case superblock.Blank:
		return "blank"
	case superblock.Good:
		return "good"
	case superblock.NoB:
		return "no_b"
	case superblock.TornA:
		return "torn_a"
	case superblock.NeverDone:
		return "never_done"
	case superblock.Overwritten:
		return "overwritten"
	case superblock.Mixed:
		return "mixed"
	case superblock.Shrunk:
		return "shrunk"
	case superblock.Newer:
		return "newer"
	case superblock.Damaged:
		return "damaged"
	}
	return "unknown"
}

// notInterrupted is for the last moment before something is written.
func notInterrupted(ctx context.Context) error {
	if ctx.Err() != nil {
		return errors.New("interrupted by a signal: nothing was written")
	}
	return nil
}
