// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// The labels of what is told of a volume, of its members, and of the paths to one.
var (
	ofVolume = []string{"volume"}
	ofMember = []string{"volume", "member", "device"}
)

// metric is a line of the table in docs/metrics.md.
type metric struct {
	name, kind, help string
	labels           []string
	desc             *prometheus.Desc
}

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// table are all metrics, in the order of the documentation.
var table []*metric

func define(kind, name, help string, labels ...[]string) *metric {
	m := &metric{name: name, kind: kind, help: help, labels: slices.Concat(labels...)}
	m.desc = prometheus.NewDesc(name, help, m.labels, nil)
	table = append(table, m)
	return m
}

var (
	opMode  = []string{"op", "mode"}
	opClass = []string{"op", "class"}
	byOp    = []string{"op"}

	volumeLatency = define(histogram, "pollux_volume_io_duration_seconds",
		"Time from submission to the poll that found an I/O of the volume finished, of those without error.", ofVolume, opMode)
	memberLatency = define(histogram, "pollux_member_io_duration_seconds",
		"The same of what went to a member; an I/O that spans chunks is several here.", ofMember, opMode)
	pathLatency = define(histogram, "pollux_path_io_duration_seconds",
		"The same of what went over one of several paths to a member.", ofMember, opMode)

	volumeBytes = define(counter, "pollux_volume_io_bytes_total", "Bytes read or written without error.", ofVolume, byOp)
	memberBytes = define(counter, "pollux_member_io_bytes_total", "Bytes read from or written to a member without error.", ofMember, byOp)
	pathBytes   = define(counter, "pollux_path_io_bytes_total", "Bytes that went over a path without error.", ofMember, byOp)

	volumeErrors = define(counter, "pollux_volume_io_errors_total",
		"I/Os of the volume that failed, by class: gone, medium, timeout, transport, again, request, other.", ofVolume, opClass)
	memberErrors = define(counter, "pollux_member_io_errors_total", "I/Os of a member that failed, by the same classes.", ofMember, opClass)

	volumeInFlight = define(gauge, "pollux_volume_in_flight", "I/Os that were out when the queues were last polled.", ofVolume)
	memberInFlight = define(gauge, "pollux_member_in_flight", "The same on a member.", ofMember)
	pathInFlight   = define(gauge, "pollux_path_in_flight", "The same on a path.", ofMember)

	volumeDepth = define(gauge, "pollux_volume_queue_depth", "I/Os that all open queues together were granted.", ofVolume)
	memberDepth = define(gauge, "pollux_member_queue_depth", "The same of a member, whose drive has a budget.", ofMember)

	volumePolls      = define(counter, "pollux_volume_polls_total", "Times that the queues were polled or woken.", ofVolume)
	volumeEmptyPolls = define(counter, "pollux_volume_empty_polls_total", "Of these, those that found nothing finished.", ofVolume)
	memberPolls      = define(counter, "pollux_member_polls_total", "Times that a member was polled.", ofMember)
	memberEmptyPolls = define(counter, "pollux_member_empty_polls_total", "Of these, those that found nothing finished.", ofMember)

	memberFallbacks = define(counter, "pollux_member_fallbacks_total",
		"I/Os that were to be polled and were sent plain: flush (no ring polls for one), not-pollable (the drive was allowed to be plain).", ofMember, []string{"reason"})
	memberRetries = define(counter, "pollux_member_retries_total", "I/Os submitted again after EAGAIN.", ofMember)
	volumeSplits  = define(counter, "pollux_volume_split_requests_total", "I/Os that span chunks and went to members in several parts.", ofVolume)
	memberSplits  = define(counter, "pollux_member_split_requests_total", "I/Os that were cut for what the drive takes in one piece.", ofMember)

	stragglerTime = define(counter, "pollux_member_straggler_seconds_total",
		"Time between the first and the last part of I/Os that have several, of those whose last part was this member's.", ofMember)
	stragglers = define(counter, "pollux_member_straggler_requests_total", "How many these were.", ofMember)

	pathUp      = define(gauge, "pollux_path_up", "1 while I/O may go over the path.", ofMember)
	pathErrors  = define(counter, "pollux_path_errors_total", "I/Os that failed in a way that may be the path's fault.", ofMember)
	pathRetries = define(counter, "pollux_path_retries_total", "Of these, those that were sent again over another path.", ofMember)
	pathChanges = define(counter, "pollux_path_state_changes_total", "Times that the path came or went.", ofMember)

	memberUp = define(gauge, "pollux_member_up", "1 while the drive is there.", ofMember)
	volumeUp = define(gauge, "pollux_volume_up", "1 until a member is gone and the volume broken, 0 from then on until it is opened again.", ofVolume)

	workers = define(gauge, "pollux_worker_threads",
		"io_uring worker threads of the process. Polled I/O that the kernel cannot keep in its queues goes through them, slowly.")
	buildInfo = define(gauge, "pollux_build_info", "1; what the program was built from.",
		[]string{"version", "goversion", "ring_backend"})
	volumeInfo = define(gauge, "pollux_volume_info", "1; what the volume is. ring_flags are those of io_uring_setup(2), fixed_buffers whether all queues have registered memory.",
		ofVolume, []string{"uuid", "chunk", "members", "ring_flags", "fixed_buffers"})
)
