// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"

	"pollux/internal/bench"
	"pollux/poller"
)

// fill writes what the jobs will read, each part once.
func (b *benchRun) fill(ctx context.Context, jobs []bench.Job) error {
	const fillBS = 128 << 10
	type part struct{ offset, size int64 }
	done := make(map[part]bool)
	for _, job := range jobs {
		p := part{job.Offset, job.Size}
		if done[p] {
			continue
		}
		done[p] = true
		l := b.vol.Limits()
		write := bench.Job{Name: "fill", RW: bench.Write, BS: min(fillBS, l.MaxTransfer), IODepth: 8, Offset: job.Offset, Size: job.Size, HiPri: job.HiPri, Seed: job.Seed}
		if rest := l.Size - job.Offset; write.BS > rest || job.Size > 0 && write.BS > job.Size {
			write.BS = l.BlockSize
		}
		stop := b.progress([]bench.Job{write})
		_, err := bench.Fill(ctx, b.vol, write)
		stop()
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// neverWritten says that nothing but zeros was found in blocks all over what the jobs
// will read. Whatever goes wrong with these reads, the bench will meet it and tell it.
func neverWritten(dev poller.Device, jobs []bench.Job) bool {
	const looks = 64
	l := dev.Limits()
	queue, err := dev.NewQueue(poller.QueueConfig{Depth: 1, MaxTransfer: l.BlockSize})
	if err != nil {
		return false
	}
	defer queue.Close()
	buf := queue.Limits().Arena.Bytes()[:l.BlockSize:l.BlockSize]
	zeros := make([]byte, l.BlockSize)
	done := make([]*poller.Request, 1)
	for _, job := range jobs {
		size := job.Size
		if size == 0 {
			size = l.Size - job.Offset
		}
		if job.Offset < 0 || size < l.BlockSize || size > l.Size-job.Offset {
			return false
		}
		blocks := size / l.BlockSize
		for i := range min(looks, blocks) {
			r := &poller.Request{Op: poller.Read, Offset: job.Offset + blocks*i/min(looks, blocks)*l.BlockSize, Buf: buf}
			if n, err := queue.Submit([]*poller.Request{r}); n != 1 || err != nil {
				return false
			}
			if n, err := queue.Wait(1, done, -1); n != 1 || err != nil || r.Err != nil || !bytes.Equal(buf, zeros) {
				return false
			}
		}
	}
	return true
}
