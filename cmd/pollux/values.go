// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"time"

	"pollux/internal/bench"
)

// The types below are flags as fio writes them (pflag.Value).

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

type timeFlag time.Duration

func (f *timeFlag) String() string {
	if *f == 0 {
		return ""
	}
	return time.Duration(*f).String()
}
func (f *timeFlag) Type() string { return "time" }
func (f *timeFlag) Set(s string) error {
	d, err := bench.ParseRuntime(s)
	*f = timeFlag(d)
	return err
}

type rwFlag bench.RW

func (f *rwFlag) String() string { return bench.RW(*f).String() }
func (f *rwFlag) Type() string   { return "workload" }
func (f *rwFlag) Set(s string) error {
	rw, err := bench.ParseRW(s)
	*f = rwFlag(rw)
	return err
}

// switchFlag is a boolean that fio writes as 1 or 0, and people as on or off.
type switchFlag bool

func (f *switchFlag) String() string {
	if *f {
		return "on"
	}
	return "off"
}
func (f *switchFlag) Type() string { return "on|off" }
func (f *switchFlag) Set(s string) error {
	switch strings.ToLower(s) {
	case "1", "on", "true", "yes":
		*f = true
	case "0", "off", "false", "no":
		*f = false
	default:
		return errors.New("neither on nor off, nor 1 nor 0")
	}
	return nil
}
