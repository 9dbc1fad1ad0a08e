// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"pollux/internal/faultdev/devtest"
	"pollux/poller"
)

func publish(t *testing.T, dev poller.Device, opts PublishOptions) *Publication {
	t.Helper()
	p, err := Publish(dev, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(p.Path()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", p.Path(), err)
		}
	})
	return p
}

func families(t *testing.T, g SocketGatherer) map[string]*dto.MetricFamily {
	t.Helper()
	list, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*dto.MetricFamily)
	for _, f := range list {
		all[f.GetName()] = f
	}
	return all
}

// Several volumes of a process are gathered together, as they would tell themselves.
func TestGatherSockets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	a, b := newRig(t, 2), newRig(t, 3)
	r := devtest.Open(t, a, poller.QueueConfig{})
	r.MustDo(&poller.Request{Op: poller.Write, Flags: poller.HiPri, Buf: r.Buf(4096)})
	publish(t, a, PublishOptions{Name: "fast", Dir: dir})
	publish(t, b, PublishOptions{Name: "/dev/other one", Dir: dir})

	g := SocketGatherer{Dir: dir}
	// Whatever is no socket of ours, or that nobody listens on, is nothing.
	stale, err := net.Listen("unix", filepath.Join(dir, "stale.1.sock"))
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	for _, name := range []string{"file.2.sock", "nothing", ".3.sock"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := families(t, g)
	pid := fmt.Sprintf("pid=%d", os.Getpid())
	if h := find(t, all, "pollux_volume_io_duration_seconds", "volume=fast", "op=write", "mode=polled", pid).GetHistogram(); h.GetSampleCount() != 1 {
		t.Errorf("%d writes of 1", h.GetSampleCount())
	}
	if n := len(all["pollux_member_up"].GetMetric()); n != 5 {
		t.Errorf("%d members of 5", n)
	}
	if n := len(all["pollux_worker_threads"].GetMetric()); n != 1 {
		t.Errorf("the process is told of %d times", n)
	}
}

// A socket that hangs costs the others nothing.
func TestGatherHungSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	publish(t, newRig(t, 2), PublishOptions{Name: "good", Dir: dir})
	hung, err := net.Listen("unix", filepath.Join(dir, "hung.1.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	list, err := SocketGatherer{Dir: dir, Patience: 100 * time.Millisecond}.Gather()
	if err == nil || !strings.Contains(err.Error(), "hung.1.sock") || len(list) == 0 {
		t.Errorf("%d families, %v", len(list), err)
	}
	if none, err := (SocketGatherer{Dir: filepath.Join(dir, "none")}).Gather(); len(none) != 0 || err != nil {
		t.Errorf("no folder: %d, %v", len(none), err)
	}
}

// Who may do what with the socket, and what Publish refuses.
func TestPublishSocket(t *testing.T) {
	base := t.TempDir()
	v := newRig(t, 2)
	p := publish(t, v, PublishOptions{Name: "a/../b", Dir: filepath.Join(base, "run")})
	if filepath.Dir(p.Path()) != filepath.Join(base, "run") {
		t.Errorf("it is at %s", p.Path())
	}
	info, err := os.Lstat(p.Path())
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	open := filepath.Join(base, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.WriteFile(filepath.Join(base, "file"), nil, 0o600),
		os.Symlink(open, filepath.Join(base, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		opts PublishOptions
		says string
	}{
		{PublishOptions{Name: "a/../b", Dir: filepath.Join(base, "run")}, "publishes a volume of that name already"},
		{PublishOptions{Dir: open}, "chmod o-w"},
		{PublishOptions{Dir: filepath.Join(base, "file")}, filepath.Join(base, "file")},
		{PublishOptions{Dir: filepath.Join(base, "link")}, "is no folder"},
		{PublishOptions{Dir: filepath.Join(base, "run"), Group: "nobody-has-this"}, "nobody-has-this"},
		{PublishOptions{Dir: filepath.Join(base, strings.Repeat("long", 30))}, "invalid argument"},
	} {
		if p, err := Publish(v, c.opts); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.opts, err, c.says)
			if err == nil {
				p.Close()
			}
		}
	}
}

// What /stats tells is the statistics, to the bucket.
func TestStatsOverSocket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	v := newRig(t, 2)
	r := devtest.Open(t, v, poller.QueueConfig{})
	r.MustDo(&poller.Request{Op: poller.Read, Flags: poller.HiPri, Buf: r.Buf(2 * testChunk)})
	publish(t, v, PublishOptions{Dir: dir})
	sockets, err := Sockets(dir)
	if err != nil || len(sockets) != 1 || sockets[0].Volume != "build" || sockets[0].PID != os.Getpid() {
		t.Fatalf("%+v, %v", sockets, err)
	}
	var got Snapshot
	ctx, cancel := context.WithTimeout(t.Context(), devtest.Patience)
	defer cancel()
	if err := sockets[0].Get(ctx, "/stats", "", func(_ http.Header, body io.Reader) error { return json.NewDecoder(body).Decode(&got) }); err != nil {
		t.Fatal(err)
	}
	want := v.Stats()
	if !got.Up || len(got.Members) != 2 || got.Depth != want.Depth || len(got.IO) != 1 || got.IO[0].Op != "read" || got.IO[0].Bytes != 2*testChunk {
		t.Errorf("%+v", got)
	}
	a, b := got.IO[0].Latency(), want.IO[poller.Read][poller.Polled].Latency
	if a.Count() != 1 || a.Sum != b.Sum || a.Percentile(50) != b.Percentile(50) {
		t.Errorf("%v and %v", a.Percentile(50), b.Percentile(50))
	}
	if err := sockets[0].Get(ctx, "/nothing", "", nil); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a path that there is not: %v", err)
	}
	// A bucket that there is not does no harm.
	if h := (SnapshotIO{Buckets: [][2]uint64{{1 << 40, 1}, {0, 2}}}).Latency(); h.Count() != 2 {
		t.Errorf("%d values", h.Count())
	}
	gone := Socket{Path: filepath.Join(dir, "none.1.sock")}
	if err := gone.Get(ctx, "/stats", "", nil); !isStale(err) {
		t.Errorf("a socket that there is not: %v", err)
	}
	if isStale(syscall.EACCES) {
		t.Error("a socket that may not be read is none that nobody listens on")
	}
}
