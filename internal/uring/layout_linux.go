// SPDX-License-Identifier: Apache-2.0

package uring

import "unsafe"

// The sizes of what is shared with the kernel, checked when this is compiled.
var (
	_ [unsafe.Sizeof(SQE{})]struct{}          = [64]struct{}{}
	_ [unsafe.Sizeof(CQE{})]struct{}          = [16]struct{}{}
	_ [unsafe.Sizeof(params{})]struct{}       = [120]struct{}{}
	_ [unsafe.Sizeof(cloneBuffers{})]struct{} = [32]struct{}{}
)
