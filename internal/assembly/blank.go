// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"cmp"
	"fmt"
	"slices"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
)

// blankRounds is how often signatures are looked for again below those that were
// blanked out: that of a filesystem may hide another's.
const blankRounds = 8

// blanked returns the blocks of a device as they are without the signatures, and
// without those that appear when these are gone, and all of them.
func blanked(dev *blockdev.Device, signatures []blockdev.Signature) ([]superblock.Block, []blockdev.Signature, error) {
	o := overlay{dev: dev, block: dev.Info().BlockSize, blocks: map[int64][]byte{}}
	var all []blockdev.Signature
	for range blankRounds {
		if len(signatures) == 0 {
			return o.sorted(), all, nil
		}
		all = append(all, signatures...)
		for _, s := range signatures {
			if err := o.zero(s.Offset, int64(len(s.Magic))); err != nil {
				return nil, nil, err
			}
		}
		var err error
		if signatures, err = blockdev.Signatures(&o, dev.Size()); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", dev.Info().Path, err)
		}
	}
	return nil, nil, fmt.Errorf("%s: %w: %s is still found when its magic is blanked out; erase it with wipefs",
		dev.Info().Path, ErrForeign, listSignatures(signatures))
}

// overlay is a device with some blocks changed.
type overlay struct {
	dev    *blockdev.Device
	block  int64
	blocks map[int64][]byte
}

func (o *overlay) zero(offset, n int64) error {
	for at := offset &^ (o.block - 1); at < offset+n; at += o.block {
		b := o.blocks[at]
		if b == nil {
			b = make([]byte, o.block)
			if _, err := o.dev.ReadAt(b, at); err != nil {
				return err
			}
			o.blocks[at] = b
		}
		clear(b[max(0, offset-at):min(o.block, offset+n-at)])
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (o *overlay) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.dev.ReadAt(p, off)
	for at, b := range o.blocks {
		if at < off+int64(n) && off < at+o.block {
			copy(p[max(0, at-off):n], b[max(0, off-at):])
		}
	}
	return n, err
}

func (o *overlay) sorted() []superblock.Block {
	var blocks []superblock.Block
	for at, b := range o.blocks {
		blocks = append(blocks, superblock.Block{Offset: at, Data: b})
	}
	slices.SortFunc(blocks, func(a, b superblock.Block) int { return cmp.Compare(a.Offset, b.Offset) })
	return blocks
}
