// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"pollux/metrics"
)

// defaultListen is loopback alone: whoever wants more says so.
const defaultListen = "127.0.0.1:9867"

func newExporter() *cobra.Command {
	listen, dir := defaultListen, ""
	cmd := &cobra.Command{
		Use:   "exporter",
		Short: "Serve the metrics of all volumes that programs of this host publish",
		Long: `exporter gathers the figures of every volume that a program publishes, which pollux
bench and verify do and others by metrics.Publish, and serves them to Prometheus at
/metrics; /healthz answers ok. Each metric has the label pid, as several programs may
have one volume open.

Programs publish on unix sockets in /run/pollux, or without root in a folder of the
user's. One that nobody answers is left out, and one that hangs for 3 s.

It listens on loopback only, unless --listen says otherwise. SIGINT or SIGTERM ends it
in good order, with exit code 0.`,
		Example: `  pollux exporter
  pollux exporter --listen 127.0.0.1:0 --dir /run/pollux

  # What Prometheus gets.
  curl -s http://127.0.0.1:9867/metrics | grep pollux_volume_up`,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := listenMetrics(listen, metrics.SocketGatherer{Dir: dir})
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "pollux: metrics of all volumes at %s\n", s.url())
			<-cmd.Context().Done()
			return s.close()
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&listen, "listen", defaultListen, "address and port to serve on; port 0 takes a free one")
	flags.StringVar(&dir, "dir", "", "folder of the sockets (default "+metrics.RuntimeDir()+")")
	return cmd
}

// metricsServer serves metrics over HTTP.
type metricsServer struct {
	listener net.Listener
	server   *http.Server
	ended    chan error
}

// listenMetrics starts a server. The error is about the address.
func listenMetrics(address string, gatherer prometheus.Gatherer) (*metricsServer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usageError(fmt.Sprintf("cannot serve metrics on %s: %v", printable(address), err))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(gatherer))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	s := &metricsServer{listener: listener, ended: make(chan error, 1), server: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 16,
	}}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, nil
}

func (s *metricsServer) url() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// close ends the server; scrapes in progress have a second.
func (s *metricsServer) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close()
	}
	if err := <-s.ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
