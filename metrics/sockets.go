// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Socket is where a process publishes a volume.
type Socket struct {
	Path string
	// Volume is the name as the file has it, PID the process's number.
	Volume string
	PID    int
}

// Sockets lists those in a folder, RuntimeDir where that is "". A folder that is not
// there has none. It does not ask whether anybody answers.
func Sockets(dir string) ([]Socket, error) {
	if dir == "" {
		dir = RuntimeDir()
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("cannot list the sockets: %w", err)
	}
	var all []Socket
	for _, e := range entries {
		name, isSocket := strings.CutSuffix(e.Name(), socketSuffix)
		dot := strings.LastIndexByte(name, '.')
		if !isSocket || dot < 1 || e.Type() != fs.ModeSocket {
			continue
		}
		if pid, err := strconv.Atoi(name[dot+1:]); err == nil && pid > 0 {
			all = append(all, Socket{filepath.Join(dir, e.Name()), name[:dot], pid})
		}
	}
	return all, nil
}

// mostOfAnswer bounds what is read from a socket.
const mostOfAnswer = 64 << 20

// Get asks for a path, /metrics or /stats, and calls read with the answer. A socket that
// nobody listens on any more answers to errors.Is(err, syscall.ECONNREFUSED).
func (s Socket) Get(ctx context.Context, path, accept string, read func(http.Header, io.Reader) error) error {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", s.Path)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://pollux"+path, nil)
	if err != nil {
		return err
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: answers %s", s.Path, answer.Status)
	}
	if err := read(answer.Header, io.LimitReader(answer.Body, mostOfAnswer)); err != nil {
		return fmt.Errorf("%s: %w", s.Path, err)
	}
	return nil
}

// SocketGatherer is a prometheus.Gatherer of all volumes that processes of the host
// publish in a folder. Each metric gets the label pid, as several may have one volume
// open to read.
type SocketGatherer struct {
	// Dir is the folder; "" is RuntimeDir.
	Dir string
	// Patience is how long a socket may take; 0 means 3 s. What hangs is left out.
	Patience time.Duration
}

const defaultPatience = 3 * time.Second

// Gather implements prometheus.Gatherer. Sockets that nobody answers are left out; what
// is wrong with others is in the error, beside all that could be gathered.
func (g SocketGatherer) Gather() ([]*dto.MetricFamily, error) {
	sockets, err := Sockets(g.Dir)
	if err != nil {
		return nil, err
	}
	patience := g.Patience
	if patience <= 0 {
		patience = defaultPatience
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answers, errs := make([][]*dto.MetricFamily, len(sockets)), make([]error, len(sockets))
	var all sync.WaitGroup
	for i, s := range sockets {
		all.Go(func() { answers[i], errs[i] = s.families(ctx) })
	}
	all.Wait()
	m := merger{families: make(map[string]*dto.MetricFamily), processes: make(map[string]bool)}
	for i, s := range sockets {
		if isStale(errs[i]) {
			errs[i] = nil
			continue
		}
		for _, f := range answers[i] {
			m.add(f, s.PID)
		}
	}
	return m.sorted(), errors.Join(errs...)
}

// protobuf is what keeps histograms as they are.
var protobuf = string(expfmt.NewFormat(expfmt.TypeProtoDelim))

func (s Socket) families(ctx context.Context) (families []*dto.MetricFamily, err error) {
	err = s.Get(ctx, "/metrics", protobuf, func(h http.Header, body io.Reader) error {
		decoder := expfmt.NewDecoder(body, expfmt.ResponseFormat(h))
		for {
			var f dto.MetricFamily
			switch err := decoder.Decode(&f); {
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			families = append(families, &f)
		}
	})
	return families, err
}

// merger puts together what several processes tell.
type merger struct {
	families map[string]*dto.MetricFamily
	// processes are the metrics without a volume, of each process, that are there.
	processes map[string]bool
}

func (m *merger) add(f *dto.MetricFamily, pid int) {
	family := m.families[f.GetName()]
	if family == nil {
		family = &dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type}
		m.families[f.GetName()] = family
	}
	if family.GetType() != f.GetType() {
		return // of another version of pollux
	}
	name, value := "pid", strconv.Itoa(pid)
	for _, metric := range f.GetMetric() {
		if !slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == "volume" }) {
			if key := f.GetName() + " " + value; m.processes[key] {
				continue // another volume of that process has told it
			} else {
				m.processes[key] = true
			}
		}
		metric.Label = append(metric.Label, &dto.LabelPair{Name: &name, Value: &value})
		slices.SortFunc(metric.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		family.Metric = append(family.Metric, metric)
	}
}

func (m *merger) sorted() []*dto.MetricFamily {
	var all []*dto.MetricFamily
	for _, f := range m.families {
		if len(f.Metric) > 0 {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}
