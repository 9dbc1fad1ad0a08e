// SPDX-License-Identifier: Apache-2.0

// Keep stores a file in a volume and gets it back:
//
//	keep put NAME <file      overwrites the start of volume NAME
//	keep get NAME >file
//
// It shows how a program uses a volume through its handle: io.Copy, io.SectionReader
// and io.OffsetWriter know nothing of drives. The first block holds the length.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"pollux/poller"
	"pollux/volume"
)

// dataAt is where the file begins: behind one block of any drive.
const dataAt = 4096

// put copies a stream into the volume. What it returns is durable when there is no
// error.
func put(name string, from io.Reader) (n int64, err error) {
	h, err := volume.Open(volume.Options{Volume: name, Devices: devices(), Polling: poller.PollIfPossible})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	n, err = io.CopyBuffer(io.NewOffsetWriter(h, dataAt), from, make([]byte, 1<<20))
	if err != nil {
		return n, err
	}
	// The data first, so that no cut leaves a length without it.
	if err := h.Flush(); err != nil {
		return n, err
	}
	if _, err := h.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(n)), 0); err != nil {
		return n, err
	}
	return n, h.Flush()
}

// get copies what put has stored into a stream.
func get(name string, to io.Writer) (n int64, err error) {
	h, err := volume.Open(volume.Options{Volume: name, Devices: devices(), ReadOnly: true, Polling: poller.PollIfPossible})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	var head [8]byte
	if _, err := h.ReadAt(head[:], 0); err != nil {
		return 0, err
	}
	length := binary.LittleEndian.Uint64(head[:])
	if length > uint64(h.Size()-dataAt) {
		return 0, fmt.Errorf("volume %s: nothing was put there", name)
	}
	return io.CopyBuffer(to, io.NewSectionReader(h, dataAt, int64(length)), make([]byte, 1<<20))
}

// devices is where to look for members: everywhere, or where pollux itself would.
func devices() []string {
	return filepath.SplitList(os.Getenv("POLLUX_DEVICES"))
}

func main() {
	if len(os.Args) != 3 || os.Args[1] != "put" && os.Args[1] != "get" {
		fmt.Fprintln(os.Stderr, "usage: keep put NAME <file | keep get NAME >file")
		os.Exit(2)
	}
	verb, name := os.Args[1], os.Args[2]
	var n int64
	var err error
	if verb == "put" {
		n, err = put(name, os.Stdin)
	} else {
		n, err = get(name, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "keep:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "keep: %s %d bytes\n", verb, n)
}
