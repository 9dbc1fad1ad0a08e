// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// seed returns that of POLLUX_TEST_SEED, or a new one, and prints it.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if env := os.Getenv("POLLUX_TEST_SEED"); env != "" {
		var err error
		if s, err = strconv.ParseUint(env, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("POLLUX_TEST_SEED=%d", s)
	return s
}

// directFile returns a descriptor of a new file of that size, opened for
// direct I/O.
func directFile(t *testing.T, size int64) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_DIRECT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatalf("open %s with O_DIRECT: %v (set TMPDIR to a filesystem that has it)", path, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	return fd
}

// Random I/O through the ring, with and without fixed buffers and files,
// against a plain byte slice; then against what pread finds in the file.
func TestAgainstModel(t *testing.T) {
	const (
		block, longest = 4096, 64 << 10
		lanes          = 8 // at a time, each in its part of the file and of the memory
		laneSize       = 256 << 10
		rounds         = 100
	)
	rng := rand.New(rand.NewPCG(seed(t), 1))
	random := func(b []byte) {
		for ; len(b) != 0; b = b[8:] {
			binary.LittleEndian.PutUint64(b, rng.Uint64())
		}
	}
	fd := directFile(t, lanes*laneSize)
	m := newMemory(t, lanes*longest)
	r := newRing(t, Config{Entries: lanes})
	if err := r.RegisterFiles([]int32{-1, int32(fd)}); err != nil { // -1 leaves a slot empty
		t.Fatal(err)
	}
	if err := r.RegisterMemory(m); err != nil {
		t.Fatal(err)
	}
	model := make([]byte, lanes*laneSize)

	type sent struct {
		sqe        SQE
		buf, model []byte
	}
	for round := range rounds {
		var out [lanes]sent
		for lane := range out {
			length := block * (1 + rng.IntN(longest/block))
			pos := laneSize*lane + block*rng.IntN((laneSize-length)/block+1)
			s := &out[lane]
			s.buf, s.model = m.Bytes()[longest*lane:][:length], model[pos:][:length]
			s.sqe = SQE{FD: int32(fd), Off: uint64(pos), Addr: mustAddr(t, m, s.buf), Len: uint32(length), UserData: uint64(round*lanes + lane)}
			if rng.IntN(2) == 0 {
				s.sqe.Flags, s.sqe.FD = FixedFile, 1
			}
			switch op := rng.IntN(10); {
			case op == 0:
				s.sqe = SQE{Opcode: OpFsync, Flags: s.sqe.Flags, FD: s.sqe.FD, UserData: s.sqe.UserData}
			case op < 6:
				s.sqe.Opcode = OpWrite
				random(s.buf)
				copy(s.model, s.buf)
				if rng.IntN(20) == 0 {
					s.sqe.OpFlags = RWDsync
				}
			default:
				s.sqe.Opcode = OpRead
				clear(s.buf)
			}
			if s.sqe.Opcode != OpFsync && rng.IntN(2) == 0 {
				s.sqe.Opcode -= OpRead - OpReadFixed
			}
			push(t, r, s.sqe)
		}
		for _, cqe := range await(t, r, lanes) {
			s := &out[cqe.UserData%lanes]
			if s.buf == nil || cqe.UserData != s.sqe.UserData || cqe.Res != int32(s.sqe.Len) {
				t.Fatalf("round %d: completion %+v of %+v", round, cqe, s.sqe)
			}
			if s.sqe.Len != 0 && !bytes.Equal(s.buf, s.model) {
				t.Fatalf("round %d: %+v differs from the model", round, s.sqe)
			}
			s.buf = nil // a second completion is found
		}
	}
	got := newMemory(t, lanes*laneSize).Bytes()
	if n, err := unix.Pread(fd, got, 0); err != nil || n != len(got) {
		t.Fatalf("pread: %d, %v", n, err)
	}
	if !bytes.Equal(got, model) {
		t.Fatal("the file differs from the model")
	}
}

