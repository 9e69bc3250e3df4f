package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"google.golang.org/grpc/credentials"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/auditlog"
	"github.com/acp-io/acp/internal/audit/exporter"
	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/audit/hubble"
	"github.com/acp-io/acp/internal/audit/policyhistory"
	"github.com/acp-io/acp/internal/audit/rollup"
	"github.com/acp-io/acp/internal/audit/sharding"
	"github.com/acp-io/acp/internal/audit/spool"
	"github.com/acp-io/acp/internal/health"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/serving"
	"github.com/acp-io/acp/internal/wallclock"
)

// collector holds the parts of the program.
type collector struct {
	o        options
	log      *slog.Logger
	store    flowstore.Writer
	writer   audit.Writer // the spool in front of the store, if there is one, else the store
	spool    *spool.Spool
	rollups  *rollup.Aggregator
	source   *policyhistory.Source
	auditLog *auditlog.Writer
	sharder  *sharding.Sharder

	metrics   *hubble.Metrics
	ends      *serving.CertificateEnds
	probes    *health.Probes
	followers *followers
	// registrations is nil if only the members of the settings are followed.
	registrations *registrations
}

// collect creates and runs the parts, and stops them in the order in which flows pass through them. It registers all metrics in
// the registry.
func collect(ctx context.Context, o options, reg *prometheus.Registry, stdout io.Writer, log *slog.Logger) error {
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	probes, beside := health.New(), serving.NewGroup()
	defer func() { _ = beside.Close() }() // closing the probes loses no data
	c := &collector{o: o, probes: probes, log: log, metrics: hubble.NewMetrics(reg), ends: &serving.CertificateEnds{}}
	reg.MustRegister(c.ends)
	c.followers = newFollowers(c)
	for _, m := range o.members {
		if m.address == "" {
			continue
		}
		if _, err := o.filesOf(m).Credentials(); err != nil {
			return err
		}
	}
	host, err := hostcluster.Config(o.kubeconfig)
	if err != nil {
		return err
	}
	if c.source, err = policyhistory.New(policyhistory.Config{Host: host, Now: wallclock.Now, Log: log}); err != nil {
		return err
	}
	if o.registrations {
		if c.registrations, err = newRegistrations(host, o.kubefedNamespace, log); err != nil {
			return err
		}
	}
	if c.store, err = openStore(ctx, o.store, log); err != nil {
		return err
	}
	defer func() {
		if err := c.store.Close(); err != nil {
			log.Error("the flow store was not closed cleanly", "error", err)
		}
	}()
	if err := c.build(stdout, reg); err != nil {
		return err
	}
	address, err := c.serveBeside(ctx, beside, reg)
	if err != nil {
		return err
	}
	probes.Started()
	return c.serve(ctx, beside, address)
}

// serveBeside serves the probes and the metrics, and returns the address of the probes.
func (c *collector) serveBeside(ctx context.Context, g *serving.Group, reg *prometheus.Registry) (address string, err error) {
	probed := healthHandler(c.probes, c.health())
	if c.o.metricsAddress == "" {
		probed.Handle("GET /metrics", metricsHandler(reg))
	} else if _, err := g.Serve(ctx, serving.Config{
		Setting: "metrics-address", Address: c.o.metricsAddress,
		Certificate: c.o.metricsCertificate, Ends: c.ends, Server: health.Server(metricsHandler(reg)),
	}); err != nil {
		return "", err
	}
	e, err := g.Serve(ctx, serving.Config{Setting: "health-address", Address: c.o.healthAddress, Server: health.Server(probed)})
	if err != nil {
		return "", err
	}
	return e.Address(), nil
}

// build creates the parts that process what the sources deliver.
func (c *collector) build(stdout io.Writer, reg prometheus.Registerer) (err error) {
	c.writer = c.store
	if c.o.spoolDir != "" {
		if c.spool, err = spool.Open(spool.Config{Dir: c.o.spoolDir, MaxBytes: c.o.spoolBytes, Store: c.store, Log: c.log, Registerer: reg}); err != nil {
			return err
		}
		c.writer = c.spool
	}
	if c.rollups, err = rollup.New(
		rollup.Config{
			Store:         c.writer,
			Log:           c.log,
			Sources:       len(c.o.members),
			Registerer:    reg,
			Retention:     c.o.retention,
			FlowRetention: c.o.flowRetention,
			Now:           wallclock.Now,
		},
	); err != nil {
		return err
	}
	if c.auditLog, err = c.o.auditLog.open(stdout, c.log, reg); err != nil {
		return err
	}
	if c.o.shareAs != "" {
		if c.sharder, err = sharding.New(sharding.Config{Leases: c.store, Name: c.o.shareAs, Log: c.log, Registerer: reg}); err != nil {
			return err
		}
	}
	return nil
}

