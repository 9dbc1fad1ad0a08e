// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// A SIGTERM while create or destroy looks about ends it, and nothing was written. Once
// it writes it goes on to the end, as half a volume is of no use to anybody.
func TestTerminated(t *testing.T) {
	for _, c := range []struct {
		name string
		args func(*cutRig) []string
		ends func(r *cutRig) // what a run to the end leaves
	}{
		{"create", func(r *cutRig) []string { return r.create() }, func(r *cutRig) {
			if !r.whole() {
				r.t.Error("created, and not whole")
			}
		}},
		{"destroy", (*cutRig).destroy, func(r *cutRig) {
			if r.settled() {
				r.t.Error("destroyed, and there")
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			prepare := func() (*cutRig, [][]byte) {
				r := newCutRig(t, nil)
				if c.name == "destroy" {
					r.must(exitGood, r.create()...)
				}
				return r, r.contents()
			}
			stopped := 0
			for _, nth := range []int{1, 3, 6, 12, 24} {
				r, before := prepare()
				_, state, stderr := traced(t, fmt.Sprintf("pread64:signal=TERM:delay_exit=100ms:when=%d", nth), cutCall{}, c.args(r)...)
				status := state.Sys().(syscall.WaitStatus)
				switch code := state.ExitCode(); {
				case status.Signaled() && status.Signal() == syscall.SIGTERM:
					// Each thread has an Nth read, and a second signal kills.
					stopped++
					r.mustBe(before)
				case code == exitGood: // the signal was heard too late, or there are not so many reads
					c.ends(r)
				case code == exitFailed:
					stopped++
					r.mustBe(before)
					if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "pollux: ") {
						t.Errorf("not one line: %q", stderr)
					}
				default:
					t.Errorf("terminated at read %d: %v: %s", nth, state, stderr)
				}
			}
			if stopped == 0 {
				t.Error("no signal ended it")
			}
			for _, nth := range []int{1, 2, 7} {
				r, _ := prepare()
				_, state, stderr := traced(t, fmt.Sprintf("pwrite64:signal=TERM:when=%d", nth), cutCall{}, c.args(r)...)
				if state.ExitCode() != exitGood {
					t.Errorf("terminated at write %d: %v: %s", nth, state, stderr)
				}
				c.ends(r)
			}
		})
	}
}
