// SPDX-License-Identifier: Apache-2.0

package stripe

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func mustNew(t testing.TB, chunk int64, members int, memberSize int64) *Geometry {
	t.Helper()
	g, err := New(chunk, 512, members, memberSize)
	if err != nil {
		t.Fatal(err)
	}
	return &g
}

// TestExtentsGolden has ranges worked out by hand.
func TestExtentsGolden(t *testing.T) {
	const KiB = 1 << 10
	tests := []struct {
		name    string
		chunk   int64
		members int
		off, n  int64
		want    []Extent
	}{
		{"empty range", 64 * KiB, 2, 100, 0, nil},
		{"empty range at the end", 64 * KiB, 2, 2 << 20, 0, nil},
		{"within the first chunk", 64 * KiB, 2, 4 * KiB, 4 * KiB, []Extent{{0, 4 * KiB, 0, 4 * KiB}}},
		{"one whole chunk", 64 * KiB, 2, 64 * KiB, 64 * KiB, []Extent{{1, 0, 0, 64 * KiB}}},
		{"first chunk of the second row", 64 * KiB, 2, 128 * KiB, 512, []Extent{{0, 64 * KiB, 0, 512}}},
		{"one byte on each side of a boundary", 64 * KiB, 2, 64*KiB - 1, 2, []Extent{
			{0, 64*KiB - 1, 0, 1}, {1, 0, 1, 1}}},
		{"three chunks and a block from mid-chunk", 64 * KiB, 2, 32 * KiB, 192*KiB + 512, []Extent{
			{0, 32 * KiB, 0, 32 * KiB},
			{1, 0, 32 * KiB, 64 * KiB},
			{0, 64 * KiB, 96 * KiB, 64 * KiB},
			{1, 64 * KiB, 160 * KiB, 32*KiB + 512}}},
		{"odd block at both ends, three members", 4 * KiB, 3, 3584, 9216, []Extent{
			{0, 3584, 0, 512},
			{1, 0, 512, 4096},
			{2, 0, 4608, 4096},
			{0, 4096, 8704, 512}}},
		{"the last byte", 64 * KiB, 2, 2<<20 - 1, 1, []Extent{{1, 1<<20 - 1, 0, 1}}},
		{"one member is one extent", 64 * KiB, 1, 1000, 1 << 19, []Extent{{0, 1000, 0, 1 << 19}}},
		{"one member, all of it", 64 * KiB, 1, 0, 1 << 20, []Extent{{0, 0, 0, 1 << 20}}},
		{"one row of four", 4 * KiB, 4, 16 * KiB, 16 * KiB, []Extent{
			{0, 4 * KiB, 0, 4 * KiB},
			{1, 4 * KiB, 4 * KiB, 4 * KiB},
			{2, 4 * KiB, 8 * KiB, 4 * KiB},
			{3, 4 * KiB, 12 * KiB, 4 * KiB}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := mustNew(t, tt.chunk, tt.members, 1<<20)
			if got := g.Extents(tt.off, tt.n, nil); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if got := g.Count(tt.off, tt.n); got != len(tt.want) {
				t.Errorf("Count is %d, want %d", got, len(tt.want))
			}
		})
	}
}

