// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"fmt"
	"strings"
)

// flagNames are those of io_uring_setup(2), by bit.
var flagNames = []string{"IOPOLL", "SQPOLL", "SQ_AFF", "CQSIZE", "CLAMP", "ATTACH_WQ", "R_DISABLED", "SUBMIT_ALL",
	"COOP_TASKRUN", "TASKRUN_FLAG", "SQE128", "CQE32", "SINGLE_ISSUER", "DEFER_TASKRUN", "NO_MMAP", "REGISTERED_FD_ONLY", "NO_SQARRAY"}

// FlagNames returns the names of setup flags, separated by commas, as SetupFlags has
// them.
func FlagNames(flags uint32) string {
	var names []string
	for bit := range 32 {
		if flags>>bit&1 == 0 {
			continue
		}
		name := fmt.Sprintf("1<<%d", bit)
		if bit < len(flagNames) {
			name = flagNames[bit]
		}
		names = append(names, name)
	}
	return strings.Join(names, ",")
}
