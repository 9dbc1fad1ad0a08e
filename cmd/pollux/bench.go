// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	force         bool
	json          bool
	search        searchFlags

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
		Use:   "bench NAME|UUID | --build DEVICE...",
		Short: "Measure a striped volume, in fio's words",
		Long: `bench measures what I/O to a volume costs: to one that pollux create has made, which
is found by its name or UUID; or, with --build, to a stripe over devices, in the
order given and without reading or writing anything else on them.

Options are fio's. Sizes take k, m, g, t or KiB, MiB, GiB, TiB, all of them powers
of 1024; a time that is a bare number is seconds. I/O is direct, asynchronous, from
one thread, and offsets are drawn with replacement (norandommap).

Every I/O is polled unless --hipri=off. A drive that cannot be polled is refused,
or, with --allow-unpolled, driven by interrupts, which the output then says.

Without --destructive nothing is written and devices are opened read-only. With it
they are claimed, so that those mounted or in use are refused, and so are those that
carry a foreign signature or, with --build, a superblock of pollux; --force
overrides this. It wipes nothing by itself.

--verify writes a pattern to all of --size and reads it back; with --rw read or
randread it only reads back what an earlier --verify of the same --seed wrote.

--sweep measures depths 1, 2, 4 to 128, polling off and on in turns.

SIGINT or SIGTERM ends the bench early: it prints what was measured and exits 1.

` + searchHelp + `

` + exitCodesHelp,
		Example: `  # A volume: 4 KiB random reads at depth 32 for ten seconds, polled.
  pollux bench fast --rw randread --iodepth 32

  # The same of a stripe over drives that are no volume.
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
	flags.BoolVar(&f.verify, "verify", false, "write a pattern to all of --size, read it back and compare")
	flags.BoolVar(&f.destructive, "destructive", false, "allow writing: DATA ON THE DEVICES IS LOST")
	flags.Uint64Var(&f.seed, "seed", 0, "of the random offsets and of the pattern")
	flags.BoolVar(&f.sweep, "sweep", false, "measure depths 1, 2, 4 to 128 with polling off and on")
	flags.IntVar(&f.rounds, "rounds", defaultRounds, "rounds of a sweep; rows are medians of them")
	f.addOpening(flags)
	flags.BoolVar(&f.json, "json", false, "print JSON in fio's structure")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, s string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if f.build {
			return completePaths(cmd, args, s)
		}
		return completeVolume(&f.search)(cmd, args, s)
	}
	// The error would be that there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc("rw", completeWords("read", "write", "randread", "randwrite", "randrw"))
	return cmd
}

// addOpening adds what is said about opening a volume.
func (f *benchFlags) addOpening(flags *pflag.FlagSet) {
	flags.Var(&f.hipri, "hipri", "poll for completions; off polls nothing and needs no drive that can")
	flags.Lookup("hipri").NoOptDefVal = "on"
	flags.BoolVar(&f.allowUnpolled, "allow-unpolled", false, "drive by interrupts what cannot be polled")
	flags.BoolVar(&f.force, "force", false, "write although something else is on a device")
	f.search.add(flags)
}

// check finds what is wrong with the command line alone, before anything is
// opened. Without --build there is one argument, the volume.
func (f *benchFlags) check(devices []string) error {
	var faults faults
	switch {
	case f.build && len(devices) == 0:
		faults.add("--build needs at least one DEVICE")
	case f.build && f.given("device"):
		faults.add("--device is where to look for a volume; devices of --build are arguments")
	case f.build:
	case len(devices) == 0:
		faults.add("name a volume, or the devices to stripe over: --build DEVICE...")
	case len(devices) > 1:
		faults.add("name one volume, or say --build to stripe over devices; there are %d arguments", len(devices))
	case f.given("chunk"):
		faults.add("--chunk is for --build; a volume has the chunk that it was created with")
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
	if err := faults.err(); err != nil || f.build {
		return err
	}
	return checkVolume(devices[0])
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
		HiPri:   percent(bool(f.hipri)),
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

// percent is how many of a hundred I/Os are polled.
func percent(hipri bool) int {
	if hipri {
		return 100
	}
	return 0
}
