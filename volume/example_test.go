// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"fmt"
	"time"

	"pollux/poller"
	"pollux/volume"
)

// readStart reads the first MiB of the volume that the drives at paths make up,
// in 16 requests that are out at once. It writes nothing.
func readStart(paths ...string) ([]byte, error) {
	var members []poller.Device
	for _, path := range paths {
		// The zero options open for reading and refuse what cannot be polled;
		// these take such a drive too and use interrupts for it.
		disk, err := poller.Open(path, poller.OpenOptions{Polling: poller.PollIfPossible})
		if err != nil {
			return nil, err
		}
		defer disk.Close() // for errors before there is a volume, which closes them itself
		members = append(members, disk)
	}
	vol, err := volume.New(members, volume.Geometry{Chunk: 64 << 10})
	if err != nil {
		return nil, err
	}
	defer vol.Close()

	// One goroutine, one queue. Its buffers come from its arena.
	const count, size = 16, 64 << 10
	queue, err := vol.NewQueue(poller.QueueConfig{Depth: count, MaxTransfer: size})
	if err != nil {
		return nil, err
	}
	defer queue.Close()
	mem := queue.Limits().Arena.Bytes()[:count*size]

	todo := make([]*poller.Request, count)
	for i := range todo {
		todo[i] = &poller.Request{Op: poller.Read, Flags: poller.HiPri, Offset: int64(i) * size, Buf: mem[i*size:][:size]}
	}
	done := make([]*poller.Request, count)
	for out := 0; len(todo) > 0 || out > 0; {
		n, err := queue.Submit(todo) // as many as there is room for
		if err != nil {
			return nil, err
		}
		todo, out = todo[n:], out+n
		n, err = queue.Wait(1, done, time.Second) // starts them, brings what has finished
		if err != nil {
			return nil, err
		}
		for _, r := range done[:n] {
			if r.Err != nil {
				return nil, r.Err
			}
		}
		out -= n
	}
	return bytes.Clone(mem), nil // the arena ends with the queue
}

// Reading the start of two drives. (TestExample runs readStart on two files.)
func Example() {
	data, err := readStart("/dev/nvme0n1", "/dev/nvme1n1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(data), "bytes")
}
