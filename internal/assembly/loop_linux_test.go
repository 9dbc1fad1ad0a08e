// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"pollux/internal/blockdev"
	"pollux/internal/superblock"
	"pollux/stripe"
)

// On block devices: a volume of drives of 512 and of 4096 bytes a block has blocks of
// 4096, is found on all block devices of the machine, and keeps others out.
func TestLoopMixedBlocks(t *testing.T) {
	backing := files(t, 2)
	paths := []string{loop(t, backing[0]), loop(t, backing[1], "--sector-size=4096")}
	opts := createOptions("vol", paths...)
	plan := create(t, opts)
	if plan.BlockSize != 4096 || plan.Members[0].Info.BlockSize != 512 || plan.Members[1].Info.BlockSize != 4096 {
		t.Errorf("%+v", plan)
	}
	for _, where := range [][]string{paths, {paths[1], paths[0]}, nil, {"/dev/loop*"}} {
		opts := writable(openOptions(plan.UUID.String(), where...))
		opts.Where.Patience = 5 * time.Second
		o := mustOpen(t, opts)
		if o.Members[0][0].Info().Path != paths[0] || o.Members[0][0].Limits().BlockSize != 512 || o.Members[1][0].Limits().BlockSize != 4096 {
			t.Errorf("%+v", o)
		}
		// The claim of a writer is against everybody, also those who know no pollux.
		_, err := blockdev.Open(paths[0], blockdev.Mode{Exclusive: true})
		refused(t, err, blockdev.ErrBusy)
		closeDisks(t, o)
	}
	destroy(t, "vol", paths...)
	// A chunk that is no whole number of the larger blocks.
	opts.Chunk = 2048
	_, err := PrepareCreate(context.Background(), opts)
	refused(t, err, stripe.ErrGeometry, "chunk size 2048 is no multiple of 4096")
}

// Case 7: a member whose logical block has changed is refused, and nothing written.
func TestLoopReformatted(t *testing.T) {
	backing := files(t, 2)
	other := loop(t, backing[1])
	t.Run("created", func(t *testing.T) {
		create(t, createOptions("vol", loop(t, backing[0]), other))
	})
	path := loop(t, backing[0], "--sector-size=4096")
	before := stateOf(t, backing...)
	for _, write := range []bool{false, true} {
		opts := openOptions("vol", path, other)
		opts.Write = write
		_, err := Open(context.Background(), opts)
		refused(t, err, ErrIncomplete, path+": its logical block is 4096 bytes, and was 512 when the volume was created; ", "nvme format")
	}
	before.unchanged(t)
}

// A device and the file that it is made of are not one drive for pollux; opened by
// both it is a clone, and refused.
func TestLoopBesideItsFile(t *testing.T) {
	backing := files(t, 2)
	path := loop(t, backing[0])
	create(t, createOptions("vol", path, backing[1]))
	_, err := Open(context.Background(), openOptions("vol", path, backing[0], backing[1]))
	refused(t, err, ErrIncomplete, "member 0 twice: a copy of ")
	closeDisks(t, mustOpen(t, writable(openOptions("vol", path, backing[1]))))
}

// Case 13: what is mounted is busy, before any write, and a dry run says so too.
func TestLoopMounted(t *testing.T) {
	backing := []string{file(t, 16*mib), file(t, most)}
	paths := []string{loop(t, backing[0]), loop(t, backing[1])}
	tool(t, "mkfs.ext4", "-q", "-F", paths[0])
	dir := t.TempDir()
	tool(t, "mount", paths[0], dir)
	defer tool(t, "umount", dir)
	before := stateOf(t, backing[1])
	opts := createOptions("vol", paths...)
	opts.Force = true
	_, err := PrepareCreate(context.Background(), opts)
	refused(t, err, blockdev.ErrBusy, paths[0]+": busy: mounted on "+dir, "umount")
	opts.DryRun = true
	if err := errors.Join(prepare(t, opts).Plan.Problems...); !errors.Is(err, blockdev.ErrBusy) || !strings.Contains(err.Error(), "mounted on "+dir) {
		t.Errorf("a dry run: %v", err)
	}
	if in, err := Inspect(paths[0]); err != nil || !errors.Is(in.InUse, blockdev.ErrBusy) || len(in.Foreign) == 0 {
		t.Errorf("%+v, %v", in, err)
	}
	before.unchanged(t)
}

func TestLoopReadOnly(t *testing.T) {
	backing := files(t, 2)
	create(t, createOptions("vol", backing...))
	before := stateOf(t, backing...)
	paths := []string{loop(t, backing[0], "-r"), loop(t, backing[1])}
	closeDisks(t, mustOpen(t, openOptions("vol", paths...)))
	_, err := Open(context.Background(), writable(openOptions("vol", paths...)))
	refused(t, err, blockdev.ErrReadOnly, paths[0], "blockdev --setrw")
	destroyed, err := PrepareDestroy(context.Background(), "vol", Where{Devices: paths})
	if err == nil {
		_ = destroyed.Close()
	}
	refused(t, err, blockdev.ErrReadOnly, paths[0])
	opts := createOptions("new", paths...)
	opts.DryRun = true
	if err := errors.Join(prepare(t, opts).Plan.Problems...); !errors.Is(err, blockdev.ErrReadOnly) {
		t.Errorf("a dry run: %v", err)
	}
	before.unchanged(t)
}

