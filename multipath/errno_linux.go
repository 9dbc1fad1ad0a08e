// SPDX-License-Identifier: Apache-2.0

package multipath

import "syscall"

// ownErrnos say something about the request or the drive, and nothing about the path:
// those for which blk_path_error of Linux (include/linux/blk_types.h) says no, and EINVAL
// and EAGAIN, which come before there is any I/O.
var ownErrnos = []error{
	syscall.EOPNOTSUPP, syscall.ENOSPC, syscall.EREMOTEIO, syscall.EBADE, syscall.ENODATA, syscall.EILSEQ,
	syscall.EINVAL, syscall.EAGAIN,
}
