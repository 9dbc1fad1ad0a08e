// SPDX-License-Identifier: Apache-2.0

// Package multipath makes one device of several paths to the same drive: a stacked
// device like a volume, whose poll function walks those of its paths. It is for drives
// whose paths the kernel does not join itself (nvme_core.multipath=N). Where it does,
// its multipath head is an ordinary drive that polls.
//
// A request goes down to one path as it came. Where the path fails and not the drive, it
// is sent again over another, if that can do no harm: a read always, a write or flush
// only where the first copy is sure to be dead. The rules are in retry.go.
package multipath
