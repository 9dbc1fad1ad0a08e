// SPDX-License-Identifier: Apache-2.0

package superblock

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/google/uuid"

	"pollux/stripe"
)

// The format on disk, version 1.0: little-endian, 4096 bytes, of which those not
// named are zero when written and ignored when read. docs/superblock.md has the
// table for people.
const (
	atMagic       = 0 // 8 bytes
	atMajor       = 8 // uint16
	atMinor       = 10
	atChecksum    = 12 // uint32, CRC32C of all 4096 bytes with this field zero
	atFeatures    = 16 // uint64, bits that a reader must know
	atSequence    = 24 // uint64
	atState       = 32 // uint32
	atLayout      = 36 // uint32
	atUUID        = 40 // 16 bytes
	atName        = 56 // 64 bytes, padded with zeros
	atChunk       = 120
	atMemberCount = 128 // uint32
	atSlot        = 132 // uint32
	atOwnUUID     = 136 // 16 bytes
	atDataOffset  = 152
	atDataSize    = 160
	atBlockSize   = 168 // uint32
	atCreated     = 176 // int64, nanoseconds since 1970
	atTable       = 512 // an entry of 24 bytes for each member: UUID, size
	entryLen      = 24

	major = 1
	minor = 0
)

// The rest of the first sector and what follows the table is room for what later
// versions need.
const _ = uint(BlockSize - atTable - stripe.MaxMembers*entryLen)

var magic = [8]byte{'P', 'o', 'L', 'l', 'U', 'x', 0xd5, '\n'}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns what stands, or should stand, at atChecksum of b.
func checksum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:atChecksum])
	sum = crc32.Update(sum, castagnoli, make([]byte, 4))
	return crc32.Update(sum, castagnoli, b[atChecksum+4:])
}

// Encode returns the 4096 bytes.
func (sb *Superblock) Encode() []byte {
	b := make([]byte, BlockSize)
	le := binary.LittleEndian
	copy(b[atMagic:], magic[:])
	le.PutUint16(b[atMajor:], major)
	le.PutUint16(b[atMinor:], minor)
	le.PutUint64(b[atSequence:], sb.Sequence)
	le.PutUint32(b[atState:], uint32(sb.State))
	le.PutUint32(b[atLayout:], sb.Layout)
	copy(b[atUUID:], sb.UUID[:])
	copy(b[atName:atName+maxName], sb.Name)
	le.PutUint64(b[atChunk:], uint64(sb.Chunk))
	le.PutUint32(b[atMemberCount:], uint32(len(sb.Members)))
	le.PutUint32(b[atSlot:], uint32(sb.Slot))
	own := sb.Own()
	copy(b[atOwnUUID:], own.UUID[:])
	le.PutUint64(b[atDataOffset:], uint64(sb.DataOffset))
	le.PutUint64(b[atDataSize:], uint64(sb.DataSize))
	le.PutUint32(b[atBlockSize:], uint32(sb.BlockSize))
	le.PutUint64(b[atCreated:], uint64(sb.Created.UnixNano()))
	for i, m := range sb.Members {
		entry := b[atTable+i*entryLen:]
		copy(entry, m.UUID[:])
		le.PutUint64(entry[16:], uint64(m.Size))
	}
	le.PutUint32(b[atChecksum:], checksum(b))
	return b
}

// Decode reads a superblock from 4096 bytes, which may be anything. The error
// answers to ErrNone, ErrDamaged, ErrUnsupported or ErrInvalid.
func Decode(b []byte) (*Superblock, error) {
	if len(b) != BlockSize || !bytes.Equal(b[:len(magic)], magic[:]) {
		return nil, ErrNone
	}
	le := binary.LittleEndian
	if le.Uint32(b[atChecksum:]) != checksum(b) {
		return nil, ErrDamaged
	}
	if v := le.Uint16(b[atMajor:]); v != major {
		return nil, fmt.Errorf("%w: version %d.%d, this one knows %d", ErrUnsupported, v, le.Uint16(b[atMinor:]), major)
	}
	if bits := le.Uint64(b[atFeatures:]); bits != 0 {
		return nil, fmt.Errorf("%w: it uses features %#x, of which this one knows none", ErrUnsupported, bits)
	}
	name, rest, _ := bytes.Cut(b[atName:atName+maxName+1], []byte{0})
	if len(bytes.Trim(rest, "\x00")) != 0 {
		return nil, fmt.Errorf("%w: something stands behind the end of the name", ErrInvalid)
	}
	n := le.Uint32(b[atMemberCount:])
	if n > stripe.MaxMembers {
		return nil, fmt.Errorf("%w: %d members", ErrInvalid, n)
	}
	sb := &Superblock{
		Sequence:   le.Uint64(b[atSequence:]),
		State:      State(le.Uint32(b[atState:])),
		UUID:       uuid.UUID(b[atUUID : atUUID+16]),
		Name:       string(name),
		Layout:     le.Uint32(b[atLayout:]),
		Chunk:      int64(le.Uint64(b[atChunk:])),
		Created:    time.Unix(0, int64(le.Uint64(b[atCreated:]))).UTC(),
		Members:    make([]Member, n),
		Slot:       int(le.Uint32(b[atSlot:])),
		DataOffset: int64(le.Uint64(b[atDataOffset:])),
		DataSize:   int64(le.Uint64(b[atDataSize:])),
		BlockSize:  int64(le.Uint32(b[atBlockSize:])),
	}
	for i := range sb.Members {
		entry := b[atTable+i*entryLen:]
		sb.Members[i] = Member{UUID: uuid.UUID(entry[:16]), Size: int64(le.Uint64(entry[16:]))}
	}
	if err := sb.check(); err != nil {
		return nil, err
	}
	if own := uuid.UUID(b[atOwnUUID : atOwnUUID+16]); own != sb.Own().UUID {
		return nil, fmt.Errorf("%w: the member calls itself %s, its table %s", ErrInvalid, own, sb.Own().UUID)
	}
	return sb, nil
}
