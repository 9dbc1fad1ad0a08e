// SPDX-License-Identifier: Apache-2.0

package stripe_test

import (
	"fmt"

	"pollux/stripe"
)

// A read of 96 KiB from the middle of a chunk, on two members.
func Example() {
	geometry, err := stripe.New(64<<10, 512, 2, 1<<30)
	if err != nil {
		fmt.Println(err)
		return
	}
	off, n := int64(32<<10), int64(96<<10)
	if !geometry.Contains(off, n) {
		return
	}
	for _, extent := range geometry.Extents(off, n, nil) {
		fmt.Printf("member %d: %d bytes at %d, from byte %d of the buffer\n",
			extent.Member, extent.Len, extent.Offset, extent.Pos)
	}
	// Output:
	// member 0: 32768 bytes at 32768, from byte 0 of the buffer
	// member 1: 65536 bytes at 0, from byte 32768 of the buffer
}
