// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// sizeUnits are powers of 1024, in fio's short form and in the IEC form. (fio
// itself takes KiB for 1000 unless kb_base says otherwise. Nobody means that.)
var sizeUnits = map[string]int{
	"": 0, "b": 0,
	"k": 10, "kb": 10, "ki": 10, "kib": 10,
	"m": 20, "mb": 20, "mi": 20, "mib": 20,
	"g": 30, "gb": 30, "gi": 30, "gib": 30,
	"t": 40, "tb": 40, "ti": 40, "tib": 40,
	"p": 50, "pb": 50, "pi": 50, "pib": 50,
}

// ParseSize returns the number of bytes that s means: a whole number of at least
// 1 with a suffix as fio has them, all of them powers of 1024 in either case.
func ParseSize(s string) (int64, error) {
	digits := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(s)
	}
	shift, known := sizeUnits[strings.ToLower(s[digits:])]
	if digits == 0 || !known {
		return 0, errors.New("not a size: give a whole number of bytes, or one with k, m, g or t (512, 4k, 64KiB, 1g)")
	}
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, errors.New("too large")
	}
	if n == 0 {
		return 0, errors.New("must be at least 1 byte")
	}
	return n << shift, nil
}

// FormatSize returns n in the largest unit that divides it.
func FormatSize(n int64) string {
	const units = "KMGTPE"
	unit := -1
	for n != 0 && n%1024 == 0 && unit < len(units)-1 {
		n /= 1024
		unit++
	}
	if unit < 0 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%d%ciB", n, units[unit])
}

// ParseRuntime returns the time that s means: seconds if it is a bare number, as
// in fio, otherwise a number with ms, s, m or h.
func ParseRuntime(s string) (time.Duration, error) {
	var d time.Duration
	seconds, err := strconv.ParseUint(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && seconds > uint64(math.MaxInt64/time.Second):
		return 0, errors.New("too long")
	case err == nil:
		d = time.Duration(seconds) * time.Second
	default:
		if d, err = time.ParseDuration(s); err != nil {
			return 0, errors.New("not a time: give a number of seconds, or one with ms, s, m or h (30, 500ms, 2m)")
		}
	}
	if d <= 0 {
		return 0, errors.New("must be more than 0")
	}
	return d, nil
}
