// SPDX-License-Identifier: Apache-2.0

// Package experiments repeats the three published experiments that pollux exists for
// and reports on them. It has two halves that meet in files:
//
//	Measure ──► Boot, one file per boot of a machine ──► Collect ──► Result
//	 in the lab, or on a host with drives                              │
//	                                    N.json, N.md, N.svg  ◄─────────┘
//
// Measure runs pollux and its rivals as programs and counts interrupts around them.
// Everything else is arithmetic on what it wrote, and repeats without drives. No
// sentence of a report states a result that was not computed from the data beside it.
package experiments
