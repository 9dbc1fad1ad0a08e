// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// pieceSize is the unit in which a device is read. Signatures crowd at its
// start and its end, so a dozen pieces have all of them.
const pieceSize = 256 << 10

// image is a device as Signatures sees it: read on demand, each piece once,
// with what was found already hidden behind zeros.
type image struct {
	r      io.ReaderAt
	size   int64
	err    error            // the first failure; every later read is refused
	pieces map[int64][]byte // as read, by number
	masked map[int64][]byte // copies of pieces in which something is hidden
}

func newImage(r io.ReaderAt, size int64) *image {
	return &image{r: r, size: size, pieces: map[int64][]byte{}, masked: map[int64][]byte{}}
}

// piece returns piece number i as read, or nil after an error.
func (d *image) piece(i int64) []byte {
	if p, ok := d.pieces[i]; ok {
		return p
	}
	if d.err != nil {
		return nil
	}
	off := i * pieceSize
	p := make([]byte, min(pieceSize, d.size-off))
	n, err := d.r.ReadAt(p, off)
	// A reader may return io.EOF along with the last byte.
	if n < len(p) {
		switch {
		case err == nil || errors.Is(err, io.EOF):
			err = fmt.Errorf("the device ends there, before its size of %d", d.size)
			fallthrough
		default:
			d.err = fmt.Errorf("looking for signatures: reading %d bytes at %d, got %d: %w", len(p), off, n, err)
		}
		return nil
	}
	d.pieces[i] = p
	return p
}

// inside tells whether n bytes at off lie within the device.
func (d *image) inside(off int64, n int) bool {
	return off >= 0 && n >= 0 && off <= d.size-int64(n)
}

// bytes returns n bytes at off with what is hidden blanked, or nil if they do
// not lie within the device or cannot be read. They are not to be changed.
func (d *image) bytes(off int64, n int) []byte { return d.get(off, n, d.masked) }

// original is bytes with nothing hidden. The caller may keep and change it.
func (d *image) original(off int64, n int) []byte { return bytes.Clone(d.get(off, n, nil)) }

func (d *image) get(off int64, n int, masked map[int64][]byte) []byte {
	if !d.inside(off, n) {
		return nil
	}
	var joined []byte
	for i := off / pieceSize; ; i++ {
		p, ok := masked[i]
		if !ok {
			if p = d.piece(i); p == nil {
				return nil
			}
		}
		p = p[off+int64(len(joined))-i*pieceSize:]
		if joined == nil && len(p) >= n {
			return p[:n:n] // the usual case, within a piece
		}
		joined = append(joined, p[:min(len(p), n-len(joined))]...)
		if len(joined) == n {
			return joined
		}
	}
}

// has tells whether magic stands at off.
func (d *image) has(off int64, magic string) bool {
	return string(d.bytes(off, len(magic))) == magic
}

// hide blanks n bytes at off for every later look. It reports whether that
// changed anything.
func (d *image) hide(off int64, n int) bool {
	changed := false
	for at := off; at < off+int64(n); at++ {
		i := at / pieceSize
		p, ok := d.masked[i]
		if !ok {
			p = bytes.Clone(d.piece(i))
			if p == nil {
				return false
			}
			d.masked[i] = p
		}
		changed = changed || p[at-i*pieceSize] != 0
		p[at-i*pieceSize] = 0
	}
	return changed
}
