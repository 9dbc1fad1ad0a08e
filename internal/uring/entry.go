// SPDX-License-Identifier: Apache-2.0

package uring

// Opcodes of io_uring_enter(2) that pollux uses.
const (
	OpNop        = 0
	OpFsync      = 3
	OpReadFixed  = 4
	OpWriteFixed = 5
	OpPollAdd    = 6
	OpRead       = 22
	OpWrite      = 23
)

// FixedFile in SQE.Flags says that FD is an index into the registered files.
const FixedFile = 1 << 0

// Bits of SQE.OpFlags for reads and writes, from preadv2(2).
const (
	RWDsync  = 0x2
	RWNowait = 0x8
)

// FsyncDatasync in SQE.OpFlags makes OpFsync a data sync.
const FsyncDatasync = 1 << 0

// PollIn in SQE.OpFlags makes OpPollAdd complete, once, when the descriptor can be
// read. The kernel takes the two halves of the word the other way round on a
// big-endian machine, of which pollux supports none.
const PollIn = 0x1

// SQE is one submission entry, struct io_uring_sqe of the kernel. It lives in
// memory shared with the kernel and keeps what the previous user of the entry
// left there: set every field up to BufIndex. Those behind it are zero in a new
// ring, and nobody here sets them.
type SQE struct {
	Opcode   uint8
	Flags    uint8
	IOPrio   uint16
	FD       int32
	Off      uint64
	Addr     uint64
	Len      uint32
	OpFlags  uint32
	UserData uint64
	BufIndex uint16

	Personality uint16
	SpliceFD    int32
	Addr3       uint64
	_           uint64
}

// CQE is one completion entry, struct io_uring_cqe of the kernel.
type CQE struct {
	UserData uint64
	// Res is the result of the operation: bytes moved, or a negative errno.
	Res   int32
	Flags uint32
}
