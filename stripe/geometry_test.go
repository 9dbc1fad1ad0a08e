// SPDX-License-Identifier: Apache-2.0

package stripe

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestNew(t *testing.T) {
	tests := []struct {
		name             string
		chunk, blockSize int64
		members          int
		memberSize, want int64
	}{
		{"smallest", MinChunk, 512, 1, MinChunk, MinChunk},
		{"largest chunk and block", MaxChunk, MaxBlockSize, 2, MaxChunk, 2 * MaxChunk},
		{"chunk of one block", 4096, 4096, 2, 8192, 16384},
		{"rounds down to whole chunks", 64 << 10, 512, 3, 1<<20 + 64<<10 - 1, 3 << 20},
		{"most members", 64 << 10, 512, MaxMembers, 1 << 40, 1 << 47},
		{"one member as large as can be", MinChunk, 512, 1, math.MaxInt64, math.MaxInt64 - 4095},
		{"two members as large as can be", MinChunk, 512, 2, math.MaxInt64 / 2, math.MaxInt64 - 8191},
		{"files have small blocks", MinChunk, 1, 2, MinChunk, 2 * MinChunk},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := New(tt.chunk, tt.blockSize, tt.members, tt.memberSize)
			if err != nil {
				t.Fatal(err)
			}
			if g.Size() != tt.want || g.Chunk() != tt.chunk || g.Members() != tt.members {
				t.Errorf("got %d bytes, chunk %d, %d members; want %d bytes", g.Size(), g.Chunk(), g.Members(), tt.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name             string
		chunk, blockSize int64
		members          int
		memberSize       int64
		says             []string
	}{
		{"chunk below the block", 2048, 4096, 2, 1 << 30, []string{"chunk size 2048", "no multiple of 4096", "use a power of two from 4 KiB"}},
		{"chunk no multiple of the block", 6144, 4096, 2, 1 << 30, []string{"chunk size 6144", "no multiple of 4096"}},
		{"chunk below the smallest", 2048, 512, 2, 1 << 30, []string{"chunk size 2048", "from 4096 to 4194304", "such as 64 KiB"}},
		{"chunk above the largest", 8 << 20, 512, 2, 1 << 30, []string{"chunk size 8388608", "from 4 KiB to 4 MiB"}},
		{"chunk no power of two", 96 << 10, 512, 2, 1 << 30, []string{"chunk size 98304", "not a power of two"}},
		{"chunk zero", 0, 512, 2, 1 << 30, []string{"chunk size 0"}},
		{"chunk negative", -65536, 512, 2, 1 << 30, []string{"chunk size -65536"}},
		{"chunk the most negative", math.MinInt64, 512, 2, 1 << 30, []string{"chunk size -9223372036854775808"}},
		{"block zero", 65536, 0, 2, 1 << 30, []string{"logical block size 0", "not a power of two", "512 or 4096"}},
		{"block negative", 65536, -512, 2, 1 << 30, []string{"logical block size -512"}},
		{"block of 520 bytes", 65536, 520, 2, 1 << 30, []string{"logical block size 520", "not a power of two", "reformat"}},
		{"block above a page", 65536, 16384, 2, 1 << 30, []string{"logical block size 16384", "above 4096", "reformat"}},
		{"no members", 65536, 512, 0, 1 << 30, []string{"0 members", "1 to 128"}},
		{"negative members", 65536, 512, -3, 1 << 30, []string{"-3 members", "1 to 128"}},
		{"too many members", 65536, 512, 129, 1 << 30, []string{"129 members", "more than 128", "use fewer"}},
		{"member below a chunk", 65536, 512, 2, 65535, []string{"65535 usable bytes", "one chunk of 65536", "smaller chunk"}},
		{"member empty", 65536, 512, 2, 0, []string{"0 usable bytes"}},
		{"member negative", 65536, 512, 2, -1, []string{"-1 usable bytes"}},
		{"sum overflows", 65536, 512, 2, math.MaxInt64, []string{"2 members of 9223372036854775807 bytes", "smaller members"}},
		{"sum overflows by one chunk", 4096, 512, 2, math.MaxInt64/2 + 1, []string{"2 members of 4611686018427387904 bytes"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g, err := New(tt.chunk, tt.blockSize, tt.members, tt.memberSize)
			if !errors.Is(err, ErrGeometry) {
				t.Fatalf("got %v", err)
			}
			if g != (Geometry{}) {
				t.Errorf("got a geometry beside the error: %+v", g)
			}
			for _, part := range append(tt.says, "invalid geometry: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestWaste(t *testing.T) {
	tests := []struct {
		name  string
		chunk int64
		sizes []int64
		want  []int64
	}{
		{"no members", 4096, nil, nil},
		{"equal", 4096, []int64{8192, 8192}, []int64{0, 0}},
		{"uneven", 4096, []int64{10000, 8192, 8193}, []int64{1808, 0, 1}},
		{"smallest in whole chunks", 65536, []int64{200000, 131073, 131072 + 65535}, []int64{68928, 1, 65535}},
		{"smaller than a chunk", 65536, []int64{100, 65536}, []int64{100, 65536}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Waste(tt.chunk, tt.sizes); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestWasteAgreesWithSize: used and unused bytes are all there are.
func TestWasteAgreesWithSize(t *testing.T) {
	sizes := []int64{1<<30 + 12345, 1<<30 + 99, 2 << 30}
	g := mustNew(t, DefaultChunk, len(sizes), slices.Min(sizes))
	sum := g.Size()
	for _, waste := range Waste(g.Chunk(), sizes) {
		sum += waste
	}
	if want := sizes[0] + sizes[1] + sizes[2]; sum != want {
		t.Errorf("used and wasted are %d bytes of %d", sum, want)
	}
}
