// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// abilities are what a backend either has or lists as missing. Each function
// returns an error where it is not there.
var abilities = map[string]func(t *testing.T) error{
	"NO_SQARRAY": func(t *testing.T) error {
		if r := newRing(t, Config{}); r.SetupFlags()&setupNoSQArray == 0 && kernelAtLeast(t, 6, 6) {
			return fmt.Errorf("setup flags are %#x", r.SetupFlags())
		}
		return nil
	},
	"SUBMIT_ALL": func(t *testing.T) error {
		if r := newRing(t, Config{}); r.SetupFlags()&setupSubmitAll == 0 {
			return fmt.Errorf("setup flags are %#x", r.SetupFlags())
		}
		return nil
	},
	"IOPOLL": func(t *testing.T) error {
		if r := newRing(t, Config{IOPoll: true}); r.SetupFlags()&setupIOPoll == 0 {
			return fmt.Errorf("setup flags are %#x", r.SetupFlags())
		}
		return nil
	},
	"CQSIZE": func(t *testing.T) error {
		if _, cq := newRing(t, Config{Entries: 2, CQEntries: 64}).Entries(); cq != 64 {
			return fmt.Errorf("%d entries, asked for 64", cq)
		}
		return nil
	},
	"EXT_ARG": func(t *testing.T) error {
		r := newRing(t, Config{})
		start := time.Now()
		if err := r.EnterWait(1, 10*time.Millisecond); err != nil {
			return err
		}
		if time.Since(start) > patience || r.Pending() != 0 || r.Ready() != 0 {
			return errors.New("the timeout was not the kernel's")
		}
		return nil
	},
	"POLL_ADD": func(t *testing.T) error {
		r, e := newRing(t, Config{}), newEvent(t)
		if err := e.Raise(); err != nil {
			return err
		}
		push(t, r, SQE{Opcode: OpPollAdd, FD: e.FD(), OpFlags: PollIn})
		if got := await(t, r, 1); got[0].Res != PollIn {
			return fmt.Errorf("result %d", got[0].Res)
		}
		return nil
	},
	"REGISTER_FILES": func(t *testing.T) error {
		return newRing(t, Config{}).RegisterFiles([]int32{int32(eventfd(t))})
	},
	"REGISTER_FILES_UPDATE": func(t *testing.T) error {
		r := newRing(t, Config{})
		if err := r.RegisterFiles([]int32{int32(eventfd(t))}); err != nil {
			return err
		}
		return r.UpdateFile(0, int32(eventfd(t)))
	},
	"REGISTER_BUFFERS": func(t *testing.T) error {
		return newRing(t, Config{}).RegisterMemory(newMemory(t, 4096))
	},
	"CLONE_BUFFERS": func(t *testing.T) error {
		if !kernelAtLeast(t, 6, 12) {
			return nil
		}
		src := newRing(t, Config{})
		if err := src.RegisterMemory(newMemory(t, 4096)); err != nil {
			return err
		}
		return newRing(t, Config{}).CloneMemory(src)
	},
}

// Missing tells the truth in both directions.
func TestMissing(t *testing.T) {
	missing := map[string]string{}
	for _, line := range Missing() {
		name, reason, _ := strings.Cut(line, ": ")
		if reason == "" {
			t.Errorf("%q gives no reason", line)
		}
		if abilities[name] == nil {
			t.Errorf("%q is about nothing that is tested", line)
		}
		missing[name] = reason
		t.Logf("%s lacks %s", Backend, line)
	}
	for name, try := range abilities {
		err := try(t)
		switch reason, listed := missing[name]; {
		case listed && err == nil:
			t.Errorf("%s is there, and listed as missing (%s)", name, reason)
		case !listed && err != nil:
			t.Errorf("%s: %v", name, err)
		}
	}
}
