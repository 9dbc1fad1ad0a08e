// SPDX-License-Identifier: Apache-2.0

package clock

// counter is the kernel's name of the clock source that cycles reads.
const counter = "arch_sys_counter"

func cycles() uint64
