// SPDX-License-Identifier: Apache-2.0

package multipath_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"pollux/internal/faultdev"
	"pollux/internal/faultdev/devtest"
	"pollux/multipath"
	"pollux/poller"
)

const (
	testSize  = 1 << 20
	testBlock = 512
)

// paths are some ways to one memory, each of which can be disturbed.
type paths struct {
	*multipath.Multipath
	memory *faultdev.Memory
	faults []*faultdev.Device
}

// newPaths makes n paths that are as PCI Express ones where final is set, and otherwise as
// over a network.
func newPaths(t testing.TB, n int, final bool, opts multipath.Options) *paths {
	t.Helper()
	return newPathsOf(t, n, opts, func(int) faultdev.MemoryOptions { return faultdev.MemoryOptions{GoneIsFinal: final} })
}

func newPathsOf(t testing.TB, n int, opts multipath.Options, memory func(i int) faultdev.MemoryOptions) *paths {
	t.Helper()
	p := &paths{}
	var devices []poller.Device
	for i := range n {
		mo := memory(i)
		mo.Name = fmt.Sprintf("path%d", i)
		m := p.memory
		if i == 0 {
			p.memory = faultdev.NewMemory(testSize, testBlock, mo)
			m = p.memory
		} else {
			m = m.Share(mo)
		}
		f := faultdev.New(m)
		p.faults = append(p.faults, f)
		devices = append(devices, f)
	}
	var err error
	if p.Multipath, err = multipath.New(devices, opts); err != nil {
		t.Fatal(err)
	}
	devtest.Close(t, p)
	return p
}

// vanish makes a path's device go away, comeBack brings it back.
func (p *paths) vanish(i int)   { p.faults[i].SetRules(faultdev.Rule{Err: poller.ErrGone}) }
func (p *paths) comeBack(i int) { p.faults[i].SetRules() }

// did returns how many requests a path has done.
func (p *paths) did(i int) (n uint64) { return completed(p.faults[i].Stats()) }

func completed(s poller.Stats) (n uint64) {
	for op := range s.IO {
		for mode := range s.IO[op] {
			n += s.IO[op][mode].Latency.Count()
		}
	}
	return n
}

// waitFor waits until something is so.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for start := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(start) > devtest.Patience {
			t.Fatalf("after %v it is not so that %s", devtest.Patience, what)
		}
	}
}

func (p *paths) live(i int) bool { return p.Stats().Paths[i].Live }

// request makes one of a block at the n-th block.
func request(r *devtest.Rig, op poller.Op, n int64) *poller.Request {
	req := &poller.Request{Op: op, Flags: poller.HiPri, Offset: n * testBlock}
	if op != poller.Flush {
		req.Buf = r.Buf(testBlock)
	}
	return req
}

// testSeed returns the seed of this run and prints it; POLLUX_SEED repeats one.
func testSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("POLLUX_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("POLLUX_SEED: %v", err)
		}
	}
	t.Logf("POLLUX_SEED=%d", seed)
	return seed
}
