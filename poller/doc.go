// SPDX-License-Identifier: Apache-2.0

// Package poller is the contract between those who do I/O and the devices that
// do it, and the leaf among the devices: one disk.
//
// A Device makes Queues; a Queue takes Requests in Submit and gives them back,
// each exactly once, in Poll or Wait. Polling is one of the operations of every
// queue, of a disk as of a stack of volumes over it, as bio_poll_fn is of the
// kernel's request queues.
//
// An I/O whose request says HiPri goes through a ring in IOPOLL mode: the drive
// raises no interrupt, and Poll asks it. That ring belongs to its disk and queue,
// save for a request that is the only one out (see Tree). Any other I/O goes
// through one plain ring that all leaves below the same root share, so that
// sleeping for any number of drives is one system call. What is shared below one
// root is its Tree.
package poller
