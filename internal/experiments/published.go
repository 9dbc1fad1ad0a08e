// SPDX-License-Identifier: Apache-2.0

package experiments

// PublishedSweep is a row of the second experiment's table: RAID-0 over two Optane
// P4800X drives, with a prototype that polled through the kernel's stacked devices.
// Latencies are in microseconds.
type PublishedSweep struct {
	QD    int     `json:"qd"`
	OffUS float64 `json:"off_latency_us"`
	Off   float64 `json:"off_iops"`
	OnUS  float64 `json:"on_latency_us"`
	On    float64 `json:"on_iops"`
}

var publishedSweep = []PublishedSweep{
	{1, 12.03, 78800, 9.00, 108000},
	{2, 13.27, 144000, 9.07, 214000},
	{4, 15.83, 245000, 12.00, 327000},
	{8, 31.14, 253000, 21.43, 369000},
	{16, 63.03, 252000, 43.18, 369000},
	{32, 128.89, 247000, 85.75, 372000},
	{64, 259.10, 246000, 169.87, 376000},
	{128, 517.27, 247000, 346.15, 370000},
}

// PublishedPath is a cell of the third experiment's table: remote Optane drives, latencies
// in microseconds.
type PublishedPath struct {
	What    string  `json:"what"`
	NumJobs int     `json:"numjobs"`
	IODepth int     `json:"iodepth"`
	Batch   int     `json:"batch"`
	KIOPS   float64 `json:"kiops"`
	MeanUS  float64 `json:"mean_us"`
	StdDev  float64 `json:"stddev_us"`
	P9999US float64 `json:"p9999_us"`
}

const (
	pubSingle   = "polled, multipath off"
	pubHeadV2   = "polled, multipath on (V2)"
	pubHeadOff  = "unpolled, multipath on (V2)"
	pubHeadV3   = "polled, multipath on (V3)"
	pubTester1  = "on the fastest NVMe controller at hand polling took the latency of one read from over 7 µs to about 4"
	pubTester2  = "on a DRAM-backed NVMe drive it took off 3 to 4 µs with one thread and 6 to 7 µs with more"
	pubTester3  = "the flag is worth it for the I/O that cares, and a waste for all I/O of a device"
	pubJobsNote = "his job runs 5 + 5 threads, of which half poll, on one drive at once"
)

var publishedPaths = []PublishedPath{
	{pubSingle, 1, 1, 1, 33.1, 29.21, 1.42, 54.52},
	{pubSingle, 1, 32, 8, 268, 101.17, 14.87, 139},
	{pubSingle, 16, 32, 8, 1965, 247.25, 28.28, 449},
	{pubHeadV2, 1, 1, 1, 33, 29.22, 1.56, 54.01},
	{pubHeadV2, 1, 32, 8, 259, 104.38, 15.04, 141},
	{pubHeadV2, 16, 32, 8, 1905, 255.52, 30.97, 461},
	{pubHeadOff, 1, 1, 1, 22.9, 41.66, 3.78, 78.33},
	{pubHeadOff, 1, 32, 8, 224, 103.88, 28.41, 163},
	{pubHeadOff, 16, 32, 8, 1910, 245.23, 66.30, 502},
	{pubHeadV3, 1, 1, 1, 33.2, 29.12, 1.35, 54.53},
	{pubHeadV3, 1, 32, 8, 258, 104.55, 15.01, 141},
	{pubHeadV3, 16, 32, 8, 1914, 254.19, 30.00, 457},
}

// published returns what N.json has of it.
func published(experiment int) any {
	switch experiment {
	case 2:
		return publishedSweep
	case 3:
		return publishedPaths
	}
	return []string{pubTester1, pubTester2, pubTester3, pubJobsNote}
}

// publishedPath finds a cell.
func publishedPath(what string, w workload) PublishedPath {
	for _, p := range publishedPaths {
		if p.What == what && p.NumJobs == w.jobs && p.IODepth == w.depth {
			return p
		}
	}
	return PublishedPath{}
}
