// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"pollux/stripe"
)

// random returns a source whose seed is printed; POLLUX_SEED repeats a run.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("POLLUX_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("POLLUX_SEED: %v", err)
		}
	}
	t.Logf("POLLUX_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func randomUUID(rng *rand.Rand) (id uuid.UUID) {
	for i := range id {
		id[i] = byte(rng.Uint32())
	}
	id[0] |= 1 // never zero
	return id
}

func randomName(rng *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	var b strings.Builder
	b.WriteByte("az09_"[rng.IntN(5)])
	for range rng.IntN(maxName) {
		b.WriteByte(letters[rng.IntN(len(letters))])
	}
	return b.String()
}

// randomSuperblock is valid, of any size that there can be.
func randomSuperblock(rng *rand.Rand) Superblock {
	sb := Superblock{
		Sequence: rng.Uint64() >> rng.IntN(64), State: Forming + State(rng.IntN(2)), UUID: randomUUID(rng),
		Layout: LayoutStriped, Chunk: stripe.MinChunk << rng.IntN(11), DataOffset: DataOffset,
		BlockSize: 512 << rng.IntN(4), Created: time.Unix(0, rng.Int64()-rng.Int64()).UTC(),
	}
	for sb.Name == "" || CheckName(sb.Name) != nil {
		sb.Name = randomName(rng)
	}
	n := 1 + rng.IntN(5)
	if rng.IntN(4) == 0 {
		n = 1 + rng.IntN(stripe.MaxMembers)
	}
	for range n {
		size := MinSize + stripe.MaxChunk + rng.Int64()>>rng.IntN(40)
		if size < 0 {
			size = 1<<63 - 1
		}
		sb.Members = append(sb.Members, Member{UUID: randomUUID(rng), Size: size})
	}
	sb.Slot = rng.IntN(n)
	sb.DataSize = DataSize(sb.Own().Size, sb.Chunk)
	return sb
}
