// SPDX-License-Identifier: Apache-2.0

// Package bench is the load generator of pollux. It speaks fio's vocabulary and
// measures any poller.Device the way its users drive it: through queues that each
// belong to one goroutine.
//
// Run measures one Job and RunJobs several at once, Sweep the depths of the published
// table with polling off and on, and Verify writes a pattern and reads it back. What
// they return is values; WriteJSON and WriteText of a Report put them into words.
//
// The generator keeps no latency of its own. What it reports is the difference
// of two Stats of a queue, the same figures that the device sums up and metrics show,
// and it checks that they count what it counted itself.
package bench
