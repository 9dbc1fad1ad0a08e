// SPDX-License-Identifier: Apache-2.0

//go:build !nostats

package poller

// recording says that I/O is counted. The build tag nostats turns that off, to measure
// what it costs; it is for nothing else.
const recording = true
