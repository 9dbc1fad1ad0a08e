// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"math"
	"testing"

	"pollux/stripe"
)

// Wherever a device ends, the copies and the data lie on it, apart from each other.
func TestLayout(t *testing.T) {
	rng := random(t)
	for range 20000 {
		size := rng.Int64() >> rng.IntN(43)
		switch rng.IntN(3) {
		case 0:
			size = size/mib*mib + int64(rng.IntN(3)-1)*512 // beside a multiple of 1 MiB
		case 1:
			size = MinSize + rng.Int64N(2*stripe.MaxChunk)
		}
		chunk := int64(stripe.MinChunk) << rng.IntN(11)
		data := DataSize(size, chunk)
		if size < MinSize {
			if data != 0 {
				t.Fatalf("%d bytes of data on a device of %d", data, size)
			}
			continue
		}
		b, end := OffsetB(size), DataOffset+data
		switch {
		case data < 0 || data%chunk != 0:
			t.Fatalf("device of %d: %d bytes of data in chunks of %d", size, data, chunk)
		case b%BlockSize != 0 || b < 0 || b+BlockSize > size || size-b >= 2*mib-copyB:
			t.Fatalf("device of %d: copy B at %d", size, b)
		case copyA+BlockSize > DataOffset || end > b-copyB:
			t.Fatalf("device of %d: data up to %d, copy B at %d", size, end, b)
		case b-copyB-end >= chunk:
			t.Fatalf("device of %d: %d bytes lost between data and copy B, chunk %d", size, b-copyB-end, chunk)
		}
	}
	for _, c := range []struct{ size, chunk, data, b int64 }{
		{3 * mib, 4 << 10, mib, 2*mib + 64<<10},
		{3*mib + 512, 4 << 10, mib, 2*mib + 64<<10},
		{4*mib - 512, 64 << 10, mib, 2*mib + 64<<10},
		{4 * mib, 64 << 10, 2 * mib, 3*mib + 64<<10},
		{6 * mib, 4 << 20, 4 * mib, 5*mib + 64<<10},
		{6*mib - 512, 4 << 20, 0, 4*mib + 64<<10},
		{math.MaxInt64, 64 << 10, math.MaxInt64/mib*mib - 2*mib, math.MaxInt64/mib*mib - mib + 64<<10},
	} {
		if d, b := DataSize(c.size, c.chunk), OffsetB(c.size); d != c.data || b != c.b {
			t.Errorf("device of %d, chunk %d: data %d, copy B at %d; want %d and %d", c.size, c.chunk, d, b, c.data, c.b)
		}
	}
	for _, size := range []int64{math.MinInt64, -1, 0, 511, mib, 3*mib - 1} {
		if d := DataSize(size, 4<<10); d != 0 {
			t.Errorf("%d bytes of data on a device of %d", d, size)
		}
	}
}
