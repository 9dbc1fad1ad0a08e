// SPDX-License-Identifier: Apache-2.0

// Package metrics shows the statistics of devices to Prometheus. Nothing below knows of
// it: it reads the Stats of any device, once a scrape, and costs no I/O anything.
package metrics
