// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"pollux/internal/assembly"
	"pollux/internal/blockdev"
	"pollux/internal/superblock"
)

// inspectionsJSON is what inspect prints as JSON.
type inspectionsJSON struct {
	SchemaVersion int              `json:"schema_version"`
	Devices       []inspectionJSON `json:"devices"`
}

// inspectionJSON is one device. Of one that cannot be read there are path and error
// alone.
type inspectionJSON struct {
	Path  string `json:"path"`
	Error string `json:"error"`
	*deviceJSON
}

type deviceJSON struct {
	Size       int64  `json:"size"`
	BlockSize  int64  `json:"block_size"`
	Driver     string `json:"driver"`
	Transport  string `json:"transport"`
	WWID       string `json:"wwid"`
	Identity   string `json:"identity"`
	PollQueues bool   `json:"poll_queues"`
	// PollCure says why it cannot be polled and what would help; "" if it can.
	PollCure      string          `json:"poll_cure"`
	Locked        bool            `json:"locked"`
	LockedToWrite bool            `json:"locked_to_write"`
	InUse         string          `json:"in_use"`
	Foreign       []signatureJSON `json:"foreign"`
	Verdict       string          `json:"verdict"`
	VerdictText   string          `json:"verdict_text"`
	Copies        []copyJSON      `json:"copies"`
	// Controller is that of this path to an NVMe drive, "" where the kernel joins
	// several. Paths are all.
	Controller string     `json:"controller"`
	Address    string     `json:"address"`
	Paths      []pathJSON `json:"paths"`
}

// copyJSON is a place where a superblock may be.
type copyJSON struct {
	Copy   string `json:"copy"`
	Offset int64  `json:"offset"` // -1: no room for one
	Valid  bool   `json:"valid"`
	// Counts says that it is the one that counts.
	Counts     bool            `json:"counts"`
	Error      string          `json:"error"`
	Superblock *superblockJSON `json:"superblock"`
}

type superblockJSON struct {
	State      string            `json:"state"`
	Sequence   uint64            `json:"sequence"`
	Name       string            `json:"name"`
	UUID       string            `json:"uuid"`
	Created    time.Time         `json:"created"`
	Layout     string            `json:"layout"`
	Chunk      int64             `json:"chunk"`
	VolumeSize int64             `json:"volume_size"`
	Slot       int               `json:"slot"`
	DataOffset int64             `json:"data_offset"`
	DataSize   int64             `json:"data_size"`
	BlockSize  int64             `json:"block_size"`
	Members    []tableMemberJSON `json:"members"`
}

// tableMemberJSON is a line of the table that every superblock has.
type tableMemberJSON struct {
	Slot int    `json:"slot"`
	UUID string `json:"uuid"`
	Size int64  `json:"size"`
}

func inspectionAsJSON(in assembly.Inspection) inspectionJSON {
	info, l := in.Info, in.Label
	d := &deviceJSON{
		Size:          info.Size,
		BlockSize:     info.BlockSize,
		Driver:        string(info.Driver),
		Transport:     info.Transport,
		WWID:          info.WWID,
		Identity:      identity(info),
		PollQueues:    info.PollQueues,
		PollCure:      blockdev.PollCure(info),
		Locked:        in.Locked,
		LockedToWrite: in.LockedToWrite,
		Foreign:       signaturesAsJSON(in.Foreign),
		Verdict:       verdictWord(l.Verdict),
		VerdictText:   l.Verdict.String(),
		Copies:        []copyJSON{copyAsJSON("A", l.A, l), copyAsJSON("B", l.B, l)},
		Controller:    info.Controller,
		Address:       info.Address,
		Paths:         pathsOf([]blockdev.Info{info}),
	}
	if in.InUse != nil {
		d.InUse = oneLine(in.InUse.Error())
	}
	return inspectionJSON{Path: in.Path, deviceJSON: d}
}

func copyAsJSON(name string, c superblock.Copy, l superblock.Label) copyJSON {
	j := copyJSON{Copy: name, Offset: c.Offset}
	if c.Err != nil {
		j.Error = oneLine(c.Err.Error())
	}
	sb := c.Superblock
	if sb == nil {
		return j
	}
	j.Valid, j.Counts = true, l.Current == sb
	j.Superblock = &superblockJSON{
		State:      sb.State.String(),
		Sequence:   sb.Sequence,
		Name:       sb.Name,
		UUID:       sb.UUID.String(),
		Created:    sb.Created,
		Layout:     layoutText(sb.Layout),
		Chunk:      sb.Chunk,
		VolumeSize: volumeSize(sb),
		Slot:       sb.Slot,
		DataOffset: sb.DataOffset,
		DataSize:   sb.DataSize,
		BlockSize:  sb.BlockSize,
		Members:    tableAsJSON(sb),
	}
	return j
}

func tableAsJSON(sb *superblock.Superblock) []tableMemberJSON {
	out := []tableMemberJSON{}
	for slot, m := range sb.Members {
		out = append(out, tableMemberJSON{slot, m.UUID.String(), m.Size})
	}
	return out
}
