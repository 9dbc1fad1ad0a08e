// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"pollux/metrics"
)

// metricsFlags say how others may watch a bench.
type metricsFlags struct {
	listen string
	linger durationFlag
}

func (f *metricsFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.listen, "metrics-listen", "", "serve metrics to Prometheus meanwhile, at this address and port")
	flags.Var(&f.linger, "metrics-linger", "go on serving so long when the bench is over")
}

// watch lets others watch the volume: over HTTP where that was asked for, and, where it has
// a name, on its socket. What it returns ends that, after the time that it is to linger.
func (b *benchRun) watch() (end func(context.Context) error, err error) {
	f := &b.flags.metrics
	var server *metricsServer
	if f.listen != "" {
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics.NewCollector(b.vol))
		if server, err = listenMetrics(f.listen, registry); err != nil {
			return nil, err
		}
		fmt.Fprintf(b.stderr, "pollux: metrics at %s\n", server.url())
	}
	var published *metrics.Publication
	if b.vol.handle != nil {
		// That nobody can watch is no reason not to measure.
		if published, err = metrics.Publish(b.vol, metrics.PublishOptions{}); err != nil {
			b.warn("not published: %v", err)
		}
	}
	return func(ctx context.Context) error {
		if server != nil && f.linger > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(f.linger)):
			}
		}
		if published != nil {
			_ = published.Close() // the figures are out
		}
		if server != nil {
			return server.close()
		}
		return nil
	}, nil
}
