package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/health"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/ledger/anchor"
	"github.com/acp-io/acp/internal/portal"
	"github.com/acp-io/acp/internal/portal/core"
	savedviewstore "github.com/acp-io/acp/internal/savedview/gormstore"
	"github.com/acp-io/acp/internal/serving"
	"github.com/acp-io/acp/internal/tracing"
	"github.com/acp-io/acp/internal/tracing/otlp"
	"github.com/acp-io/acp/internal/version"
	"github.com/acp-io/acp/internal/wallclock"
	"github.com/acp-io/acp/web"
)

const (
	catalogEvery = 3 * time.Second
	storeEvery   = time.Second
	resyncEvery  = 30 * time.Second
	pruneEvery   = 10 * time.Minute
	guardEvery   = 10 * time.Second
	reviewEvery  = 10 * time.Second
	// packagesEvery is the interval of the work on versions of access packages that existing holders are given.
	packagesEvery = 5 * time.Second
	// fleetDowngradeMaxWait is how long a request for a fleet downgrade waits for its completion. The downgrade then continues in the
	// background.
	fleetDowngradeMaxWait = 5 * time.Second
	jobLease              = 5 * time.Second // longer than the timeout of a write
	workers               = 4               // jobs of one resource run in order, those of different resources concurrently
	// gcPercent is the GC percentage. The long-lived heap is small compared with short-lived response data, so a larger heap
	// halves the work of the garbage collector. The environment variable GOGC overrides it.
	gcPercent = 200
)

// run serves until the context ends.
func run(ctx context.Context, o options, log *slog.Logger) error {
	return operate(ctx, o, prometheus.NewRegistry(), log)
}

// operate opens the sources, starts the services and serves until the context ends. The metrics are in the registry.
func operate(ctx context.Context, o options, registry *prometheus.Registry, log *slog.Logger) error {
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	// Requests and jobs that have begun are finished after ctx ends, so the components run in a separate context.
	signal := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(signal))
	defer cancel()
	streams, endStreams := context.WithCancel(ctx)
	defer endStreams()
	// A signal breaks off the start, but nothing that outlives it.
	starting, breakOff := context.WithCancel(ctx)
	defer breakOff()
	started := context.AfterFunc(signal, breakOff)

	probes := health.New()
	beside := serving.NewGroup()
	defer func() { _ = beside.Close() }() // nothing is lost with a probe
	ends := &serving.CertificateEnds{}
	registry.MustRegister(ends)
	if err := serveBeside(ctx, beside, o, probes, registry, ends); err != nil {
		return err
	}
	front := &http.Server{ReadHeaderTimeout: time.Second} // see Configure
	entry, err := serving.Listen(ctx, serving.Config{Setting: "listen", Address: o.listen, Certificate: o.certificate, Ends: ends, Server: front})
	if err != nil {
		return err
	}
	defer func() { _ = entry.Close() }() // closed already, unless starting failed
	src, err := openSources(starting, o, probes, log)
	if err != nil {
		return err
	}
	defer func() {
		if err := src.Close(); err != nil {
			log.Error("the database was not closed cleanly", "error", err)
		}
	}()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	traces, err := otlp.Open(ctx, otlp.Config{Settings: o.tracing, Service: "acp-portal", Version: version.String(), Log: log, Metrics: registry})
	if err != nil {
		return err
	}
	finish := make(chan struct{}) // closed when no request can add a job any more
	v, err := newServices(ctx, o, src, registry, traces.Tracer(), finish, log)
	if err != nil {
		return err
	}
	server, err := newServer(streams, v, probes, registry, traces.Tracer())
	if err != nil {
		return err
	}

	var background, working sync.WaitGroup
	ended := v.start(ctx, &background, &working)
	probes.Require("portal", func(ctx context.Context) error { _, err := server.Ready(ctx); return err })
	server.Configure(front)
	served := make(chan error, 1)
	go func() { served <- entry.Serve() }() //nolint:contextcheck // it ends by Shutdown, in order
	started()
	probes.Started()
	log.Info("serving the portal", "address", o.publicURL)

	end := ending{
		delay:       o.shutdownDelay,
		grace:       o.shutdownGrace,
		probes:      probes,
		endStreams:  endStreams,
		entry:       entry,
		finish:      func() { close(finish) },
		working:     &working,
		closeTraces: traces.Close,
		log:         log,
	}
	err = end.wait(signal, served, ended, beside.Failed())
	err = errors.Join(err, end.run(ctx))
	cancel()
	background.Wait()
	return err
}

// newServer returns the HTTP server over the services. Streams of events end with the context.
func newServer(
	streams context.Context, v *services, probes *health.Probes, registry *prometheus.Registry, tracer *tracing.Tracer,
) (*core.Server, error) {
	dist, err := fs.Sub(web.Dist, "dist")
	if err != nil {
		return nil, err //nolint:wrapcheck // the name is constant
	}
	o := v.options
	return portal.New(streams, portal.Config{
		Config: core.Config{Accepting: probes.Accepting, PublicURL: v.publicURL, TrustedProxies: v.trustedProxies,
			EmbedOrigins: o.embedOrigins, Tickets: v.approvals, Directory: v.directory, Once: v.idempotency,
			Sessions: v.credentials.Manager(), SessionIdle: o.sessionIdle, Credentials: &credential.Service{Store: v.credentials, Now: wallclock.Now},
			Issuer: o.issuer, ClientID: o.clientID, ClientSecret: o.clientSecret, Claims: o.claims, Web: dist, Hub: v.hub, Metrics: registry,
			Stats:  v.stats,
			Tracer: tracer, TraceURL: o.traceURL, Now: wallclock.Now, Log: v.log},
		Host:            v.host,
		Flows:           v.flows,
		EvidenceWindow:  o.evidenceWindow,
		Insight:         v.evidence,
		Rollout:         v.rollouts,
		FleetDowngrader: v.downgrader,
		Inbox:           v.notifications,
		Slack:           v.channels.Slack,
		Receivers:       v.channels.Receivers,
		Channels:        v.channels.People,
		SavedViews:      savedviewstore.New(v.db),
		Packages:        v.packages,
		Reviews:         v.reviews,
		ReviewStore:     v.reviewStore,
		Workloads:       v.workloads,
		Ledger:          v.ledger,
		Demo:            o.demo,
		Witnesses:       func(ctx context.Context) ([]ledger.Witness, error) { return anchor.Witnesses(ctx, v.anchors.Anchors) },
	})
}
