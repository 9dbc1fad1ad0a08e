// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"pollux/internal/bench"
)

// benchFlags are those of the command line.
type benchFlags struct {
	build         bool
	chunk         sizeFlag
	rw            rwFlag
	bs            sizeFlag
	iodepth       int
	runtime       timeFlag
	size          sizeFlag
	ioSize        sizeFlag
	hipri         switchFlag
	allowUnpolled bool
	verify        bool
	destructive   bool
	seed          uint64
	sweep         bool
	rounds        int
	json          bool

	// given says which were set by the user.
	given func(name string) bool
}

const (
	defaultRuntime = 10 * time.Second
	defaultRounds  = 5
	// sweepPoint is the time of one row of a sweep, over all rounds.
	sweepPoint = 2 * time.Second
)

func newBench() *cobra.Command {
	f := &benchFlags{chunk: 64 << 10, bs: 4 << 10, hipri: true}
	cmd := &cobra.Command{
		Use:   "bench --build DEVICE...",
		Short: "Measure a striped volume, in fio's words",
		Long: `bench stripes over the devices, in the order given and without reading or writing
anything else on them, and measures what I/O to the volume costs.

Options are fio's. Sizes take k, m, g, t or KiB, MiB, GiB, TiB, all of them powers
of 1024; a time that is a bare number is seconds. I/O is direct, asynchronous, from
one thread, and offsets are drawn with replacement (norandommap).

Every I/O is polled unless --hipri=off. A drive that cannot be polled is refused,
or, with --allow-unpolled, driven by interrupts, which the output then says.

Without --destructive nothing is written and devices are opened read-only. With it
block devices are claimed, so that mounted ones and those in use are refused.

--verify writes a pattern to all of --size and reads it back; with --rw read or
randread it only reads back what an earlier --verify of the same --seed wrote.

--sweep measures depths 1, 2, 4 to 128, polling off and on in turns.

SIGINT or SIGTERM ends the bench early: it prints what was measured and exits 1.

` + exitCodesHelp,
		Example: `  # 4 KiB random reads at depth 32 for ten seconds, polled.
  pollux bench --build /dev/nvme0n1 /dev/nvme1n1 --rw randread --bs 4k --iodepth 32 --runtime 10

  # The same without polling, for programs.
  pollux bench --build /dev/nvme0n1 /dev/nvme1n1 --rw randread --iodepth 32 --hipri=off --json

  # The published table: depths 1 to 128, polling off and on.
  pollux bench --build /dev/nvme0n1 /dev/nvme1n1 --rw randread --sweep

  # OVERWRITE the first GiB with a pattern and read it back.
  pollux bench --build /dev/nvme0n1 /dev/nvme1n1 --size 1g --iodepth 16 --verify --destructive

  # Try it on two files, which cannot be polled.
  truncate -s 64M a b
  pollux bench --build a b --rw randread --hipri=off`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.given = func(name string) bool { return cmd.Flags().Changed(name) }
			return f.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.build, "build", false, "stripe over the DEVICEs as they are given (as mdadm --build)")
	flags.Var(&f.chunk, "chunk", "contiguous bytes on one device")
	flags.Var(&f.rw, "rw", "read, write, randread, randwrite or randrw (half reads, half writes)")
	flags.Var(&f.bs, "bs", "bytes of one I/O")
	flags.IntVar(&f.iodepth, "iodepth", 1, "I/Os in flight")
	flags.Var(&f.runtime, "runtime", "how long to measure (default 10s; with --sweep, per row and round, 2s divided by --rounds)")
	flags.Var(&f.size, "size", "bytes of the volume that are touched, from its start (default all)")
	flags.Var(&f.ioSize, "io-size", "end after so many bytes of I/O")
	flags.Var(&f.hipri, "hipri", "poll for completions; off polls nothing and needs no drive that can")
	flags.Lookup("hipri").NoOptDefVal = "on"
	flags.BoolVar(&f.allowUnpolled, "allow-unpolled", false, "drive by interrupts what cannot be polled")
	flags.BoolVar(&f.verify, "verify", false, "write a pattern to all of --size, read it back and compare")
	flags.BoolVar(&f.destructive, "destructive", false, "allow writing: DATA ON THE DEVICES IS LOST")
	flags.Uint64Var(&f.seed, "seed", 0, "of the random offsets and of the pattern")
	flags.BoolVar(&f.sweep, "sweep", false, "measure depths 1, 2, 4 to 128 with polling off and on")
	flags.IntVar(&f.rounds, "rounds", defaultRounds, "rounds of a sweep; rows are medians of them")
	flags.BoolVar(&f.json, "json", false, "print JSON in fio's structure")
	return cmd
}

// check finds what is wrong with the command line alone, before anything is
// opened.
func (f *benchFlags) check(devices []string) error {
	var faults faults
	if !f.build {
		faults.add("name the devices to stripe over: --build DEVICE...")
	} else if len(devices) == 0 {
		faults.add("--build needs at least one DEVICE")
	}
	for _, d := range devices {
		if d == "on" || d == "off" || d == "0" || d == "1" {
			faults.add("%q is taken for a device; write --hipri=%s", d, d)
		}
	}
	if f.iodepth < 1 {
		faults.add("--iodepth %d: must be at least 1", f.iodepth)
	}
	if f.rounds < 1 {
		faults.add("--rounds %d: must be at least 1", f.rounds)
	}
	if f.given("rounds") && !f.sweep {
		faults.add("--rounds is for --sweep")
	}
	for _, name := range []string{"iodepth", "io-size", "verify"} {
		if f.sweep && f.given(name) {
			faults.add("--%s and --sweep exclude each other", name)
		}
	}
	for _, name := range []string{"runtime", "io-size"} {
		if f.verify && f.given(name) {
			faults.add("--%s and --verify exclude each other: all of --size is verified", name)
		}
	}
	return faults.err()
}

// writes says that data on the devices will be overwritten.
func (f *benchFlags) writes() bool { return f.job().RW.Writes() }

// job returns what is to be measured.
func (f *benchFlags) job() bench.Job {
	j := bench.Job{
		RW:      bench.RW(f.rw),
		BS:      int64(f.bs),
		IODepth: f.iodepth,
		Runtime: time.Duration(f.runtime),
		Size:    int64(f.size),
		IOSize:  int64(f.ioSize),
		HiPri:   bool(f.hipri),
		Seed:    f.seed,
	}
	switch {
	case f.verify && !f.given("rw"):
		j.RW = bench.Write
	case f.sweep && j.Runtime == 0:
		j.Runtime = sweepPoint / time.Duration(f.rounds)
	case !f.verify && j.Runtime == 0 && j.IOSize == 0:
		j.Runtime = defaultRuntime
	}
	return j
}
