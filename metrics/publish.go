// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"pollux/poller"
)

// PublishOptions are those of Publish. The zero value is usable.
type PublishOptions struct {
	// Name is what the volume is called; "" is the device's own name.
	Name string
	// Dir is where the socket goes; "" is RuntimeDir.
	Dir string
	// Group may read the socket beside the user, by name or number; "" is that of the
	// process.
	Group string
}

// Publication is a device that is being published.
type Publication struct {
	path   string
	server *http.Server
	done   chan struct{}
	once   sync.Once
	err    error
}

// RuntimeDir returns where sockets are by default: /run/pollux for root, otherwise
// pollux in XDG_RUNTIME_DIR, or in a folder of the user's own below the one for
// temporary files.
func RuntimeDir() string {
	if os.Geteuid() == 0 {
		return "/run/pollux"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pollux")
	}
	return filepath.Join(os.TempDir(), "pollux-"+strconv.Itoa(os.Geteuid()))
}

// socketSuffix ends the names of sockets, so that nothing else is taken for one.
const socketSuffix = ".sock"

// Publish serves the figures of a device on a unix socket, for pollux exporter and
// pollux top, until Close: /metrics for Prometheus and /stats as JSON. It does no I/O to
// the device, and needs it to be open. The socket is called by the volume's name and the
// process's number, and may be read and written by user and group (0660).
//
// The error names the path: a folder that others may write to, a group that there is not,
// a name that cannot be one of a file.
func Publish(device poller.Device, opts PublishOptions) (*Publication, error) {
	if opts.Name == "" {
		opts.Name = device.Stats().Name
	}
	if opts.Dir == "" {
		opts.Dir = RuntimeDir()
	}
	gid, err := groupID(opts.Group)
	if err != nil {
		return nil, err
	}
	if err := makeDir(opts.Dir, gid); err != nil {
		return nil, err
	}
	name := fileName(opts.Name) + "." + strconv.Itoa(os.Getpid())
	path := filepath.Join(opts.Dir, name+socketSuffix)
	listener, err := listen(path, gid)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(&Collector{devices: []named{{device, opts.Name}}}); err != nil {
		listener.Close()
		return nil, err
	}
	p := &Publication{path: path, done: make(chan struct{}), server: &http.Server{
		Handler:           publicationHandler(registry, device),
		ReadHeaderTimeout: serverPatience,
		WriteTimeout:      serverPatience,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    1 << 16,
	}}
	go func() {
		defer close(p.done)
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.err = err
		}
	}()
	return p, nil
}

// serverPatience is how long a client may take.
const serverPatience = 10 * time.Second

// Path returns the socket.
func (p *Publication) Path() string { return p.path }

// Close ends it and removes the socket. Requests that are being answered have 1 s. A
// second Close does nothing.
func (p *Publication) Close() error {
	p.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := p.server.Shutdown(ctx); err != nil {
			_ = p.server.Close()
		}
		<-p.done
	})
	return p.err
}

// Handler serves what a collector tells to Prometheus: OpenMetrics for those who ask for
// it.
func Handler(gatherer prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError})
}

func publicationHandler(registry prometheus.Gatherer, device poller.Device) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", Handler(registry))
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(SnapshotOf(device.Stats())) // the client may have gone
	})
	return mux
}

// fileName makes a name that any file may have of one that is a path, as that of a disk.
func fileName(name string) string {
	var b strings.Builder
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && b.Len() > 0:
			b.WriteRune(c)
		default:
			b.WriteByte('_')
		}
	}
	const most = 64 // a socket's whole path has room for 107 bytes
	if b.Len() > most {
		return b.String()[:most]
	}
	return b.String()
}

func groupID(name string) (int, error) {
	if name == "" {
		return -1, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		if g, err = user.LookupGroupId(name); err != nil {
			return 0, fmt.Errorf("group %q: there is none of that name or number", name)
		}
	}
	return strconv.Atoi(g.Gid)
}

// makeDir makes the folder of the sockets, or sees that nobody else can put anything
// there.
func makeDir(dir string, gid int) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("%s: cannot make the folder of the sockets: %w", dir, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s: is no folder, and sockets go into one; remove it", dir)
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("%s: anybody may write there, and could pose as a volume; chmod o-w", dir)
	case ok && int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("%s: belongs to somebody else (user %d); choose another folder", dir, owner.Uid)
	}
	if gid >= 0 {
		if err := os.Chown(dir, -1, gid); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}

// listen makes the socket. One that a process of the same number has left is replaced;
// one that somebody answers is not.
func listen(path string, gid int) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%s: is no socket, and one is to be there; remove it", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("%s: this process publishes a volume of that name already", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	err = os.Chmod(path, 0o660)
	if err == nil && gid >= 0 {
		err = os.Chown(path, -1, gid)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}