// sourceFollowers returns a follower of each source of the member, in the order of its sources, which are among count.
func (c *collector) sourceFollowers(m member, count int) ([]*hubble.Follower, error) {
	var out []*hubble.Follower
	var beside func() bool
	if m.accessLog != "" {
		cfg := c.config(m, count)
		cfg.Lines, cfg.AccessLog, cfg.BesideHubble = lines(m.accessLog), true, m.hasHubble()
		f, err := hubble.New(cfg)
		if err != nil {
			return nil, err
		}
		out, beside = append(out, f), func() bool { return f.State().Connected }
	}
	if !m.hasHubble() {
		return out, nil
	}
	cfg := c.config(m, count)
	cfg.Address, cfg.BesideIstio = m.address, beside
	if m.file != "" {
		cfg.Lines = lines(m.file)
	}
	if m.relay != nil {
		cfg.Proxy = m.relay.Proxy
	}
	f, err := hubble.New(cfg)
	return append([]*hubble.Follower{f}, out...), err
}

// lines returns the lines of a file, or of the standard input for "-".
func lines(file string) hubble.LineSource {
	if file == "-" {
		return &exporter.Stream{R: os.Stdin}
	}
	return &exporter.File{Path: file}
}

// config returns the configuration that all followers of a member have in common.
func (c *collector) config(m member, count int) hubble.Config {
	cfg := hubble.Config{
		Member: m.name, Members: count, RawFlows: c.o.flows, MaxAge: c.o.retention,
		Credentials: func() (credentials.TransportCredentials, error) { return c.o.filesOf(m).Credentials() },
		Version:     func() string { return c.o.filesOf(m).Version() },
		Resume:      c.writer, Policies: c.source, Lags: c.source.Lags, Sink: c.rollups, Metrics: c.metrics, Now: wallclock.Now, Log: c.log,
	}
	if c.auditLog != nil {
		cfg.Listener = c.auditLog
	}
	return cfg
}

// follow follows the member until the context ends; with sharding, only while this collector holds the lease of the member.
//
// It passes the followers of the member's sources to started each time that they start.
func (c *collector) follow(ctx context.Context, m member, count int, started func([]*hubble.Follower)) {
	if c.sharder == nil {
		c.followNow(ctx, m, count, started)
		return
	}
	c.sharder.Run(ctx, m.name, func(ctx context.Context, holder string) {
		c.rollups.SetHolder(m.name, holder)
		c.followNow(ctx, m, count, started)
		// The counts are stored while the lease is still held.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = c.rollups.Flush(last) // Run retries after an error; without the lease the store rejects the batch
	})
}

func (c *collector) followNow(ctx context.Context, m member, count int, started func([]*hubble.Follower)) {
	followers, err := c.sourceFollowers(m, count)
	if err != nil {
		c.log.Error("the member cannot be followed", "member", m.name, "error", err) // cannot happen: every member has a name and a source
		return
	}
	started(followers)
	var running sync.WaitGroup
	for _, f := range followers {
		running.Go(func() { f.Run(ctx) })
	}
	running.Wait()
}

func (c *collector) health() sources {
	s := sources{
		policiesRead: func() bool { return c.source.Snapshot() != nil }, policiesProblem: c.source.Problem,
		storeErr: c.rollups.Err, spooling: func() error { return nil },
		members: c.followers.states,
	}
	if c.registrations != nil {
		s.registrations = c.registrations.state
	}
	if c.spool != nil {
		s.spooling = c.spool.Err
	}
	return s
}

func (c *collector) serve(ctx context.Context, beside *serving.Group, address string) error {
	// The parts that ingest flows end with ctx. The roll-ups, the spool and the audit log end after them, so that the last flush
	// includes all counts.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 2) // one from each part that can fail
	fail := func(err error) {
		failed <- err
		cancel()
	}
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()

	var ingesting sync.WaitGroup
	ingesting.Go(func() {
		if err := c.source.Run(ctx); err != nil {
			fail(err)
		}
	})
	if c.sharder != nil {
		ingesting.Go(func() { c.sharder.Balance(ctx) })
	}
	ingesting.Go(func() {
		if c.registrations != nil {
			c.followRegistrations(ctx)
		} else {
			c.followers.set(ctx, c.o.members, nil)
		}
		c.followers.running.Wait()
		cancel() // every source has ended
	})
	go func() {
		select {
		case err := <-beside.Failed():
			fail(err)
		case <-ctx.Done():
		}
	}()
	written := make(chan error, 1)
	go func() { written <- c.rollups.Run(writing) }()
	var spooling sync.WaitGroup
	if c.spool != nil {
		spooling.Go(func() { c.spool.Run(writing) })
	}
	auditLogDone := make(chan error, 1)
	go func() {
		if c.auditLog == nil {
			auditLogDone <- nil
			return
		}
		auditLogDone <- c.auditLog.Run(writing)
	}()
	c.log.Info("flow collector started", "members", len(c.o.members), "registrations", c.registrations != nil, "health", address)

	<-ctx.Done()
	c.log.Info("stopping")
	c.probes.Stopping()
	stored := make(chan error, 1)
	go func() {
		ingesting.Wait()
		stopWriting()
		err := errors.Join(<-written, <-auditLogDone)
		spooling.Wait()
		stored <- err
	}()
	grace := time.NewTimer(c.o.shutdownGrace)
	defer grace.Stop()
	var err error
	select {
	case err = <-stored:
	case <-grace.C:
		err = fmt.Errorf(
			"what was counted last was not stored within --shutdown-grace %s; it is read again at the next start as far as its source still holds it",
			c.o.shutdownGrace,
		)
	}
	select {
	case cause := <-failed:
		return errors.Join(cause, err)
	default:
		return err
	}
}
