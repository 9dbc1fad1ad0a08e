// SPDX-License-Identifier: Apache-2.0

// Package superblock is what a volume leaves on its members so that they are found
// again: the block itself, where its two copies lie, what may be concluded from
// the copies that a crash or a stranger has left, and the order in which they are
// written so that a cut at any write or sync leaves either no volume or a whole
// one.
//
// A member, in bytes; "end" is the start of the last full MiB of the size that the
// member had when the volume was created:
//
//	0        64 KiB     1 MiB                        end      end + 64 KiB
//	|        | copy A   | data, in whole chunks ...  |        | copy B
//
// The package does no I/O but through Device and knows no drives: tests run the
// protocols on devices that lose, tear and keep writes in every combination.
package superblock
