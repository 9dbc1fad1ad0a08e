// SPDX-License-Identifier: Apache-2.0

// Package volume is RAID-0 over several devices: a stacked poller.Device.
//
// RAID-0 has no redundancy. When one member is lost, the volume is lost.
//
// A queue of a volume is a queue on every member. Submit hands a request within
// one chunk down as it came, its offset changed to the member's, and cuts any
// other into a child for each chunk it touches; each member gets what is its own
// in one call. Poll walks the members that have something out, polls each, and
// gives back what finished: whole requests, and parents whose last child it was.
package volume
