// SPDX-License-Identifier: Apache-2.0

package bench

import "testing"

func TestMixFactorsAreInverse(t *testing.T) {
	factor1, factor2 := uint64(mixFactor1), uint64(mixFactor2)
	if factor1*unmixFactor1 != 1 || factor2*unmixFactor2 != 1 {
		t.Error("they are not")
	}
}

func FuzzUnmix(f *testing.F) {
	for _, x := range []uint64{0, 1, 8, 1 << 63, 1<<64 - 1, goldenRatio} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, x uint64) {
		if got := unmix(mix(x)); got != x {
			t.Errorf("unmix(mix(%#x)) is %#x", x, got)
		}
	})
}

func TestCheckPatternFindsEveryByte(t *testing.T) {
	const offset = 1 << 40
	start := patternStart(42)
	b := make([]byte, 512)
	fillPattern(b, start, offset)
	if at := checkPattern(b, start, offset); at != -1 {
		t.Fatalf("the pattern differs from itself at %d", at)
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if at := checkPattern(b, start, offset); at != i {
				t.Fatalf("a wrong byte at %d was found at %d", i, at)
			}
			b[i] ^= 1 << bit
		}
	}
}

// TestPatternDoesNotDependOnBlocks: whoever writes with another block size
// writes the same.
func TestPatternDoesNotDependOnBlocks(t *testing.T) {
	start := patternStart(1)
	whole, parts := make([]byte, 4096), make([]byte, 4096)
	fillPattern(whole, start, 8192)
	for i := 0; i < len(parts); i += 512 {
		fillPattern(parts[i:i+512], start, 8192+int64(i))
	}
	if string(whole) != string(parts) {
		t.Error("it does")
	}
}
