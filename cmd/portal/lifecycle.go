package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/acp-io/acp/internal/health"
	"github.com/acp-io/acp/internal/serving"
)

// serveBeside serves the probes and the metrics. It is called before the database is opened, so that the kubelet can distinguish a
// long migration from a program that hangs.
func serveBeside(
	ctx context.Context, g *serving.Group, o options, probes *health.Probes, registry *prometheus.Registry, ends *serving.CertificateEnds,
) error {
	if o.healthAddress != "" {
		if _, err := g.Serve(ctx, serving.Config{Setting: "health-address", Address: o.healthAddress, Server: health.Server(probes.Handler())}); err != nil {
			return err
		}
	}
	if o.metricsAddress != "" {
		if _, err := g.Serve(
			ctx,
			serving.Config{
				Setting:     "metrics-address",
				Address:     o.metricsAddress,
				Certificate: o.metricsCertificate,
				Ends:        ends,
				Server:      health.Server(metricsHandler(registry)),
			},
		); err != nil {
			return err
		}
	}
	return nil
}

// ending shuts the portal down in order.
type ending struct {
	// delay is how long new requests are still accepted, and grace the timeout of the whole shutdown, including delay.
	delay, grace time.Duration
	probes       *health.Probes
	endStreams   func()
	entry        *serving.Endpoint
	// finish makes the workers of the outbox return when no job is due.
	finish  func()
	working *sync.WaitGroup
	// closeTraces sends the traces that were not sent yet.
	closeTraces func(context.Context)
	log         *slog.Logger
}

// wait returns when the portal must stop: nil after a signal, or the error of the part that failed, in which case the shutdown does
// not wait.
func (e *ending) wait(signal context.Context, served, ended, failed <-chan error) (err error) {
	select {
	case <-signal.Done():
		return nil
	case err = <-served:
	case err = <-ended:
	case err = <-failed:
	}
	e.delay = 0
	return err
}

// run makes the portal unready, waits for requests in progress, and then for approved changes that are due. Changes that are not
// written in time stay in the database, from where another replica or the next start writes them.
func (e *ending) run(ctx context.Context) error {
	e.probes.Stopping()
	ctx, cancel := context.WithTimeout(ctx, e.grace)
	defer cancel()
	e.log.Info("stopping", "delay", e.delay, "grace", e.grace)
	if e.delay > 0 {
		wait := time.NewTimer(e.delay)
		defer wait.Stop()
		<-wait.C
	}
	e.endStreams()
	err := e.entry.Shutdown(ctx)
	e.finish()
	done := make(chan struct{})
	go func() { e.working.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.Join(
			err,
			fmt.Errorf("approved changes were still being written when --shutdown-grace %s was over; they are taken up again by the next portal", e.grace),
		)
	}
	e.closeTraces(ctx)
	return err
}
