// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
)

var goodNames = []string{"a", "0", "_", "vol", "fast.vol_1-a", "a-", ".a", "a..b", "..a", "x-y", strings.Repeat("z", maxName)}

var badNames = []string{
	"", ".", "..", "...", "-", "-a", "--force", strings.Repeat("z", maxName+1), strings.Repeat("z", 1<<16), "A", "Vol", "a b", " a", "a ",
	"a/b", "/", `a\b`, "a\x00b", "a\n", "a\tb", "a\x7f", "\x80", "\xff\xfe", "ä", "日本", "a:b", "a*", "a?", "a%s", "a'b", `a"b`, "a$b", "a;b",
	"0f9b2a52-3f0c-4e9b-9d55-111111111111", "0f9b2a523f0c4e9b9d55111111111111",
}

func TestCheckName(t *testing.T) {
	for _, name := range goodNames {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range badNames {
		err := CheckName(name)
		if !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
			continue
		}
		checkLine(t, err)
	}
}

// checkLine fails when an error is not one short line of printable text.
func checkLine(t testing.TB, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 500 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) {
		t.Errorf("not a line: %.600q", text)
	}
}

// A name that is accepted can stand for the volume on a command line, in a path
// and where its UUID may; the format holds it. Any other gets an error of one line.
func FuzzCheckName(f *testing.F) {
	for _, name := range append(goodNames, badNames...) {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if err := CheckName(name); err != nil {
			if !errors.Is(err, ErrName) {
				t.Errorf("%q: %v", name, err)
			}
			checkLine(t, err)
			return
		}
		if name == "" || len(name) > maxName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" ||
			name[0] == '-' || strings.Trim(name, ".") == "" {
			t.Errorf("%q is accepted", name)
		}
		if _, err := uuid.Parse(name); err == nil {
			t.Errorf("%q is accepted and is a UUID", name)
		}
		sb := sample()
		sb.Name = name
		if got, err := Decode(sb.Encode()); err != nil || got.Name != name {
			t.Errorf("%q comes back as %v, %v", name, got, err)
		}
	})
}
