// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// signatureSeed returns the seed of this run and prints it. POLLUX_SEED repeats
// a run.
func signatureSeed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("POLLUX_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("POLLUX_SEED: %v", err)
		}
	}
	t.Logf("POLLUX_SEED=%d", seed)
	return seed
}

// sparse is a device of zeros, of any size, with some bytes in it. It fails the
// test when read as Signatures promises not to.
type sparse struct {
	t     testing.TB
	size  int64
	put   map[int64]string
	reads int
	total int64
}

func (s *sparse) ReadAt(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	if off < 0 || off%4096 != 0 || end > s.size || end%4096 != 0 && end != s.size || len(p) == 0 || len(p) > 256<<10 {
		s.t.Errorf("read of %d bytes at %d, on a device of %d", len(p), off, s.size)
	}
	s.reads++
	s.total += int64(len(p))
	clear(p)
	for at, b := range s.put {
		for i := range b {
			if k := at + int64(i) - off; k >= 0 && k < int64(len(p)) {
				p[k] = b[i]
			}
		}
	}
	return len(p), nil
}

// listed returns what Signatures finds in b.
func listed(t testing.TB, b []byte) []Signature {
	t.Helper()
	list, err := Signatures(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestSignatureString(t *testing.T) {
	if got := (Signature{Type: "ext4", Offset: 1080, Magic: []byte{0x53, 0xef}}).String(); got != "ext4 at 1080" {
		t.Errorf("got %q", got)
	}
}

func TestSignaturesOfBlank(t *testing.T) {
	for _, size := range []int64{0, 1, 511, 512, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 65535, 65536, 65537,
		1<<20 - 1, 1 << 20, 1440 << 10, 1440<<10 + 512, 64 << 20, 64<<20 + 512, 1<<40 + 4096, 8 << 50} {
		d := &sparse{t: t, size: size}
		list, err := Signatures(d, size)
		if err != nil || len(list) != 0 {
			t.Errorf("size %d: %v, %v", size, list, err)
		}
		if d.reads > 16 || d.total > 16*pieceSize {
			t.Errorf("size %d: %d reads, of %d bytes together", size, d.reads, d.total)
		}
	}
}

// TestSignaturesOfFull: every byte the same, so that what is computed from
// fields is as large as can be.
func TestSignaturesOfFull(t *testing.T) {
	for _, size := range []int64{1, 511, 512, 1024, 1025, 4095, 4096, 65537, 1<<20 - 1, 1 << 20} {
		if list := listed(t, bytes.Repeat([]byte{0xff}, int(size))); len(list) != 0 {
			t.Errorf("size %d: %v", size, list)
		}
	}
}

func TestSignaturesNegativeSize(t *testing.T) {
	if list, err := Signatures(bytes.NewReader(nil), -1); err == nil || list != nil {
		t.Errorf("got %v, %v", list, err)
	}
}

// TestSignaturesOfTerabytes: the ends lie where no image of a test would reach.
func TestSignaturesOfTerabytes(t *testing.T) {
	const size = 1 << 40
	d := &sparse{t: t, size: size, put: map[int64]string{
		0x10040:     "_BHRfS_M",
		size - 1024: "Intel Raid ISM Cfg Sig. 1.3.00",
	}}
	list, err := Signatures(d, size)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(list); got != "[btrfs at 65600 isw_raid_member at 1099511626752]" {
		t.Errorf("got %s", got)
	}
}

// TestSignaturesOfVolumeData: the second header of a LUKS device on a striped
// volume may lie where one of the member's own would be. It is not foreign.
func TestSignaturesOfVolumeData(t *testing.T) {
	header := func(says uint64) string {
		b := make([]byte, 512)
		copy(b, "SKUL\xba\xbe\x00\x02")
		be.PutUint64(b[256:], says)
		return string(b)
	}
	const size = 8 << 20
	for _, at := range []int64{0x4000, 0x8000, 0x100000, 0x200000, 0x400000} {
		for _, says := range []int64{0x4000, 0x8000, 0x100000, 0x200000, 0x400000} {
			list, err := Signatures(&sparse{t: t, size: size, put: map[int64]string{at: header(uint64(says))}}, size)
			if err != nil {
				t.Fatal(err)
			}
			if found := len(list) == 1; found != (at == says) {
				t.Errorf("header at %#x that says %#x: %v", at, says, list)
			}
		}
	}
}

// faulty answers reads that cover bad as told.
type faulty struct {
	r    io.ReaderAt
	bad  int64
	n    int // how much of such a read succeeds
	err  error
	hits int
}

func (f *faulty) ReadAt(p []byte, off int64) (int, error) {
	if off <= f.bad && f.bad < off+int64(len(p)) {
		f.hits++
		return f.n, f.err
	}
	return f.r.ReadAt(p, off)
}

func TestSignaturesReadErrors(t *testing.T) {
	const size = 128 << 20
	medium := errors.New("no data available")
	for _, bad := range []int64{0, 300 << 10, 2 << 20, size - 1} {
		for _, c := range []struct {
			n   int
			err error
		}{{0, medium}, {512, medium}, {4096, io.EOF}, {0, nil}} {
			f := &faulty{r: &sparse{t: t, size: size, put: map[int64]string{0: "XFSB", 1080: "\x53\xef"}}, bad: bad, n: c.n, err: c.err}
			list, err := Signatures(f, size)
			if err == nil || list != nil {
				t.Errorf("bad at %d: %v, %v", bad, list, err)
				continue
			}
			at := fmt.Sprintf(" at %d,", bad/pieceSize*pieceSize)
			if !strings.Contains(err.Error(), at) || strings.Contains(err.Error(), "\n") {
				t.Errorf("bad at %d: %q does not say %q", bad, err, at)
			}
			if c.err == medium && !errors.Is(err, medium) {
				t.Errorf("bad at %d: %q hides the cause", bad, err)
			}
			if f.hits != 1 {
				t.Errorf("bad at %d: read %d times", bad, f.hits)
			}
		}
	}
}

// lastWithEOF returns io.EOF together with the last byte, as io.ReaderAt may.
type lastWithEOF struct{ b []byte }

func (l lastWithEOF) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, l.b[off:])
	if off+int64(n) == int64(len(l.b)) {
		return n, io.EOF
	}
	return n, nil
}

func TestSignaturesEOFWithLastByte(t *testing.T) {
	b := make([]byte, 1<<20)
	copy(b[1080:], "\x53\xef")
	list, err := Signatures(lastWithEOF{b}, int64(len(b)))
	if err != nil || fmt.Sprint(list) != "[ext2 at 1080]" {
		t.Errorf("got %v, %v", list, err)
	}
}

// TestSignaturesDoNotWrite: hiding is done to copies, and the list is the
// caller's own.
func TestSignaturesDoNotWrite(t *testing.T) {
	b := make([]byte, 2<<20)
	copy(b[0:], "XFSB")
	copy(b[1080:], "\x53\xef")
	copy(b[0xff6:], "SWAP-SPACE")
	before := bytes.Clone(b)
	list := listed(t, b)
	if len(list) != 2 {
		t.Errorf("got %v", list)
	}
	for _, s := range list {
		clear(s.Magic) // it is the caller's
	}
	if !bytes.Equal(b, before) {
		t.Error("the device was changed")
	}
}

// checkList holds a list against the device it is of.
func checkList(t testing.TB, list []Signature, b []byte) {
	t.Helper()
	for i, s := range list {
		if s.Type == "" || len(s.Magic) == 0 || s.Offset < 0 || s.Offset+int64(len(s.Magic)) > int64(len(b)) {
			t.Errorf("%v, of %d bytes, on a device of %d", s, len(s.Magic), len(b))
			continue
		}
		if !bytes.Equal(s.Magic, b[s.Offset:][:len(s.Magic)]) {
			t.Errorf("%v: magic %x, the device has %x", s, s.Magic, b[s.Offset:][:len(s.Magic)])
		}
		if i > 0 && (list[i-1].Offset > s.Offset || list[i-1].Offset == s.Offset && list[i-1].Type >= s.Type) {
			t.Errorf("%v comes after %v", s, list[i-1])
		}
	}
}

// erase does to b what erases the signatures.
func erase(list []Signature, b []byte) {
	for _, s := range list {
		clear(b[s.Offset:][:len(s.Magic)])
	}
}

// hotspots are the offsets at which FuzzSignatures puts bytes: of every magic
// that has a fixed place, and what is counted from the end.
func hotspots(size int64) []int64 {
	at := []int64{0, 11, 446, 510, 512, 1024, 4096, 32 << 10, 128 << 10, size - 512, size - 1024, size - 4096, size - 8192,
		size&^0xffff - 0x10000, size - 256<<10 + 128<<10, 0x4000, 256<<10 + 1372, 2 << 20}
	for _, f := range families {
		for _, m := range f.magics {
			at = append(at, m.sb, m.sb+m.off)
		}
	}
	return at
}

func FuzzSignatures(f *testing.F) {
	const size = 65 << 20
	for _, fam := range families {
		for _, m := range fam.magics {
			f.Add(uint32(size), []byte{byte(len(m.text))}, []byte(m.text))
		}
	}
	for i := range hotspots(size) {
		f.Add(uint32(size), []byte{byte(i), 8}, bytes.Repeat([]byte{1, 0xff}, 300))
	}
	f.Add(uint32(1025), []byte{3, 2, 9, 200}, []byte("\x55\xaa\xebMSWIN"))
	base := make([]byte, size)
	f.Fuzz(func(t *testing.T, length uint32, plan, data []byte) {
		// plan is pairs: which hotspot, how many bytes of data.
		b := base[:int64(length)%size+1]
		spots := hotspots(int64(len(b)))
		type span struct{ off, end int64 }
		var dirty []span
		for ; len(plan) >= 2 && len(data) > 0; plan = plan[2:] {
			off := spots[int(plan[0])%len(spots)]
			n := min(len(data), int(plan[1])*4)
			if off < 0 || off > int64(len(b)) {
				continue
			}
			k := copy(b[off:], data[:n])
			dirty = append(dirty, span{off, off + int64(k)})
			data = data[n:]
		}
		list := listed(t, b)
		checkList(t, list, b)
		erase(list, b)
		if rest := listed(t, b); len(rest) != 0 {
			t.Errorf("%v are there once %v are erased", rest, list)
		}
		for _, s := range dirty {
			clear(b[s.off:s.end])
		}
	})
}

func BenchmarkSignatures(b *testing.B) {
	image := make([]byte, 128<<20)
	for b.Loop() {
		if _, err := Signatures(bytes.NewReader(image), int64(len(image))); err != nil {
			b.Fatal(err)
		}
	}
}
