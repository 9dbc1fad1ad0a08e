// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// badDisk cannot be read at some offsets.
type badDisk struct {
	*disk
	unreadable []int64
}

func (d badDisk) ReadAt(p []byte, off int64) (int, error) {
	if slices.Contains(d.unreadable, off) {
		return 0, errIO
	}
	return d.disk.ReadAt(p, off)
}

// copies are the kinds of what may lie where a copy should be, made for a member
// of size bytes. A nil block cannot be read.
func copies(t testing.TB, size int64) map[string][]byte {
	t.Helper()
	r := rig{{size: size, blocks: map[int64][]byte{}}, {size: size, blocks: map[int64][]byte{}}}
	mine, others := r.superblocks(t, "vol"), r.superblocks(t, "other")
	encode := func(sb Superblock, state State, sequence uint64) []byte {
		sb.State, sb.Sequence = state, sequence
		return sb.Encode()
	}
	torn := encode(mine[0], Active, 5)
	clear(torn[512:])
	newer, invalid := encode(mine[0], Active, 5), encode(mine[0], Active, 5)
	binary.LittleEndian.PutUint16(newer[atMajor:], major+1)
	binary.LittleEndian.PutUint32(invalid[atLayout:], 9)
	return map[string][]byte{
		"none":       make([]byte, BlockSize),
		"stranger":   bytes.Repeat([]byte("_BHRfS_M"), BlockSize/8), // btrfs keeps its superblock at 64 KiB
		"torn":       torn,
		"forming 4":  encode(mine[0], Forming, 4),
		"forming 5":  encode(mine[0], Forming, 5),
		"active 5":   encode(mine[0], Active, 5),
		"volume 9":   encode(others[0], Active, 9),
		"slot 1":     encode(mine[1], Active, 5),
		"newer":      seal(newer),
		"invalid":    seal(invalid),
		"unreadable": nil,
	}
}

// verdicts is what has to be made of two copies: a row for copy A, in it a word for
// each copy B. A letter behind the verdict is the copy that counts.
const verdicts = `
             none       stranger   torn      forming4    forming5    active5     volume9     slot1       newer invalid   unreadable
none         Blank      Blank      Damaged   Overwritten Overwritten Overwritten Overwritten Overwritten Newer Damaged   Blank
stranger     Blank      Blank      Damaged   Overwritten Overwritten Overwritten Overwritten Overwritten Newer Damaged   Blank
torn         NeverDone  NeverDone  Damaged   TornA:B     TornA:B     TornA:B     TornA:B     TornA:B     Newer Damaged   Damaged
forming4     NoB:A      NoB:A      NoB:A     Good:A      Good:B      Good:B      Mixed       Mixed       Newer NoB:A     NoB:A
forming5     NoB:A      NoB:A      NoB:A     Good:A      Good:A      Good:A      Mixed       Mixed       Newer NoB:A     NoB:A
active5      NoB:A      NoB:A      NoB:A     Good:A      Good:A      Good:A      Mixed       Mixed       Newer NoB:A     NoB:A
volume9      NoB:A      NoB:A      NoB:A     Mixed       Mixed       Mixed       Good:A      Mixed       Newer NoB:A     NoB:A
slot1        NoB:A      NoB:A      NoB:A     Mixed       Mixed       Mixed       Mixed       Good:A      Newer NoB:A     NoB:A
newer        Newer      Newer      Newer     Newer       Newer       Newer       Newer       Newer       Newer Newer     Newer
invalid      Damaged    Damaged    Damaged   Damaged     Damaged     Damaged     Damaged     Damaged     Newer Damaged   Damaged`

var verdictNames = map[string]Verdict{
	"Blank": Blank, "Good": Good, "NoB": NoB, "TornA": TornA, "NeverDone": NeverDone, "Overwritten": Overwritten,
	"Mixed": Mixed, "Shrunk": Shrunk, "Newer": Newer, "Damaged": Damaged,
}

func TestVerdicts(t *testing.T) {
	const size = 8*mib + 512
	kinds := map[string][]byte{}
	for name, block := range copies(t, size) {
		kinds[strings.ReplaceAll(name, " ", "")] = block
	}
	lines := strings.Split(strings.TrimSpace(verdicts), "\n")
	columns := strings.Fields(lines[0])
	if len(columns) != len(kinds) || len(lines) != len(kinds) { // A unreadable has no row
		t.Fatalf("%d columns and %d rows for %d kinds", len(columns), len(lines)-1, len(kinds))
	}
	for _, line := range lines[1:] {
		words := strings.Fields(line)
		for i, word := range words[1:] {
			a, b := words[0], columns[i]
			name, current, _ := strings.Cut(word, ":")
			want, ok := verdictNames[name]
			if kinds[a] == nil || !ok {
				t.Fatalf("the table has %s and %s", a, name)
			}
			d := badDisk{disk: &disk{size: size, blocks: map[int64][]byte{copyA: kinds[a], OffsetB(size): kinds[b]}}}
			if kinds[b] == nil {
				d.unreadable = []int64{OffsetB(size)}
			}
			l, err := Read(d)
			if err != nil {
				t.Errorf("A %s, B %s: %v", a, b, err)
				continue
			}
			var counts *Superblock
			switch current {
			case "A":
				counts = l.A.Superblock
			case "B":
				counts = l.B.Superblock
			}
			if l.Verdict != want || l.Current != counts || (counts == nil) != (current == "") {
				t.Errorf("A %s, B %s: %q with %+v, want %s", a, b, l.Verdict, l.Current, word)
			}
			// What can be said of the owner is said wherever a copy is valid.
			if named := l.Named(); (named == nil) != (l.A.Superblock == nil && l.B.Superblock == nil) {
				t.Errorf("A %s, B %s: named %+v", a, b, named)
			}
			if never := want == Blank || want == NeverDone || want == NoB && counts.State == Forming; l.Uncommitted() != never {
				t.Errorf("A %s, B %s: uncommitted is %v", a, b, l.Uncommitted())
			}
			checkSentence(t, l.Verdict)
		}
	}
}

