// SPDX-License-Identifier: Apache-2.0

//go:build linux

package leaktest

import (
	"errors"
	"testing"

	"pollux/internal/uring"
)

func TestMain(m *testing.M) { Main(m) }

func TestRings(t *testing.T) {
	before := Rings()
	ring, err := uring.New(uring.Config{Entries: 1})
	if errors.Is(err, uring.ErrForbidden) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if n := Rings(); n != before+1 {
		t.Errorf("%d rings with one more open, %d before", n, before)
	}
	if err := ring.Close(); err != nil {
		t.Fatal(err)
	}
	if n := Rings(); n != before {
		t.Errorf("%d rings after Close, %d before", n, before)
	}
}
