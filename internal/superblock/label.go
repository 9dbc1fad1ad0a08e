// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Device is what superblocks are kept on. Its writes are of whole 4096 bytes at
// multiples of that, and are durable, in no order among themselves, once Sync has
// returned.
type Device interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	// Size returns the capacity in bytes.
	Size() int64
}

// which names a copy.
type which int

const (
	inA which = iota
	inB
)

// Copy is one of the two places of a device where a superblock may be.
type Copy struct {
	// Offset is where it lies; -1 where the device has no such place.
	Offset int64
	// Superblock is nil unless it is valid.
	Superblock *Superblock
	// Err says why there is none: it answers to ErrNone, ErrDamaged,
	// ErrUnsupported or ErrInvalid, or is that of reading.
	Err error
}

// ours says that pollux has written there: nothing else makes its magic.
func (c Copy) ours() bool {
	return c.Superblock != nil || isAny(c.Err, ErrDamaged, ErrUnsupported, ErrInvalid)
}

// agrees says that two copies can be the same bytes. One that could not be read speaks
// against nothing: of two paths to a drive one may read badly.
func (c Copy) agrees(o Copy) bool {
	found := []error{ErrNone, ErrDamaged, ErrUnsupported, ErrInvalid}
	switch {
	case c.Superblock != nil && o.Superblock != nil:
		return bytes.Equal(c.Superblock.Encode(), o.Superblock.Encode())
	case c.Superblock == nil && !isAny(c.Err, found...), o.Superblock == nil && !isAny(o.Err, found...):
		return true
	}
	for _, err := range found {
		if errors.Is(c.Err, err) != errors.Is(o.Err, err) {
			return false
		}
	}
	return true
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// Label is what both copies of one device say together.
type Label struct {
	// Size is that of the device now, in bytes.
	Size int64
	A, B Copy
	// Verdict is the conclusion.
	Verdict Verdict
	// Current is the superblock that counts; nil when the verdict gives none.
	Current *Superblock
}

// agrees says that two labels, of which each has a superblock that counts, can be of the
// same bytes.
func (l Label) agrees(o Label) bool {
	return l.Size == o.Size && l.A.agrees(o.A) && l.B.agrees(o.B) && bytes.Equal(l.Current.Encode(), o.Current.Encode())
}

// Verdict says what to make of the two copies.
type Verdict int

const (
	// Blank: no trace of pollux.
	Blank Verdict = iota
	// Good: both copies are valid. They may differ in state: the copy of the
	// higher sequence counts, and of two equal ones copy A.
	Good
	// NoB: copy A is valid, copy B is not. Opening for writing writes it again.
	NoB
	// TornA: copy A is a write of ours that was cut, copy B stands in for it.
	// Opening for writing writes copy A again.
	TornA
	// NeverDone: copy A is a write of ours that was cut, and there is no copy B:
	// the first write of a creation. Nothing is lost by creating over it.
	NeverDone
	// Overwritten: copy B is valid and where copy A should be stands something of
	// somebody else. Copy B is never used alone.
	Overwritten
	// Mixed: the copies are of two volumes, or of two members.
	Mixed
	// Shrunk: the device is smaller than when the volume was created.
	Shrunk
	// Newer: at least one copy is of a newer version of pollux.
	Newer
	// Damaged: at least one copy is ours and none is valid.
	Damaged
)

// String returns a sentence for people, without the device's name.
func (v Verdict) String() string {
	switch v {
	case Blank:
		return "no superblock"
	case Good:
		return "both copies are valid"
	case NoB:
		return "copy A is valid, copy B is not; opening for writing repairs it"
	case TornA:
		return "copy A is torn and copy B stands in for it; opening for writing repairs it"
	case NeverDone:
		return "a creation was cut at its first write; nothing is there"
	case Overwritten:
		return "copy A was overwritten by something else; only copy B is left, which is not used alone"
	case Mixed:
		return "the two copies are of different volumes or members"
	case Shrunk:
		return "the device is smaller than when the volume was created"
	case Newer:
		return "made by a newer pollux"
	case Damaged:
		return "superblock of pollux, and no copy of it is valid"
	}
	return fmt.Sprintf("verdict(%d)", int(v))
}

// Read reads both copies of a device. The error is that of reading copy A, without
// which nothing can be said; one of reading copy B is in the Label.
func Read(d Device) (Label, error) {
	l := Label{Size: d.Size()}
	l.A = readCopy(d, copyA)
	if l.A.Superblock == nil && !isAny(l.A.Err, ErrNone, ErrDamaged, ErrUnsupported, ErrInvalid) {
		return l, l.A.Err
	}
	size := l.Size
	if l.A.Superblock != nil {
		size = l.A.Superblock.Own().Size
	}
	if size < MinSize {
		l.B = Copy{Offset: -1, Err: ErrNone}
	} else {
		l.B = readCopy(d, OffsetB(size))
	}
	l.conclude()
	return l, nil
}

func readCopy(d Device, offset int64) Copy {
	if d.Size()-offset < BlockSize {
		return Copy{Offset: -1, Err: ErrNone}
	}
	c := Copy{Offset: offset}
	b := make([]byte, BlockSize)
	if _, err := d.ReadAt(b, offset); err != nil {
		c.Err = err
		return c
	}
	c.Superblock, c.Err = Decode(b)
	return c
}

// conclude fills in Verdict and Current.
func (l *Label) conclude() {
	a, b := l.A.Superblock, l.B.Superblock
	switch {
	case errors.Is(l.A.Err, ErrUnsupported), errors.Is(l.B.Err, ErrUnsupported):
		l.Verdict = Newer
	case a == nil && b == nil:
		switch {
		case !l.A.ours() && !l.B.ours():
			l.Verdict = Blank
		case errors.Is(l.A.Err, ErrDamaged) && errors.Is(l.B.Err, ErrNone):
			l.Verdict = NeverDone
		default:
			l.Verdict = Damaged
		}
	case a == nil && b.Own().Size > l.Size:
		l.Verdict = Shrunk // found by chance: the end was cut by less than a MiB
	case a == nil && errors.Is(l.A.Err, ErrDamaged):
		l.Verdict, l.Current = TornA, b
	case a == nil && errors.Is(l.A.Err, ErrNone):
		l.Verdict = Overwritten
	case a == nil:
		l.Verdict = Damaged // a valid checksum over nonsense is no torn write
	case a.Own().Size > l.Size:
		l.Verdict, l.Current = Shrunk, a
	case b == nil:
		l.Verdict, l.Current = NoB, a
	case a.Slot != b.Slot || !a.sameVolume(b):
		l.Verdict = Mixed
	default:
		l.Verdict, l.Current = Good, a
		if b.Sequence > a.Sequence {
			l.Current = b
		}
	}
}

// Named returns a superblock to say to whom the device belongs or belonged, nil
// when there is none: the one that counts, or one that does not.
func (l Label) Named() *Superblock {
	switch {
	case l.Current != nil:
		return l.Current
	case l.A.Superblock != nil:
		return l.A.Superblock
	}
	return l.B.Superblock
}

// Uncommitted says that the device's superblock shows by itself that it never was
// part of a volume, so that nothing is lost by creating over it.
func (l Label) Uncommitted() bool {
	switch l.Verdict {
	case Blank, NeverDone:
		return true
	case NoB:
		return l.Current.State == Forming
	}
	return false
}