// What pwrite wrote is what the ring reads.
func TestReadAfterPwrite(t *testing.T) {
	const size = 128 << 10
	fd := directFile(t, size)
	m := newMemory(t, 2*size)
	want, got := m.Bytes()[:size], m.Bytes()[size:]
	rng := rand.NewChaCha8([32]byte{byte(seed(t))})
	_, _ = rng.Read(want)
	if n, err := unix.Pwrite(fd, want, 0); n != size || err != nil {
		t.Fatalf("pwrite: %d, %v", n, err)
	}
	r := newRing(t, Config{Entries: 1})
	push(t, r, SQE{Opcode: OpRead, FD: int32(fd), Addr: mustAddr(t, m, got), Len: size})
	if cqe := await(t, r, 1)[0]; cqe.Res != size {
		t.Fatalf("result %d", cqe.Res)
	}
	if !bytes.Equal(got, want) {
		t.Fatal("the ring read something else than pwrite wrote")
	}
}

// Nothing is registered, and fixed I/O is an error of its completion.
func TestFixedWithoutRegistered(t *testing.T) {
	fd := directFile(t, 4096)
	m := newMemory(t, 4096)
	r := newRing(t, Config{Entries: 2})
	push(t, r, SQE{Opcode: OpReadFixed, FD: int32(fd), Addr: mustAddr(t, m, m.Bytes()), Len: 4096, UserData: 0})
	push(t, r, SQE{Opcode: OpRead, Flags: FixedFile, Addr: mustAddr(t, m, m.Bytes()), Len: 4096, UserData: 1})
	for _, cqe := range await(t, r, 2) {
		want := -int32(unix.EFAULT)
		if cqe.UserData == 1 {
			want = -int32(unix.EBADF)
		}
		if cqe.Res != want {
			t.Errorf("entry %d: result %d, want %d", cqe.UserData, cqe.Res, want)
		}
	}
}

// A file that takes another's place is the one that I/O by its index goes to, and the
// other is let go of.
func TestUpdateFile(t *testing.T) {
	for _, iopoll := range []bool{false, true} {
		r, m := newRing(t, Config{Entries: 4, IOPoll: iopoll}), newMemory(t, 4096)
		var fds [2]int32
		for i := range fds {
			fds[i] = int32(directFile(t, 4096))
			copy(m.Bytes(), []byte{byte('a' + i)})
			if _, err := unix.Pwrite(int(fds[i]), m.Bytes()[:4096], 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.RegisterFiles([]int32{-1, fds[0]}); err != nil {
			t.Fatal(err)
		}
		if err := r.UpdateFile(1, fds[1]); err != nil {
			t.Fatal(err)
		}
		for _, index := range []int{-1, 2} {
			if err := r.UpdateFile(index, fds[1]); err == nil {
				t.Errorf("file %d of 2 was replaced", index)
			}
		}
		if err := r.UpdateFile(0, 1<<30); err == nil {
			t.Error("a descriptor that is none took a place")
		}
		if iopoll {
			continue // what cannot be polled cannot be read here
		}
		push(t, r, SQE{Opcode: OpRead, Flags: FixedFile, FD: 1, Addr: mustAddr(t, m, m.Bytes()), Len: 4096})
		if cqe := await(t, r, 1)[0]; cqe.Res != 4096 || m.Bytes()[0] != 'b' {
			t.Errorf("result %d, %q; want what the second file holds", cqe.Res, m.Bytes()[0])
		}
	}
}

func TestRegisterFilesRefused(t *testing.T) {
	r := newRing(t, Config{})
	if err := r.RegisterFiles(nil); err == nil {
		t.Error("no files were registered without an error")
	}
	if err := r.RegisterFiles([]int32{1 << 30}); err == nil {
		t.Error("a descriptor that is none was registered")
	}
}
