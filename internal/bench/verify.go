// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"

	"pollux/poller"
)

// Verified is what Verify found.
type Verified struct {
	// Bytes were read back and compared.
	Bytes int64  `json:"bytes"`
	Seed  uint64 `json:"seed"`
	// WrongBlocks is how many blocks of the job's block size differ.
	WrongBlocks uint64 `json:"wrong_blocks"`
	// First is the difference at the lowest offset.
	First *Mismatch `json:"first_mismatch,omitempty"`
}

// Mismatch is a wrong byte. It is an error.
type Mismatch struct {
	// Offset is that of the byte on the device.
	Offset int64 `json:"offset"`
	// Member and MemberOffset are where it lies on a drive; -1 if unknown.
	Member       int   `json:"member"`
	MemberOffset int64 `json:"member_offset"`
	Expected     byte  `json:"expected"`
	Found        byte  `json:"found"`
	// BelongsAt is where on the device the 8 bytes found belong; -1 if nowhere.
	BelongsAt int64 `json:"belongs_at"`
}

// Error implements the error interface.
func (m *Mismatch) Error() string {
	s := fmt.Sprintf("wrong data at offset %d", m.Offset)
	if m.Member >= 0 {
		s += fmt.Sprintf(" (member %d at %d)", m.Member, m.MemberOffset)
	}
	s += fmt.Sprintf(": expected byte 0x%02x, found 0x%02x", m.Expected, m.Found)
	if m.BelongsAt >= 0 {
		s += fmt.Sprintf("; what is there belongs at offset %d", m.BelongsAt)
	}
	return s
}

// Verify writes a pattern to the job's part of dev, every block once,
// then reads all of it back and compares every byte. A job whose RW only reads
// compares with what an earlier Verify of the same seed wrote. Random workloads
// go through the blocks in a scattered order.
//
// results has one entry for each pass. The error is a *Mismatch when data
// differ; all is read before it is returned.
func Verify(ctx context.Context, dev poller.Device, job Job) (_ Verified, results []Result, _ error) {
	found := Verified{Seed: job.Seed}
	passes := []RW{Read}
	if job.RW.Writes() {
		passes = []RW{Write, Read}
	}
	for _, rw := range passes {
		result, err := verifyPass(ctx, dev, job, rw, &found)
		results = append(results, result)
		if err != nil || result.Interrupted {
			return found, results, err
		}
	}
	if found.First != nil {
		return found, results, found.First
	}
	return found, results, nil
}

// Fill writes the pattern of Verify to the job's part of dev, every block once.
func Fill(ctx context.Context, dev poller.Device, job Job) (Result, error) {
	return verifyPass(ctx, dev, job, Write, &Verified{})
}

func verifyPass(ctx context.Context, dev poller.Device, job Job, rw RW, found *Verified) (Result, error) {
	pass := job
	pass.RW, pass.Runtime, pass.RampTime, pass.IOSize = rw, 0, 0, 0
	pass, err := pass.prepare(dev.Limits())
	switch {
	case err != nil:
	case pass.Size%8 != 0 || pass.BS%8 != 0:
		err = fmt.Errorf("%w: verify needs a bs and a size that 8 divides", ErrJob)
	case pass.BSSplit[poller.Read] != nil || pass.BSSplit[poller.Write] != nil || pass.NumJobs > 1:
		err = fmt.Errorf("%w: verify takes neither bssplit nor numjobs", ErrJob)
	}
	if err != nil {
		return Result{Job: pass}, err
	}
	return runAlone(ctx, dev, pass, newVerifier(pass, job.RW.Random(), found).pass)
}
