// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func cycles() uint64
// ISB keeps the reading from being made ahead of what is before it.
TEXT ·cycles(SB), NOSPLIT, $0-8
	ISB  $15
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET
