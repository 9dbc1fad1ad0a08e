// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pollux/stripe"
)

// seal puts the right checksum on a block that a test has changed.
func seal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[atChecksum:], checksum(b))
	return b
}

func TestEncodeDecode(t *testing.T) {
	rng := random(t)
	for range 3000 {
		sb := randomSuperblock(rng)
		block := sb.Encode()
		got, err := Decode(block)
		if err != nil {
			t.Fatalf("%+v: %v", sb, err)
		}
		if !reflect.DeepEqual(*got, sb) {
			t.Fatalf("went in: %+v\ncame out: %+v", sb, *got)
		}
		// A single wrong bit is seen, wherever it is.
		bit := rng.IntN(len(block) * 8)
		block[bit/8] ^= 1 << (bit % 8)
		want := ErrDamaged
		if bit/8 < len(magic) {
			want = ErrNone
		}
		if _, err := Decode(block); !errors.Is(err, want) {
			t.Fatalf("bit %d flipped: %v, want %v", bit, err, want)
		}
	}
}

const goldenFile = "testdata/version1.hex"

// golden reads the block that testdata has: lines of an offset and 16 bytes, of
// which those that are all zero are left out.
func golden(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, BlockSize)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at, digits, _ := strings.Cut(strings.TrimSpace(line), ": ")
		offset, err := strconv.ParseInt(at, 16, 32)
		if err == nil {
			_, err = hex.Decode(b[offset:], []byte(strings.ReplaceAll(digits, " ", "")))
		}
		if err != nil {
			t.Fatalf("%s: %q: %v", goldenFile, line, err)
		}
	}
	return b
}

// The format is what testdata says, byte for byte, in both directions. It is not to
// be changed: a volume that exists has it. A new version gets a file of its own.
func TestGolden(t *testing.T) {
	want, sb := golden(t), sample()
	got := sb.Encode()
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("byte %d is %#02x, the format says %#02x", i, got[i], want[i])
		}
	}
	decoded, err := Decode(want)
	if err != nil || !reflect.DeepEqual(*decoded, sb) {
		t.Errorf("decoded: %+v, %v\nwant %+v", decoded, err, sb)
	}
}

var row = regexp.MustCompile(`(?m)^\| (\d+) \| (\d+) \| ([a-z ]+) \|`)

// What docs/superblock.md says of every byte is so: the fields follow each other
// without a gap, those of the code are where it says, and whatever it calls
// reserved changes nothing.
func TestDocumentedFormat(t *testing.T) {
	text, err := os.ReadFile("../../docs/superblock.md")
	if err != nil {
		t.Fatal(err)
	}
	type field struct{ offset, length int }
	fields := map[string]field{
		"magic": {atMagic, 8}, "major version": {atMajor, 2}, "minor version": {atMinor, 2}, "checksum": {atChecksum, 4},
		"features": {atFeatures, 8}, "sequence": {atSequence, 8}, "state": {atState, 4}, "layout": {atLayout, 4},
		"volume": {atUUID, 16}, "name": {atName, maxName + 1}, "chunk": {atChunk, 8}, "members": {atMemberCount, 4},
		"slot": {atSlot, 4}, "member": {atOwnUUID, 16}, "data offset": {atDataOffset, 8}, "data size": {atDataSize, 8},
		"logical block": {atBlockSize, 4}, "created": {atCreated, 8}, "member table": {atTable, stripe.MaxMembers * entryLen},
	}
	next, original := 0, sample()
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		offset, _ := strconv.Atoi(m[1])
		length, _ := strconv.Atoi(m[2])
		name := m[3]
		if offset != next {
			t.Errorf("%s begins at %d, and what is before it ends at %d", name, offset, next)
		}
		next = offset + length
		if name == "reserved" {
			for i := offset; i < next; i++ {
				b := original.Encode()
				b[i] ^= 0xff
				if got, err := Decode(seal(b)); err != nil || !reflect.DeepEqual(*got, original) {
					t.Errorf("byte %d is reserved and changes what is read: %v", i, err)
				}
			}
			continue
		}
		if f, ok := fields[name]; !ok || f != (field{offset, length}) {
			t.Errorf("the document has %s at %d, %d bytes; the code %+v", name, offset, length, f)
		}
		delete(fields, name)
		if name == "minor version" {
			continue // read by nobody
		}
		end := next
		if name == "member table" {
			end = offset + len(original.Members)*entryLen
		}
		for i := offset; i < end; i++ {
			b := original.Encode()
			b[i] ^= 0x80
			if name != "checksum" {
				seal(b)
			}
			if got, err := Decode(b); err == nil && reflect.DeepEqual(*got, original) {
				t.Errorf("byte %d of %s changes nothing", i, name)
			}
		}
	}
	if next != BlockSize || len(fields) != 0 {
		t.Errorf("the document describes %d bytes and says nothing of %v", next, fields)
	}
}

// Case 12: every field made wrong in turn, under a right checksum.
func TestDecodeWrong(t *testing.T) {
	le := binary.LittleEndian
	put16 := func(at int, v uint16) func([]byte) { return func(b []byte) { le.PutUint16(b[at:], v) } }
	put32 := func(at int, v uint32) func([]byte) { return func(b []byte) { le.PutUint32(b[at:], v) } }
	put64 := func(at int, v int64) func([]byte) { return func(b []byte) { le.PutUint64(b[at:], uint64(v)) } }
	zero := func(at, n int) func([]byte) { return func(b []byte) { clear(b[at : at+n]) } }
	name := func(s string) func([]byte) {
		return func(b []byte) {
			clear(b[atName : atName+maxName+1])
			copy(b[atName:atName+maxName+1], s)
		}
	}
	entry := func(slot int) int { return atTable + slot*entryLen }
	cases := []struct {
		what  string
		wreck func([]byte)
		want  error // nil: accepted all the same
		words string
	}{
		{"nothing", func([]byte) {}, nil, ""},
		{"no magic", zero(atMagic, 8), ErrNone, ""},
		{"half the magic", zero(atMagic+4, 4), ErrNone, ""},
		{"next major version", put16(atMajor, 2), ErrUnsupported, "version 2.0"},
		{"last major version", put16(atMajor, math.MaxUint16), ErrUnsupported, "version 65535.0"},
		{"major version 0", put16(atMajor, 0), ErrUnsupported, "version 0.0"},
		{"major and minor version", func(b []byte) { put16(atMajor, 3)(b); put16(atMinor, 9)(b) }, ErrUnsupported, "version 3.9"},
		{"next minor version", put16(atMinor, 1), nil, ""},
		{"last minor version", put16(atMinor, math.MaxUint16), nil, ""},
		{"first feature", put64(atFeatures, 1), ErrUnsupported, "features 0x1,"},
		{"last feature", put64(atFeatures, math.MinInt64), ErrUnsupported, "features 0x8000000000000000,"},
		{"state 0", put32(atState, 0), ErrInvalid, "state(0)"},
		{"state 3", put32(atState, 3), ErrInvalid, "state(3)"},
		{"state beyond", put32(atState, math.MaxUint32), ErrInvalid, "state(4294967295)"},
		{"forming", put32(atState, 1), nil, ""},
		{"layout 0", put32(atLayout, 0), ErrInvalid, "layout 0"},
		{"layout 2", put32(atLayout, 2), ErrInvalid, "layout 2"},
		{"volume UUID zero", zero(atUUID, 16), ErrInvalid, "volume's UUID is zero"},
		{"name empty", name(""), ErrInvalid, "0 bytes"},
		{"name of 64 bytes", name(strings.Repeat("a", 64)), ErrInvalid, "64 bytes"},
		{"name of 63 bytes", name(strings.Repeat("a", 63)), nil, ""},
		{"name with something behind it", name("abc\x00d"), ErrInvalid, "behind the end of the name"},
		{"name with something at the last byte", name("abc" + strings.Repeat("\x00", 60) + "x"), ErrInvalid, "behind the end of the name"},
		{"name a UUID", name("0f9b2a52-3f0c-4e9b-9d55-111111111111"), ErrInvalid, "taken for a UUID"},
		{"name of dots", name(".."), ErrInvalid, "dots"},
		{"name a flag", name("-a"), ErrInvalid, "dash"},
		{"name not printable", name("a\n\x1b[2J"), ErrInvalid, `a\n\x1b[2J`},
		{"name not UTF-8", name("\xff\xfe"), ErrInvalid, `\xff\xfe`},
		{"chunk 0", put64(atChunk, 0), ErrInvalid, "chunk of 0"},
		{"chunk 2048", put64(atChunk, 2048), ErrInvalid, "chunk of 2048"},
		{"chunk of 3 blocks", put64(atChunk, 12288), ErrInvalid, "chunk of 12288"},
		{"chunk of 8 MiB", put64(atChunk, 8<<20), ErrInvalid, "chunk of 8388608"},
		{"chunk negative", put64(atChunk, math.MinInt64), ErrInvalid, "chunk of -9223372036854775808"},
		{"another chunk", put64(atChunk, 4<<20), ErrInvalid, "would be right"},
		{"count 0", put32(atMemberCount, 0), ErrInvalid, "0 members"},
		{"count 129", put32(atMemberCount, 129), ErrInvalid, "129 members"},
		{"count more than the block has room for", put32(atMemberCount, 1000), ErrInvalid, "1000 members"},
		{"count beyond", put32(atMemberCount, math.MaxUint32), ErrInvalid, "4294967295 members"},
		{"count 4 of a table of 3", put32(atMemberCount, 4), ErrInvalid, "UUID of member 3 is zero"},
		{"count 1, below the slot", put32(atMemberCount, 1), ErrInvalid, "slot 1 of 1"},
		{"slot 3 of 3", put32(atSlot, 3), ErrInvalid, "slot 3 of 3"},
		{"slot beyond", put32(atSlot, math.MaxUint32), ErrInvalid, "slot "},
		{"another slot", put32(atSlot, 0), ErrInvalid, "would be right"},
		{"member UUID zero", zero(atOwnUUID, 16), ErrInvalid, "calls itself 00000000-"},
		{"member UUID another's", func(b []byte) { copy(b[atOwnUUID:], b[entry(2):entry(2)+16]) }, ErrInvalid, "calls itself"},
		{"data offset 0", put64(atDataOffset, 0), ErrInvalid, "data of"},
		{"data offset of half a MiB", put64(atDataOffset, mib/2), ErrInvalid, "data of"},
		{"data offset negative", put64(atDataOffset, -mib), ErrInvalid, "data of"},
		{"data size 0", put64(atDataSize, 0), ErrInvalid, "data of 0"},
		{"data size beyond the device", put64(atDataSize, math.MaxInt64), ErrInvalid, "data of"},
		{"data size negative", put64(atDataSize, -1), ErrInvalid, "data of -1"},
		{"data size a chunk more", put64(atDataSize, DataSize(101*mib+512, 64<<10)+64<<10), ErrInvalid, "data of"},
		{"block 0", put32(atBlockSize, 0), ErrInvalid, "block of 0"},
		{"block 256", put32(atBlockSize, 256), ErrInvalid, "block of 256"},
		{"block 520", put32(atBlockSize, 520), ErrInvalid, "block of 520"},
		{"block 8192", put32(atBlockSize, 8192), ErrInvalid, "block of 8192"},
		{"block beyond", put32(atBlockSize, 1<<31), ErrInvalid, "block of 2147483648"},
		{"block 4096", put32(atBlockSize, 4096), nil, ""},
		{"created at the beginning of time", put64(atCreated, math.MinInt64), nil, ""},
		{"created at the end of time", put64(atCreated, math.MaxInt64), nil, ""},
		{"sequence 0", put64(atSequence, 0), nil, ""},
		{"sequence beyond", put64(atSequence, -1), nil, ""},
		{"a member of the table zero", zero(entry(2), 16), ErrInvalid, "UUID of member 2 is zero"},
		{"own UUID zero in both places", func(b []byte) { zero(entry(1), 16)(b); zero(atOwnUUID, 16)(b) }, ErrInvalid, "UUID of member 1 is zero"},
		{"members doubled", func(b []byte) { copy(b[entry(2):], b[entry(0):entry(0)+16]) }, ErrInvalid, "members 0 and 2 have one UUID"},
		{"a member of size 0", put64(entry(0)+16, 0), ErrInvalid, "member 0 of 0 bytes"},
		{"a member too small", put64(entry(2)+16, 3*mib-1), ErrInvalid, "member 2 of"},
		{"a member of negative size", put64(entry(2)+16, math.MinInt64), ErrInvalid, "member 2 of -"},
		{"a member of any size", put64(entry(2)+16, math.MaxInt64), nil, ""},
		{"own size another", put64(entry(1)+16, 200*mib), ErrInvalid, "would be right"},
		{"own size beyond", put64(entry(1)+16, math.MaxInt64), ErrInvalid, "would be right"},
		{"all bytes set", func(b []byte) { copy(b[8:], bytes.Repeat([]byte{0xff}, BlockSize-8)) }, ErrUnsupported, "65535"},
		{"all bytes zero", func(b []byte) { clear(b[8:]) }, ErrUnsupported, "version 0.0"},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			sb := sample()
			b := sb.Encode()
			c.wreck(b)
			got, err := Decode(seal(b))
			if c.want == nil {
				if err != nil || got == nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if got != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
				t.Fatalf("%+v, %v; want %v with %q", got, err, c.want, c.words)
			}
			checkLine(t, err)
			for _, other := range []error{ErrNone, ErrDamaged, ErrUnsupported, ErrInvalid} {
				if other != c.want && errors.Is(err, other) {
					t.Errorf("answers to %v too", other)
				}
			}
			// With the old checksum it is a torn write, or nothing at all.
			copy(b[atChecksum:], sb.Encode()[atChecksum:atChecksum+4])
			if _, err := Decode(b); c.want != ErrNone && !errors.Is(err, ErrDamaged) {
				t.Errorf("with the old checksum: %v", err)
			}
		})
	}
	for _, n := range []int{0, 1, 8, 512, BlockSize - 1, BlockSize + 1} {
		if got, err := Decode(append(golden(t), 0)[:n]); got != nil || !errors.Is(err, ErrNone) {
			t.Errorf("%d bytes: %v, %v", n, got, err)
		}
	}
}

// TestNewRefuses: what Decode would not take back is not made.
func TestNewRefuses(t *testing.T) {
	many := func(n int) (sizes, blocks []int64) {
		for range n {
			sizes, blocks = append(sizes, 8*mib), append(blocks, 512)
		}
		return sizes, blocks
	}
	for _, c := range []struct {
		what  string
		name  string
		chunk int64
		n     int
		size  int64
		block int64
		want  error
	}{
		{"as it should be", "v", 64 << 10, 2, 8 * mib, 512, nil},
		{"as many as can be", "v", 64 << 10, stripe.MaxMembers, 8 * mib, 4096, nil},
		{"one", "v", 4 << 10, 1, 3 * mib, 512, nil},
		{"a bad name", "V", 64 << 10, 2, 8 * mib, 512, ErrName},
		{"a bad chunk", "v", 2048, 2, 8 * mib, 512, ErrInvalid},
		{"too many", "v", 64 << 10, stripe.MaxMembers + 1, 8 * mib, 512, ErrInvalid},
		{"too small", "v", 64 << 10, 2, 3*mib - 1, 512, ErrInvalid},
		{"too small for the chunk", "v", 4 << 20, 2, 6*mib - 1, 512, ErrInvalid},
		{"a block too large", "v", 64 << 10, 2, 8 * mib, 8192, ErrInvalid},
	} {
		sizes, blocks := many(c.n)
		sizes[c.n-1], blocks[c.n-1] = c.size, c.block
		all, err := New(c.name, c.chunk, sizes, blocks)
		if !errors.Is(err, c.want) || (err == nil) != (all != nil) {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
			continue
		}
		ids := map[string]bool{}
		for slot, sb := range all {
			got, err := Decode(sb.Encode())
			if err != nil || !reflect.DeepEqual(*got, sb) || sb.Slot != slot || sb.BlockSize != blocks[slot] || sb.State != Forming {
				t.Errorf("%s: slot %d: %+v, %v", c.what, slot, sb, err)
			}
			ids[sb.Own().UUID.String()] = true
		}
		if len(ids) != len(all) {
			t.Errorf("%s: %d UUIDs for %d members", c.what, len(ids), len(all))
		}
	}
}

// Whatever decodes makes sense, and encodes to the same bytes where they mean
// something. So that the fuzzer gets past the checksum, each input is tried with
// the right one as well.
func FuzzDecode(f *testing.F) {
	sb := sample()
	f.Add(sb.Encode())
	f.Add(make([]byte, BlockSize))
	f.Add([]byte{})
	for _, at := range []int{atMajor, atFeatures, atState, atName, atChunk, atMemberCount, atSlot, atDataSize, atTable, atTable + 16} {
		b := sb.Encode()
		b[at]++
		f.Add(seal(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= BlockSize {
			b = b[:BlockSize]
		}
		checkDecode(t, b)
		full := make([]byte, BlockSize)
		copy(full, b)
		copy(full, magic[:])
		checkDecode(t, seal(full))
		// And past the checks that random bytes never pass.
		binary.LittleEndian.PutUint16(full[atMajor:], major)
		clear(full[atFeatures : atFeatures+8])
		checkDecode(t, seal(full))
	})
}

func checkDecode(t *testing.T, b []byte) {
	t.Helper()
	sb, err := Decode(b)
	if err != nil {
		if sb != nil || !isAny(err, ErrNone, ErrDamaged, ErrUnsupported, ErrInvalid) {
			t.Fatalf("%+v, %v", sb, err)
		}
		checkLine(t, err)
		return
	}
	if err := sb.check(); err != nil {
		t.Fatalf("decoded, and %v", err)
	}
	if data, b := sb.DataOffset+sb.DataSize, OffsetB(sb.Own().Size); sb.DataSize <= 0 || data > b-copyB || b+BlockSize > sb.Own().Size {
		t.Fatalf("data up to %d, copy B at %d of %d", data, b, sb.Own().Size)
	}
	want := bytes.Clone(b)
	binary.LittleEndian.PutUint16(want[atMinor:], minor)
	for _, r := range [][2]int{{atBlockSize + 4, atCreated}, {atCreated + 8, atTable}, {atTable + len(sb.Members)*entryLen, BlockSize}} {
		clear(want[r[0]:r[1]])
	}
	if got := sb.Encode(); !bytes.Equal(got, seal(want)) {
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("byte %d was %#x and becomes %#x: %+v", i, want[i], got[i], sb)
			}
		}
	}
	if again, err := Decode(sb.Encode()); err != nil || !reflect.DeepEqual(again, sb) {
		t.Fatalf("encoded and decoded again: %+v, %v; was %+v", again, err, sb)
	}
}
