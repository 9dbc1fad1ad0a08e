// SPDX-License-Identifier: Apache-2.0

package stripe

import (
	"slices"
	"testing"
)

// naiveAt maps one byte as the definition says, with nothing in common with At:
// chunk number by division, member by remainder.
func naiveAt(chunk, members, off int64) (member int, memberOff int64) {
	number := off / chunk
	return int(number % members), number/members*chunk + off%chunk
}

// naiveExtents maps a range piece by piece and joins what is contiguous. A piece
// ends at every multiple of grain, which must divide the chunk; with a grain of 1
// that is byte by byte.
func naiveExtents(chunk, members, off, n, grain int64) []Extent {
	var extents []Extent
	for pos := int64(0); pos < n; {
		length := min(grain-(off+pos)%grain, n-pos)
		member, memberOff := naiveAt(chunk, members, off+pos)
		atBoundary := (off+pos)%chunk == 0 && members > 1
		if last := len(extents) - 1; pos > 0 && !atBoundary {
			extents[last].Len += length
		} else {
			extents = append(extents, Extent{Member: member, Offset: memberOff, Pos: pos, Len: length})
		}
		pos += length
	}
	return extents
}

// checkRange compares everything that g says of a range with the oracle, and
// checks what must hold of any extents.
func checkRange(t *testing.T, g *Geometry, off, n, grain int64) {
	t.Helper()
	chunk, members := g.Chunk(), int64(g.Members())
	if !g.Contains(off, n) {
		t.Fatalf("range %d+%d is not within %d bytes", off, n, g.Size())
	}
	got := g.Extents(off, n, nil)
	want := naiveExtents(chunk, members, off, n, grain)
	if !slices.Equal(got, want) {
		t.Fatalf("chunk %d, %d members, range %d+%d:\n got %v\nwant %v", chunk, members, off, n, got, want)
	}
	if count := g.Count(off, n); count != len(got) {
		t.Fatalf("chunk %d, %d members, range %d+%d: Count is %d, extents are %d", chunk, members, off, n, count, len(got))
	}

	perMember := make([]int, members)
	pos := int64(0)
	for _, e := range got {
		if e.Pos != pos || e.Len <= 0 {
			t.Fatalf("chunk %d, %d members, range %d+%d: gap or overlap at %v", chunk, members, off, n, e)
		}
		pos += e.Len
		if e.Len > g.MaxExtent(n) {
			t.Fatalf("chunk %d, %d members, range %d+%d: %v is longer than MaxExtent %d", chunk, members, off, n, e, g.MaxExtent(n))
		}
		if e.Offset < 0 || e.Offset+e.Len > g.Size()/members {
			t.Fatalf("chunk %d, %d members, range %d+%d: %v is outside the member", chunk, members, off, n, e)
		}
		for _, within := range []int64{0, e.Len - 1} {
			if back := reverse(chunk, members, e.Member, e.Offset+within); back != off+e.Pos+within {
				t.Fatalf("chunk %d, %d members: byte %d of %v maps back to %d", chunk, members, within, e, back)
			}
		}
		perMember[e.Member]++
	}
	if pos != n {
		t.Fatalf("chunk %d, %d members, range %d+%d: extents cover %d bytes", chunk, members, off, n, pos)
	}
	if most := slices.Max(perMember); most > g.MaxPerMember(n) {
		t.Fatalf("chunk %d, %d members, range %d+%d: %d extents on one member, MaxPerMember %d", chunk, members, off, n, most, g.MaxPerMember(n))
	}
}

// reverse gives the volume's offset of a member's byte.
func reverse(chunk, members int64, member int, memberOff int64) int64 {
	row := memberOff / chunk
	return (row*members+int64(member))*chunk + memberOff%chunk
}
