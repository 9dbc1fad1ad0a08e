// SPDX-License-Identifier: Apache-2.0

// Package faultdev has two devices for tests and drills; neither belongs in
// production.
//
// Device wraps another one and makes I/O fail, come short or come late, by
// rules. Memory is a device whose bytes lie in RAM: with it a stack can be run
// without a kernel below, in any order of completion that a seed brings about.
//
// Both obey the contract of poller.Device and poller.Queue to the letter, as
// root of a tree and below another device. What they do depends on their rules,
// seeds and the order of calls alone, not on time, unless a rule says Delay.
package faultdev
