// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func cycles() uint64
// LFENCE keeps the reading from being made ahead of the loads before it, as the
// kernel's own rdtsc_ordered does.
TEXT ·cycles(SB), NOSPLIT, $0-8
	LFENCE
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET
