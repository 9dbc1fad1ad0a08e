// SPDX-License-Identifier: Apache-2.0

package blockdev

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestSignaturesOfRandom: data that happens to look like a signature must not
// be taken for one, except where wipefs does so too.
func TestSignaturesOfRandom(t *testing.T) {
	t.Parallel()
	seed := signatureSeed(t)
	b := make([]byte, 8*mib)
	for n := range uint64(50) {
		var key [32]byte
		copy(key[:], put64(seed)+put64(n))
		rand.NewChaCha8(key).Read(b)
		// Some have what makes boot sectors of many things.
		if n%5 == 1 {
			copy(b[bootMagicOff:], bootMagic)
			copy(b[1080:], "\x53\xef")
		}
		list := listed(t, b)
		checkList(t, list, b)
		if len(list) == 0 {
			continue
		}
		path := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		theirs := wipefs(t, path)
		for _, s := range list {
			if text := fmt.Sprintf("%v, %d bytes", s, len(s.Magic)); !slices.Contains(theirs, text) {
				t.Errorf("number %d: we find %s, wipefs finds %q", n, text, theirs)
			}
		}
	}
}

// TestSignaturesOfMutations changes a few bytes of images, mostly next to the
// magics, where the sanity checks look, and holds Signatures against wipefs.
// POLLUX_MUTATIONS says how many.
func TestSignaturesOfMutations(t *testing.T) {
	t.Parallel()
	rounds := 120
	if s := os.Getenv("POLLUX_MUTATIONS"); s != "" {
		var err error
		if rounds, err = strconv.Atoi(s); err != nil {
			t.Fatalf("POLLUX_MUTATIONS: %v", err)
		}
	}
	random := rand.New(rand.NewPCG(signatureSeed(t), 1))
	images := slices.DeleteFunc(madeImages(), func(m made) bool { return len(m.at) == 0 || m.size < 4096 })
	var mutants []made
	for range rounds {
		m := images[random.IntN(len(images))]
		changed := at{}
		spots := slices.Sorted(maps.Keys(m.at))
		for range 1 + random.IntN(3) {
			spot := spots[random.IntN(len(spots))]
			off := spot + int64(random.IntN(min(len(m.at[spot])+16, 256)))
			if off < m.size {
				v := []byte{0, 1, 2, 0xff, 0x80, byte(random.Uint32())}[random.IntN(6)]
				changed[off] = string([]byte{v})
			}
		}
		m.name = fmt.Sprintf("%s with %q", m.name, changed)
		m.at = m.at.overlaid(changed)
		mutants = append(mutants, m)
	}
	paths := writeAll(t, mutants)
	all := wipefsAll(t, paths)
	for i, m := range mutants {
		_, found := ours(t, paths[i])
		if theirs := all[strconv.Itoa(i)]; !slices.Equal(theirs, common(found, theirs)) {
			t.Errorf("number %d, %s: wipefs finds %q, we find %q", i, m.name, theirs, found)
		}
	}
}

// overlaid returns a with single bytes changed, also within what a has.
func (a at) overlaid(changed at) at {
	all := maps.Clone(a)
	for off, v := range changed {
		for start, s := range a {
			if i := off - start; i >= 0 && i < int64(len(s)) {
				b := []byte(all[start])
				b[i] = v[0]
				all[start] = string(b)
				v = ""
				break
			}
		}
		if v != "" {
			all[off] = v
		}
	}
	return all
}
