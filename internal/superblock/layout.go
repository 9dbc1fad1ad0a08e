// SPDX-License-Identifier: Apache-2.0

package superblock

import "pollux/stripe"

const (
	// BlockSize is the length of a superblock in bytes.
	BlockSize = 4096
	// DataOffset is where the data of a member begins.
	DataOffset = mib
	// MinSize is the smallest device that can be a member, of the smallest chunk.
	MinSize = 3 * mib

	// copyA and copyB are where the copies begin within the first MiB and the
	// last full one.
	copyA = 64 << 10
	copyB = 64 << 10

	mib = 1 << 20
)

// lastMiB returns the start of the last full MiB of a device.
func lastMiB(size int64) int64 { return (size/mib - 1) * mib }

// OffsetB returns where copy B lies on a device of size bytes, at least MinSize.
func OffsetB(size int64) int64 { return lastMiB(size) + copyB }

// DataSize returns how many bytes of data, in whole chunks, a device of size
// bytes holds; 0 when it is too small for one.
func DataSize(size, chunk int64) int64 {
	if size < MinSize {
		return 0
	}
	n := lastMiB(size) - DataOffset
	return n - n%chunk
}

// validChunk says whether chunk is one that stripe takes.
func validChunk(chunk int64) bool {
	return chunk >= stripe.MinChunk && chunk <= stripe.MaxChunk && chunk&(chunk-1) == 0
}
