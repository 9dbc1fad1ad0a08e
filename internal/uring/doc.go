// SPDX-License-Identifier: Apache-2.0

// Package uring is a thin io_uring: set a ring up, fill submission entries,
// enter the kernel, read completion entries. It knows nothing of disks.
//
// A Ring belongs to one goroutine at a time, which may move between threads;
// that is why the flags which tie a ring to a thread (SINGLE_ISSUER,
// DEFER_TASKRUN, a registered ring descriptor) are not used.
//
// This package and internal/blockdev are the only ones that use unsafe and raw
// system calls. Built with -tags giouring the same Ring stands on the package
// github.com/pawelgaczynski/giouring; Backend and Missing tell which one it is
// and what that one cannot do. Such a program links with
// -ldflags=-checklinkname=0 alone, and each of its enters passes through the Go
// scheduler, where ours does so only to sleep. Where there is no Linux the
// package compiles, and New fails.
package uring
