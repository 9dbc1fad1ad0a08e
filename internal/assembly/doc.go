// SPDX-License-Identifier: Apache-2.0

// Package assembly finds volumes on real devices and makes and unmakes them: it
// scans, opens and locks what internal/superblock has judged, and refuses whatever
// could cost somebody data. Looking opens devices read-only and locks nothing.
//
// Nothing is written before every check has passed, on the very descriptors that
// are written through.
package assembly
