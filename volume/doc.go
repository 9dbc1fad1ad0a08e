// SPDX-License-Identifier: Apache-2.0

// Package volume is RAID-0 over several devices: a stacked poller.Device.
//
// RAID-0 has no redundancy. When one member is lost, the volume is lost.
//
// A queue of a volume is a queue on every member. Submit cuts each request into
// children, one for each chunk it touches, and hands them to the members in one
// call each; Poll walks the members that have something out, polls each, counts
// the parents' children down and gives back the parents that reach zero.
package volume
