// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"pollux/internal/bench"
)

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

// durationFlag is a time in fio's spelling that may be 0.
type durationFlag time.Duration

func (f *durationFlag) String() string { return time.Duration(*f).String() }
func (f *durationFlag) Type() string   { return "time" }

// Set implements pflag.Value.
func (f *durationFlag) Set(s string) error {
	if s == "0" || s == "0s" {
		*f = 0
		return nil
	}
	d, err := bench.ParseRuntime(s)
	*f = durationFlag(d)
	return err
}