func checkSentence(t *testing.T, v Verdict) {
	t.Helper()
	if text := v.String(); text == "" || strings.ContainsAny(text, "\n()") {
		t.Errorf("verdict %d: %q", int(v), text)
	}
}

// Without copy A nothing can be said: not that the device is blank, either.
func TestReadFails(t *testing.T) {
	for name, b := range copies(t, 8*mib) {
		d := badDisk{&disk{size: 8 * mib, blocks: map[int64][]byte{OffsetB(8 * mib): b}}, []int64{copyA}}
		if l, err := Read(d); !errors.Is(err, errIO) || l.Current != nil {
			t.Errorf("A unreadable, B %s: %v, %v", name, l.Verdict, err)
		}
	}
	// Devices without room for the one or the other copy.
	for _, size := range []int64{0, 512, copyA, copyA + BlockSize - 512, copyA + BlockSize, mib, MinSize - 512} {
		l, err := Read(&disk{size: size / BlockSize * BlockSize, blocks: map[int64][]byte{}})
		if err != nil || l.Verdict != Blank || l.B.Offset != -1 {
			t.Errorf("a device of %d bytes: %+v, %v", size, l, err)
		}
	}
}

// resized is a member whose device has another size now.
func resized(t *testing.T, from, to int64, wreck func(*disk)) Label {
	t.Helper()
	kinds := copies(t, from)
	d := &disk{size: from, blocks: map[int64][]byte{copyA: kinds["active 5"], OffsetB(from): kinds["active 5"]}}
	if wreck != nil {
		wreck(d)
	}
	for at := range d.blocks {
		if at+BlockSize > to {
			delete(d.blocks, at)
		}
	}
	d.size = to
	l, err := Read(d)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestResizedDevice(t *testing.T) {
	const size = 8*mib + 512
	b := OffsetB(size)
	loseA := func(d *disk) { delete(d.blocks, copyA) }
	for _, c := range []struct {
		what    string
		to      int64
		wreck   func(*disk)
		want    Verdict
		offsetB int64
	}{
		{"as it was", size, nil, Good, b},
		{"grown by a block", size + 512, nil, Good, b},
		{"grown by 1 MiB", size + mib, nil, Good, b},
		{"grown a thousandfold", size << 10, nil, Good, b},
		{"shrunk by a block", size - 512, nil, Shrunk, b},
		{"shrunk within the last MiB", size - 512*8, nil, Shrunk, b},
		{"shrunk so that copy B is cut", b + BlockSize - 512, nil, Shrunk, -1},
		{"shrunk by half", size / 2 / BlockSize * BlockSize, nil, Shrunk, -1},
		{"shrunk to less than a member", 2 * mib, nil, Shrunk, -1},
		// Copy A alone says where copy B was.
		{"grown within the last MiB, copy A lost", size + mib - 1024, loseA, Overwritten, b},
		{"grown by 1 MiB, copy A lost", size + mib, loseA, Blank, b + mib},
		{"shrunk by 1 MiB, copy A lost", size - mib, loseA, Blank, b - mib},
	} {
		l := resized(t, size, c.to, c.wreck)
		if l.Verdict != c.want || l.B.Offset != c.offsetB || l.Size != c.to {
			t.Errorf("%s: %q, copy B at %d, size %d; want %q, %d, %d", c.what, l.Verdict, l.B.Offset, l.Size, c.want, c.offsetB, c.to)
		}
		if (c.want == Good || c.want == Shrunk) != (l.Current != nil) {
			t.Errorf("%s: counts: %+v", c.what, l.Current)
		}
	}
	// Cut by less than a MiB, copy B is still found; its size tells.
	const odd = 8*mib + 4096
	for what, wreck := range map[string]func(*disk){
		"lost": loseA,
		"torn": func(d *disk) { d.blocks[copyA] = copies(t, odd)["torn"] },
	} {
		if l := resized(t, odd, 8*mib, wreck); l.Verdict != Shrunk || l.Current != nil || l.Named() == nil {
			t.Errorf("shrunk, copy A %s: %q, %+v", what, l.Verdict, l.Current)
		}
	}
}

func TestStrings(t *testing.T) {
	seen := map[string]bool{}
	for v := Blank; v <= Damaged; v++ {
		checkSentence(t, v)
		seen[v.String()] = true
	}
	if len(seen) != len(verdictNames) || len(seen) != int(Damaged)+1 {
		t.Errorf("%d sentences for %d verdicts", len(seen), len(verdictNames))
	}
	for _, c := range [][2]string{
		{Verdict(99).String(), "verdict(99)"}, {State(7).String(), "state(7)"}, {Forming.String(), "forming"}, {Active.String(), "active"},
		{Whole.String(), "whole"}, {Incomplete.String(), "incomplete"}, {Unfinished.String(), "unfinished"},
		{fmt.Sprint(Problem{Slot: 2, Text: "member 2 is missing"}), "member 2 is missing"},
		{fmt.Sprint(Problem{Path: "/dev/x", Slot: 2, Text: "is wrong"}), "/dev/x: is wrong"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
