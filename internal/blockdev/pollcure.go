// SPDX-License-Identifier: Apache-2.0

package blockdev

// PollCure returns, in one line, why polled I/O does not work on the device and
// what would make it work; "" when PollQueues is set. The line does not begin
// with the name of the device: the caller knows what to call it.
func PollCure(in Info) string {
	switch {
	case in.PollQueues:
		return ""
	case in.Block && !in.PollKnown:
		return "queue/io_poll cannot be read, so it is unknown whether there are poll queues; mount sysfs on /sys"
	case in.Below != "":
		return "it stands on " + in.Below + ": " + pollCure(in.BelowDriver, in.Transport)
	default:
		return pollCure(in.Driver, in.Transport)
	}
}

// pollCure knows the drivers whose map of hardware queues can hold poll queues
// (their module parameters; nr_poll_queues of nvme-connect(1) for fabrics).
func pollCure(d Driver, transport string) string {
	switch d {
	case DriverFile:
		return "a file has no poll queues; give a block device that has them, or allow unpolled I/O"
	case DriverLoop:
		return "a loop device has no poll queues; give a block device that has them, or allow unpolled I/O"
	case DriverNVMe:
		if transport != "" && transport != "pcie" {
			return "connected over " + transport + " without poll queues; reconnect with nvme connect --nr-poll-queues=2 (tcp and rdma have them)"
		}
		return "nvme was loaded without poll queues; reload it (modprobe -r nvme; modprobe nvme poll_queues=2), or boot with nvme.poll_queues=2 on the kernel command line"
	case DriverNull:
		return "null_blk was loaded without poll queues; reload it (modprobe -r null_blk; modprobe null_blk poll_queues=1)"
	case DriverVirtio:
		return "virtio_blk was loaded without poll queues, or the host offers too few queues; boot with virtio_blk.poll_queues=1 on the kernel command line and give the drive more queues on the host"
	case DriverDM:
		return "this device mapper target cannot poll (linear and stripe can, over drives that can); give the drives below it, or allow unpolled I/O"
	case DriverMD:
		return "md cannot poll; stop the array and give pollux its drives, or allow unpolled I/O"
	default:
		name := string(d)
		if name == "" {
			name = "its driver"
		}
		return name + " offers no poll queues here; give an NVMe drive that has them, or allow unpolled I/O"
	}
}
