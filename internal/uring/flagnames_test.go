// SPDX-License-Identifier: Apache-2.0

package uring

import "testing"

func TestFlagNames(t *testing.T) {
	for flags, want := range map[uint32]string{
		0: "", 1: "IOPOLL", 1<<7 | 1: "IOPOLL,SUBMIT_ALL", 1 << 16: "NO_SQARRAY", 1<<31 | 1<<3: "CQSIZE,1<<31",
	} {
		if got := FlagNames(flags); got != want {
			t.Errorf("%#x is %q, want %q", flags, got, want)
		}
	}
}