// partitions makes two partitions, of which the kernel alone knows.
func partitions(t *testing.T) (disk, first, second string, backing string) {
	t.Helper()
	disk, backing = partitioned(t, []string{"1", "2048", "10240"}, []string{"2", "14336", "10240"})
	return disk, disk + "p1", disk + "p2", backing
}

// partitioned makes partitions on a disk of 16 MiB: number, start and length in sectors
// of each.
func partitioned(t *testing.T, parts ...[]string) (disk, backing string) {
	t.Helper()
	backing = file(t, 16*mib)
	disk = loop(t, backing)
	for _, p := range parts {
		// One that a run that was killed has left.
		_ = exec.Command("delpart", disk, p[0]).Run()
		tool(t, "addpart", append([]string{disk}, p...)...)
		t.Cleanup(func() { tool(t, "delpart", disk, p[0]) })
	}
	last := disk + "p" + parts[len(parts)-1][0]
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(last); err == nil {
			return disk, backing
		}
		if time.Now().After(deadline) {
			t.Skipf("needs root and a /dev where the kernel makes %s", last)
		}
	}
}

// The only partition of a disk has its copy B where the disk would have one. That makes
// the disk no member, and nothing may be created on it while the volume is there.
func TestLoopLastPartition(t *testing.T) {
	disk, backing := partitioned(t, []string{"1", "2048", "30720"})
	part := disk + "p1"
	create(t, createOptions("vol", part))
	list := search(t, Where{Devices: []string{disk, part}})
	if look, _ := list.Look(disk); look.Label.Verdict != superblock.Overwritten {
		t.Fatalf("%v: the copies are not in one place, and this shows nothing", look.Label.Verdict)
	}
	closeDisks(t, mustOpen(t, writable(openOptions("vol", disk, part))))
	before := stateOf(t, backing)
	for _, force := range []bool{false, true} {
		opts := createOptions("new", disk)
		opts.Where = Where{Devices: []string{disk, part}}
		opts.Force = force
		c := prepare(t, opts)
		if err := c.Commit(); !errors.Is(err, ErrMember) || !strings.Contains(err.Error(), part+", which is on the same drive, belongs to volume vol") {
			t.Errorf("force %v: %v", force, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	before.unchanged(t)
	destroy(t, "vol", disk, part)
	create(t, createOptions("new", disk))
}

// Case 9: a partition and its disk are one drive; two partitions beside each other
// are two, though one disk is locked for both.
func TestLoopPartitions(t *testing.T) {
	disk, first, second, backing := partitions(t)
	before, was := stateOf(t, backing), get(t, backing)
	for _, devices := range [][]string{{disk, first}, {second, disk}, {first, first}} {
		for _, dry := range []bool{false, true} {
			opts := createOptions("vol", devices...)
			opts.DryRun, opts.Force = dry, true
			_, err := PrepareCreate(context.Background(), opts)
			refused(t, err, ErrTwice, devices[1]+": ", "it is also "+devices[0])
		}
	}
	before.unchanged(t)
	start := time.Now()
	create(t, createOptions("vol", first, second))
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("creating took %v: waited for its own lock", took)
	}
	o := mustOpen(t, writable(openOptions("vol", disk, first, second)))
	if o.Members[0][0].Info().Path != first || o.Members[1][0].Info().Path != second {
		t.Errorf("%+v", o)
	}
	closeDisks(t, o)
	// What is before, between and behind the partitions is as it was.
	now := get(t, backing)
	for _, part := range []int{2048 * 512, 14336 * 512} {
		for _, at := range []int{part + copyA, part + int(superblock.OffsetB(10240*512))} {
			copy(now[at:], was[at:][:superblock.BlockSize])
		}
	}
	if !bytes.Equal(now, was) {
		t.Error("something else than the superblocks was written")
	}
}

// Forced, signatures are gone from a drive of 4096-byte blocks as well, the blocks
// around them not.
func TestLoopForce(t *testing.T) {
	backing := file(t, most)
	path := loop(t, backing, "--sector-size=4096")
	tool(t, "mkswap", path)
	before := get(t, backing)
	opts := createOptions("vol", path)
	opts.Force = true
	erased := create(t, opts).Members[0].Erases
	if len(erased) == 0 || tool(t, "wipefs", "-n", path) != "" {
		t.Errorf("erased %v, and wipefs finds %s", erased, tool(t, "wipefs", "-n", path))
	}
	after := get(t, backing)
	for _, s := range erased {
		clear(before[s.Offset:][:len(s.Magic)])
	}
	for _, at := range []int64{copyA, offsetB(t, backing)} {
		copy(before[at:], after[at:][:superblock.BlockSize])
	}
	if !bytes.Equal(after, before) {
		t.Error("more was erased than the signatures")
	}
}
