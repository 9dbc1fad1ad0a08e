// SPDX-License-Identifier: Apache-2.0

package uring

import (
	"fmt"
	"testing"
)

// BenchmarkNop is what the ring itself costs: entries that do nothing.
func BenchmarkNop(b *testing.B) {
	for _, batch := range []uint32{1, 32} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			r := newRing(b, Config{Entries: batch})
			b.ReportAllocs()
			for b.Loop() {
				for i := range batch {
					*r.SQE() = SQE{Opcode: OpNop, UserData: uint64(i)}
				}
				if err := r.Enter(); err != nil {
					b.Fatal(err)
				}
				ready := r.Ready()
				for i := range ready {
					if cqe := r.CQE(i); cqe.Res != 0 {
						b.Fatal(cqe.Res)
					}
				}
				r.Advance(ready)
				if ready != batch {
					b.Fatalf("%d completions of %d", ready, batch)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batch), "ns/NOP")
		})
	}
}
