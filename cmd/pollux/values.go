// SPDX-License-Identifier: Apache-2.0

package main

import "pollux/internal/bench"

// sizeFlag is a number of bytes as fio writes it (pflag.Value).
type sizeFlag int64

func (f *sizeFlag) String() string {
	if *f == 0 {
		return ""
	}
	return bench.FormatSize(int64(*f))
}
func (f *sizeFlag) Type() string { return "size" }
func (f *sizeFlag) Set(s string) error {
	n, err := bench.ParseSize(s)
	*f = sizeFlag(n)
	return err
}
