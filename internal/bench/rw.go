// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
)

// RW is what a job does, in the words of fio's --rw.
type RW uint8

// The workloads. Mixed ones read and write in equal parts (fio's rwmixread=50).
const (
	Read RW = iota
	Write
	ReadWrite
	RandRead
	RandWrite
	RandRW
)

var rwNames = [...]string{"read", "write", "readwrite", "randread", "randwrite", "randrw"}

// ParseRW returns the workload of a name that fio knows.
func ParseRW(s string) (RW, error) {
	if s == "rw" {
		return ReadWrite, nil
	}
	for i, name := range rwNames {
		if s == name {
			return RW(i), nil
		}
	}
	return 0, fmt.Errorf("none of %s", strings.Join(rwNames[:], ", "))
}

// String returns fio's name.
func (rw RW) String() string {
	if int(rw) < len(rwNames) {
		return rwNames[rw]
	}
	return fmt.Sprintf("rw(%d)", uint8(rw))
}

// Random says that offsets are drawn, not counted up.
func (rw RW) Random() bool { return rw >= RandRead }

// Reads and Writes say which operations there are.
func (rw RW) Reads() bool { return rw != Write && rw != RandWrite }

// Writes says that data on the device is overwritten.
func (rw RW) Writes() bool { return rw != Read && rw != RandRead }
