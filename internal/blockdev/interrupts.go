// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// sumInterrupts adds up, over all CPUs, the lines of /proc/interrupts whose
// description contains word. ok is false when there is no such line.
func sumInterrupts(r io.Reader, word string) (sum uint64, ok bool, err error) {
	sc := bufio.NewScanner(r)
	// A line has 11 bytes per CPU, and Linux can be built for 8192 of them.
	sc.Buffer(nil, 1<<20)
	cpus := 0
	for first := true; sc.Scan(); first = false {
		fields := strings.Fields(sc.Text())
		if first {
			cpus = len(fields)
			continue
		}
		if len(fields) == 0 || !strings.HasSuffix(fields[0], ":") {
			continue
		}
		fields = fields[1:]
		var line uint64
		n := 0
		// The count of columns is the only thing that ends them: a description
		// may begin with a number too.
		for n < len(fields) && n < cpus {
			v, err := strconv.ParseUint(fields[n], 10, 64)
			if err != nil {
				break
			}
			line += v
			n++
		}
		if strings.Contains(strings.Join(fields[n:], " "), word) {
			sum += line
			ok = true
		}
	}
	if err := sc.Err(); err != nil {
		return 0, false, fmt.Errorf("cannot read the interrupt counts: %w", err)
	}
	return sum, ok, nil
}
