// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pollux/internal/fio"
)

func newBench() *cobra.Command {
	f := &benchFlags{chunk: 64 << 10}
	cmd := &cobra.Command{
		Use:   "bench NAME|UUID | --build DEVICE...",
		Short: "Measure a striped volume, in fio's words",
		Long: `bench measures what I/O to a volume costs: to one that pollux create has made, which
is found by its name or UUID; or, with --build, to a stripe over devices, in the
order given and without reading or writing anything else on them.

Options are fio's, with hyphens or with its underscores. Sizes take k, m, g, t or
KiB, MiB, GiB, TiB, all of them powers of 1024; a time that is a bare number is
seconds. I/O is direct and asynchronous, offsets are drawn with replacement
(norandommap), and every job has a goroutine and a queue of its own.

Each --name begins a job; options before the first are defaults of all. So a command
line of fio's can be pasted as it is, and --job-file reads its job files. Options of
fio's that cannot matter here (direct, thread, filename and their like) are ignored
and listed; others that pollux does not have are refused.

Every I/O is polled unless --hipri=off; of --hipri=50% half are. With an --ioengine the
default is off, as in fio, except for pvsync2, which stood for polling. A drive that
cannot be polled is refused, or, with --allow-unpolled, driven by interrupts, which the
output then says.

Without --destructive nothing is written and devices are opened read-only. With it
they are claimed, so that those mounted or in use are refused, and so are those that
carry a foreign signature or, with --build, a superblock of pollux; --force
overrides this. It wipes nothing by itself.

--fill writes all of each job's part first. A drive answers reads of what was never
written from its mapping table, without looking anywhere; bench warns when all that
it will read seems to be so.

A drive that is reached over several paths, which the kernel does not join
(nvme_core.multipath=N), is one member: of a volume all that are found are used, with
--build those that stand in one argument, with commas between them. The report tells
what went over each.

What goes on can be watched: by Prometheus at --metrics-listen, and of a volume with a
name by pollux top and pollux exporter.

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

  # Two jobs at once, four goroutines each, one polled and one not.
  pollux bench fast --rw randread --numjobs 4 --name low --hipri=off --name high --hipri

  # A mix: 70 of 100 are reads, of two sizes, 5,000 a second.
  pollux bench fast --rw randrw --rwmixread 70 --bssplit 4k/80:64k/20 --rate-iops 5000 --destructive

  # The published table: depths 1 to 128, polling off and on.
  pollux bench --build /dev/nvme0n1 /dev/nvme1n1 --rw randread --sweep

  # The same, drawn.
  pollux bench fast --rw randread --sweep --plot sweep.svg

  # Beside fio on a dm-stripe over the same drives.
  pollux bench --build /dev/nvme0n1 /dev/nvme1n1 --rw randread --iodepth 32 --compare fio:/dev/dm-0

  # Two drives, the first over two paths that take turns.
  pollux bench --build /dev/nvme0n1,/dev/nvme1n1 /dev/nvme2n1 --path-policy round-robin

  # Watched by Prometheus, which finds the last figures for a minute after the end.
  pollux bench fast --rw randread --runtime 60 --metrics-listen 127.0.0.1:9868 --metrics-linger 1m

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
	f.addJobFlags(flags)
	flags.BoolVar(&f.verify, "verify", false, "write a pattern to all of --size, read it back and compare")
	flags.BoolVar(&f.destructive, "destructive", false, "allow writing: DATA ON THE DEVICES IS LOST")
	flags.BoolVar(&f.fill, "fill", false, "write all that will be read before it is measured; needs --destructive")
	flags.BoolVar(&f.sweep, "sweep", false, "measure depths 1, 2, 4 to 128 with polling off and on")
	flags.IntVar(&f.rounds, "rounds", defaultRounds, "rounds of a sweep or a comparison; what is told are medians of them")
	flags.StringVar(&f.compare, "compare", "", "do the same with fio, in turns: fio:DEVICE, or fio:members for the drives of the volume")
	f.addHiPri(flags)
	f.addOpening(flags)
	f.paths.add(cmd)
	f.metrics.add(flags)
	f.addJSON(flags, "print JSON in fio's structure (as --output-format json)")
	flags.Var(&f.format, "output-format", "normal, json, or json+ with all buckets of latencies")
	flags.StringVar(&f.output, "output", "", "write the report to this file")
	flags.StringVar(&f.plot, "plot", "", "draw into this file, .svg or .png: a sweep against the depth, else how latencies are distributed")
	f.addIgnored(flags)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && fio.Knows(unknown.GetSpecifiedName()) {
			return usageError(fmt.Sprintf("fio's option %s is not supported by pollux bench", unknown.GetSpecifiedName()))
		}
		return usageError(err.Error())
	})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, s string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if f.build {
			return completePaths(cmd, args, s)
		}
		return completeVolume(&f.search)(cmd, args, s)
	}
	for name, words := range map[string][]cobra.Completion{
		"rw":            {"read", "write", "randread", "randwrite", "rw", "randrw"},
		"output-format": {"normal", "json", "json+"},
		"hipri":         {"on", "off", "50%"},
	} {
		// The error would be that there is no such flag.
		_ = cmd.RegisterFlagCompletionFunc(name, completeWords(words...))
	}
	return cmd
}

// addJobFlags adds what describes a job.
func (f *benchFlags) addJobFlags(flags *pflag.FlagSet) {
	for _, o := range []struct{ name, kind, standard, usage string }{
		{"name", "string", "", "begin a job of this name; what follows is its own"},
		{"rw", "workload", "read", "read, write, randread, randwrite, rw or randrw"},
		{"rwmixread", "percent", "50", "how many of a hundred I/Os of rw and randrw read"},
		{"rwmixwrite", "percent", "", "or how many write"},
		{"bs", "size", "4KiB", "bytes of one I/O; READ,WRITE for two sizes"},
		{"bssplit", "split", "", "several sizes with their percentages, 4k/80:64k/20; READ,WRITE"},
		{"iodepth", "int", "1", "I/Os in flight, of each of numjobs"},
		{"iodepth-batch", "int", "", "I/Os submitted together at most (default as many as came back together)"},
		{"iodepth-batch-complete-min", "int", "1", "completions to wait for"},
		{"iodepth-batch-complete-max", "int", "", "completions to take at once (default all)"},
		{"numjobs", "int", "1", "goroutines that do the same, each with a queue"},
		{"runtime", "time", "", "how long to measure (default 10s; with --sweep, per row and round, 2s divided by --rounds; with --compare 2s a round)"},
		{"ramp-time", "time", "", "how long to run before that"},
		{"size", "size", "", "bytes of the volume that are touched, or N% of it (default all)"},
		{"offset", "size", "", "where these begin, in bytes or N%"},
		{"io-size", "size", "", "end after so many bytes of I/O, of each of numjobs"},
		{"rate-iops", "int", "", "I/Os a second, of each of numjobs, at most"},
		{"fixedbufs", "on|off", "on", "register the memory with the kernel"},
		{"dsync", "on|off", "off", "make each write durable before it is done (FUA)"},
		{"nowait", "on|off", "off", "fail I/O that would block"},
		{"prio", "int", "", "I/O priority, 0 (highest) to 7"},
		{"prioclass", "int", "", "its class: 1 realtime, 2 best effort, 3 idle"},
		{"seed", "int", "0", "of the random offsets and of the pattern"},
		{"sync", "none|dsync", "", "fio's word for dsync"},
		{"hipri-percentage", "int", "", "pvsync2's word for hipri=N%"},
	} {
		f.addJobFlag(flags, o.name, o.kind, o.standard, o.usage)
	}
	flags.Lookup("sync").Hidden = true
	flags.Lookup("hipri-percentage").Hidden = true
	flags.Var(&jobFileFlag{f}, "job-file", "read jobs from a job file of fio's; repeatable")
}

// addHiPri adds the choice of polling, addOpening what else is said about opening a
// volume.
func (f *benchFlags) addHiPri(flags *pflag.FlagSet) {
	f.addJobFlag(flags, "hipri", "on|off|N%", "on", "poll for completions; off polls nothing and needs no drive that can; N% polls so many of a hundred")
	flags.Lookup("hipri").NoOptDefVal = "on"
}

func (f *benchFlags) addOpening(flags *pflag.FlagSet) {
	flags.BoolVar(&f.allowUnpolled, "allow-unpolled", false, "drive by interrupts what cannot be polled")
	flags.BoolVar(&f.force, "force", false, "write although something else is on a device")
	f.search.add(flags)
}
