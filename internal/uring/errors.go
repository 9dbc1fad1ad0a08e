// SPDX-License-Identifier: Apache-2.0

package uring

import "errors"

var (
	// ErrForbidden says that the host does not let this process use io_uring.
	ErrForbidden = errors.New("io_uring is not allowed here (a container's seccomp profile or kernel.io_uring_disabled): " +
		"allow io_uring_setup, io_uring_enter and io_uring_register in the profile, or set kernel.io_uring_disabled=0")
	// ErrMemlock says that the kernel had no locked memory left for a ring or
	// its buffers.
	ErrMemlock = errors.New("no locked memory left for io_uring: raise RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK= in a systemd unit) or grant CAP_IPC_LOCK")
)
