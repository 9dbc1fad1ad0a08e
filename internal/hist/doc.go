// SPDX-License-Identifier: Apache-2.0

// Package hist is the latency histogram of pollux, for statistics, metrics and
// reports alike.
//
// Buckets are log-linear: every power of two of nanoseconds is cut into 16
// buckets of equal width. Upper bounds are inclusive and every power of two is
// one, so the cumulative counts that a classic Prometheus histogram asks for at
// powers of two are exact. Up to 32 ns a bucket is one nanosecond wide.
//
// A Recorder has one writer, which counts in memory of its own and publishes
// once per batch what it touched; any goroutine may read what was published.
// An atomic addition per value would cost several times what a plain one does.
// A Histogram is a plain value made from that: it is added, subtracted and asked.
//
// There is no count beside the buckets. It is their sum, and cannot disagree.
package hist