// TestExtentsGrid walks the boundaries of real geometries.
func TestExtentsGrid(t *testing.T) {
	for _, chunk := range []int64{MinChunk, DefaultChunk, 1 << 20, MaxChunk} {
		grain := chunk / 4
		for _, members := range []int64{1, 2, 3, 4, 5, 7, 8, 128} {
			chunks := []int64{0, 1, 2, 3, members, members + 1, 2*members + 1}
			rows := int64(4)
			g := mustNew(t, chunk, int(members), rows*chunk+chunk/2)
			for _, row := range []int64{0, 1, rows - 1} {
				for _, member := range []int64{0, members / 2, members - 1} {
					for _, within := range []int64{0, 1, chunk / 2, chunk - 512, chunk - 1} {
						off := (row*members+member)*chunk + within
						for _, whole := range chunks {
							for _, extra := range []int64{-1, 0, 1, 512, chunk - 1} {
								n := whole*chunk + extra
								if n >= 0 && off+n <= g.Size() {
									checkRange(t, g, off, n, grain)
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestExtentsExhaustive compares every range of small volumes byte by byte, and
// shows that the bounds a queue reserves by are reached and never passed. Chunks
// this small are not valid, but the arithmetic does not know.
func TestExtentsExhaustive(t *testing.T) {
	for _, chunk := range []int64{1, 2, 4, 8} {
		for _, members := range []int64{1, 2, 3, 4, 5, 7} {
			for rows := int64(1); rows <= 3; rows++ {
				g := build(chunk, members, rows*chunk)
				for n := int64(0); n <= g.Size(); n++ {
					mostOnMember, longest := 0, int64(0)
					for off := int64(0); off+n <= g.Size(); off++ {
						checkRange(t, &g, off, n, 1)
						perMember := make([]int, members)
						for _, e := range naiveExtents(chunk, members, off, n, 1) {
							perMember[e.Member]++
							longest = max(longest, e.Len)
						}
						mostOnMember = max(mostOnMember, slices.Max(perMember))
					}
					if got := g.MaxPerMember(n); got != mostOnMember {
						t.Fatalf("chunk %d, %d members, %d rows: MaxPerMember(%d) is %d, reached are %d", chunk, members, rows, n, got, mostOnMember)
					}
					if got := g.MaxExtent(n); got != longest {
						t.Fatalf("chunk %d, %d members, %d rows: MaxExtent(%d) is %d, reached are %d", chunk, members, rows, n, got, longest)
					}
				}
			}
		}
	}
}

// TestAtBijection maps every byte of small volumes and finds every byte of every
// member exactly once.
func TestAtBijection(t *testing.T) {
	for members := int64(1); members <= MaxMembers; members++ {
		const chunk, rows = 2, 3
		g := build(chunk, members, rows*chunk)
		seen := make(map[[2]int64]bool)
		for off := range g.Size() {
			member, memberOff, left := g.At(off)
			if member < 0 || int64(member) >= members || memberOff < 0 || memberOff >= rows*chunk {
				t.Fatalf("%d members: byte %d is at %d of member %d", members, off, memberOff, member)
			}
			wantLeft := chunk - off%chunk
			if members == 1 {
				wantLeft = g.Size() - off
			}
			if left != wantLeft {
				t.Fatalf("%d members: %d bytes left at %d, want %d", members, left, off, wantLeft)
			}
			seen[[2]int64{int64(member), memberOff}] = true
		}
		if int64(len(seen)) != g.Size() {
			t.Fatalf("%d members: %d bytes map to %d places", members, g.Size(), len(seen))
		}
	}
}

// TestAtLargest maps offsets up to the largest an int64 holds, where the
// reciprocal has the least to spare: around whole rows for each number of members.
func TestAtLargest(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for members := int64(1); members <= MaxMembers; members++ {
		for _, chunk := range []int64{MinChunk, DefaultChunk, MaxChunk} {
			g := mustNew(t, chunk, int(members), math.MaxInt64/members)
			check := func(off int64) {
				t.Helper()
				if off < 0 || off >= g.Size() {
					return
				}
				member, memberOff, left := g.At(off)
				wantMember, wantOff := naiveAt(chunk, members, off)
				wantLeft := chunk - off%chunk
				if members == 1 {
					wantLeft = g.Size() - off
				}
				if member != wantMember || memberOff != wantOff || left != wantLeft {
					t.Fatalf("chunk %d, %d members, offset %d: got %d, %d, %d, want %d, %d, %d",
						chunk, members, off, member, memberOff, left, wantMember, wantOff, wantLeft)
				}
			}
			for range 200 {
				off := random.Int64N(g.Size()) >> random.IntN(62)
				row := off / (chunk * members) * (chunk * members)
				for _, around := range []int64{off, row, g.Size()} {
					for delta := int64(-2); delta <= 2; delta++ {
						check(around + delta)
						check(around + delta*chunk)
					}
				}
			}
			checkRange(t, g, g.Size()-2*chunk, 2*chunk, chunk/2)
		}
	}
}

func TestContains(t *testing.T) {
	const size = 3 * 1 << 20
	g := mustNew(t, DefaultChunk, 3, 1<<20)
	tests := []struct {
		off, n int64
		want   bool
	}{
		{0, 0, true},
		{0, 1, true},
		{0, size, true},
		{0, size + 1, false},
		{size - 1, 1, true},
		{size - 1, 2, false},
		{size, 0, true},
		{size, 1, false},
		{size + 1, 0, false},
		{size + 1, -1, false},
		{-1, 0, false},
		{-1, 1, false},
		{-1, 2, false},
		{0, -1, false},
		{size, -1, false},
		{size, -size, false},
		{1, math.MaxInt64, false},
		{math.MaxInt64, 1, false},
		{math.MaxInt64, math.MaxInt64, false},
		{math.MinInt64, math.MinInt64, false},
		{math.MinInt64, 0, false},
		{0, math.MinInt64, false},
		{math.MaxInt64, math.MinInt64, false},
	}
	for _, tt := range tests {
		if got := g.Contains(tt.off, tt.n); got != tt.want {
			t.Errorf("Contains(%d, %d) is %v", tt.off, tt.n, got)
		}
	}
}

func TestMaxPerMemberReal(t *testing.T) {
	tests := []struct {
		members int
		n       int64
		want    int
	}{
		{1, 0, 0}, {1, 1, 1}, {1, 1 << 30, 1},
		{2, -1, 0}, {2, 0, 0}, {2, 4096, 1}, {2, 64 << 10, 1}, {2, 64<<10 + 1, 1}, {2, 64<<10 + 2, 2},
		{2, 128 << 10, 2}, {2, 1 << 20, 9}, {3, 128 << 10, 1}, {8, 1 << 20, 3}, {128, 1 << 20, 1},
		{2, math.MaxInt64, 16384}, // no request is longer than the volume
	}
	for _, tt := range tests {
		g := mustNew(t, DefaultChunk, tt.members, 1<<30)
		if got := g.MaxPerMember(tt.n); got != tt.want {
			t.Errorf("%d members: MaxPerMember(%d) is %d, want %d", tt.members, tt.n, got, tt.want)
		}
	}
}

func TestMaxExtentReal(t *testing.T) {
	one, two := mustNew(t, DefaultChunk, 1, 1<<30), mustNew(t, DefaultChunk, 2, 1<<30)
	tests := []struct{ n, one, two int64 }{
		{-1, 0, 0}, {0, 0, 0}, {512, 512, 512}, {64 << 10, 64 << 10, 64 << 10},
		{1 << 20, 1 << 20, 64 << 10}, {math.MaxInt64, 1 << 30, 64 << 10},
	}
	for _, tt := range tests {
		if got := one.MaxExtent(tt.n); got != tt.one {
			t.Errorf("one member: MaxExtent(%d) is %d, want %d", tt.n, got, tt.one)
		}
		if got := two.MaxExtent(tt.n); got != tt.two {
			t.Errorf("two members: MaxExtent(%d) is %d, want %d", tt.n, got, tt.two)
		}
	}
}

func TestExtentsAppends(t *testing.T) {
	g := mustNew(t, MinChunk, 2, 1<<20)
	first := Extent{Member: 7}
	got := g.Extents(0, 512, []Extent{first})
	if len(got) != 2 || got[0] != first || got[1] != (Extent{Len: 512}) {
		t.Errorf("got %v", got)
	}
}

func TestMappingDoesNotAllocate(t *testing.T) {
	g := mustNew(t, DefaultChunk, 3, 1<<30)
	dst := make([]Extent, 0, g.Count(1, 1<<20))
	var left int64
	allocs := testing.AllocsPerRun(100, func() {
		dst = g.Extents(1, 1<<20, dst[:0])
		_, _, left = g.At(left)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// FuzzExtents compares any range of any geometry with the oracle.
func FuzzExtents(f *testing.F) {
	f.Add(uint8(4), uint8(1), int64(1<<20), int64(32<<10), int64(192<<10+512))
	f.Add(uint8(0), uint8(2), int64(1<<16), int64(3584), int64(9216))
	f.Add(uint8(10), uint8(127), int64(math.MaxInt64/128), int64(math.MaxInt64-(1<<33)), int64(1<<24))
	f.Add(uint8(0), uint8(0), int64(4096), int64(4095), int64(1))
	f.Fuzz(func(t *testing.T, chunkPower, lessOne uint8, memberSize, off, n int64) {
		chunk := int64(MinChunk) << (chunkPower % 11)
		members := int(lessOne)%MaxMembers + 1
		g, err := New(chunk, 512, members, memberSize)
		if err != nil {
			high, low := bits.Mul64(uint64(memberSize), uint64(members))
			if memberSize >= chunk && high == 0 && low <= math.MaxInt64 {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if !g.Contains(off, n) {
			off = int64(uint64(off) % uint64(g.Size()))
			n = int64(uint64(n) % uint64(g.Size()-off))
		}
		n = min(n, 300*chunk+n%chunk) // keeps the oracle quick
		checkRange(t, &g, off, n, chunk/4)
	})
}

// sink keeps the results of benchmarks alive.
var sink int64

// BenchmarkAt compares the mapping with the division it does without. The
// offsets depend on nothing, so this is what a submit loop pays in throughput.
func BenchmarkAt(b *testing.B) {
	const volume = 1 << 40
	step := func(off int64) int64 { return (off + 123457*4096) & (volume - 1) }
	for _, members := range []int{1, 2, 3, 8} {
		g := mustNew(b, DefaultChunk, members, volume)
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			var sum, off int64
			for range b.N {
				member, memberOff, left := g.At(off)
				sum += int64(member) + memberOff + left
				off = step(off)
			}
			sink = sum
		})
		b.Run(fmt.Sprintf("members=%d/divide", members), func(b *testing.B) {
			var sum, off int64
			for range b.N {
				number := off >> (g.shift & 63)
				row := number / g.width
				within := off & g.mask
				sum += number - row*g.width + row<<(g.shift&63) + within + g.span - within
				off = step(off)
			}
			sink = sum
		})
	}
}

func BenchmarkExtents(b *testing.B) {
	for _, n := range []int64{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			g := mustNew(b, DefaultChunk, 3, 1<<40)
			dst := make([]Extent, 0, g.Count(512, n))
			b.ReportAllocs()
			for b.Loop() {
				dst = g.Extents(512, n, dst[:0])
			}
		})
	}
}
