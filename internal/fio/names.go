// SPDX-License-Identifier: Apache-2.0

package fio

import "strings"

// known are the names of fio 3.33's options, its io_uring, libaio, psync and pvsync2
// engines' included, in canonical spelling (fio --cmdhelp=all, fio --enghelp=ENGINE).
// They are for telling what pollux does not support from what nobody knows.
var known = func() map[string]bool {
	names := make(map[string]bool)
	for name := range strings.FieldsSeq(names333) {
		names[Canonical(name)] = true
	}
	return names
}()

const names333 = `
	allow-file-create allow-mounted-write allrandrepeat atomic block-error-percentiles
	buffer-compress-percentage buffer-pattern buffered cgroup clat-percentiles clocksource
	cmd-type cmdprio cmdprio-bssplit cmdprio-class cmdprio-percentage continue-on-error cpumask
	cpus-allowed create-fsync create-on-open create-only create-serialize dedupe-global
	dedupe-percentage description direct directory disk-util end-fsync error-dump exec-postrun
	exec-prerun exit-what exitall exitall-on-error fadvise-hint fallocate fdatasync file-append
	filename filename-format filesize fill-device fixedbufs flow-id force-async fsync
	fsync-on-close gid group-reporting gtod-cpu gtod-reduce hipri hipri-percentage hugepage-size
	ignore-zone-limits invalidate io-size io-submit-mode iodepth ioengine ioscheduler
	job-max-open-zones kb-base lat-percentiles latency-percentile latency-run latency-target
	latency-window lockmem log-alternate-epoch log-alternate-epoch-clock-id log-avg-msec
	log-compression log-entries log-hist-coarseness log-hist-msec log-max-value log-offset
	log-prio log-store-compressed log-unix-epoch loops max-latency max-open-zones mem
	merge-blktrace-file merge-blktrace-iters merge-blktrace-scalars name new-group nice
	nonvectored nowait nrfiles numa-cpu-nodes numa-mem-policy number-ios numjobs offset
	offset-align opendir openfiles overwrite per-job-logs percentage-random percentile-list
	pre-read prio prioclass profile ramp-time random-distribution random-generator rate rate-iops
	read-beyond-wp read-iolog refill-buffers registerfiles runtime rw rw-sequencer rwmixread
	rwmixwrite scramble-buffers significant-figures size slat-percentiles sqthread-poll
	sqthread-poll-cpu startdelay stats steadystate stonewall sync sync-file-range thinktime thread
	time-based uid uncached unified-rw-reporting unique-filename unit-base unlink unlink-each-loop
	userspace-reap verify verify-only wait-for write-barrier write-bw-log write-hint
	write-hist-log write-iolog write-iops-log write-lat-log zero-buffers zone-reset-frequency
	zone-reset-threshold zonecapacity zonemode zonerange zonesize zoneskip
`

// Knows says that fio has an option of this name, pollux or not.
func Knows(name string) bool { return known[Canonical(name)] }
