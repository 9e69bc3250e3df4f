package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/internal/audit/hubble"
	"github.com/acp-io/acp/internal/audit/policies"
	"github.com/acp-io/acp/internal/audit/rollup"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/version"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "flow-collector: %v (see --help)\n", err)
		return exitUsage
	case o.version:
		fmt.Fprintln(stdout, "flow-collector", version.String())
		return exitOK
	}
	log := logger(o, stderr)
	if err := collect(ctx, o, log); err != nil {
		fmt.Fprintf(stderr, "flow-collector: %v\n", err)
		return exitError
	}
	return exitOK
}

func logger(o options, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: o.logLevel}
	var h slog.Handler = slog.NewTextHandler(w, opts)
	if o.logFormat == "json" {
		h = slog.NewJSONHandler(w, opts)
	}
	log := slog.New(h)
	klog.SetSlogLogger(log.With("component", "kubernetes-client"))
	ctrllog.SetLogger(logr.FromSlogHandler(h))
	return log
}

// collect wires and runs the parts, and stops them in the order in which flows pass through them.
func collect(ctx context.Context, o options, log *slog.Logger) error {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	if _, err := o.tls.Credentials(); err != nil {
		return err
	}
	host, err := hostcluster.Config(o.kubeconfig)
	if err != nil {
		return err
	}
	source, err := policies.New(policies.Config{Host: host, Log: log})
	if err != nil {
		return err
	}
	store, err := sqlite.Open(ctx, o.storePath)
	if err != nil {
		return err
	}
	defer func() {
		if err := store.Close(); err != nil {
			log.Error("the flow store was not closed cleanly", "error", err)
		}
	}()
	totals, err := rollup.New(rollup.Config{Store: store, Log: log, Registerer: reg, Retention: o.retention})
	if err != nil {
		return err
	}
	followers, err := follow(o, source, store, totals, reg, log)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.healthAddress)
	if err != nil {
		return fmt.Errorf("listen on the health address %s (is the port in use? choose another with --health-address): %w", o.healthAddress, err)
	}
	health := sources{
		policiesRead: func() bool { return source.Snapshot() != nil }, policiesProblem: source.Problem,
		storeErr: totals.Err, members: func() []hubble.State { return states(followers) },
	}
	server := &http.Server{Handler: healthHandler(health, reg), ReadHeaderTimeout: 5 * time.Second}
	return serve(ctx, log, server, listener, source, followers, totals)
}

func follow(o options, source *policies.Source, store *sqlite.Store, sink hubble.Sink, reg prometheus.Registerer, log *slog.Logger) ([]*hubble.Follower, error) {
	metrics := hubble.NewMetrics(reg)
	var out []*hubble.Follower
	for _, m := range o.members {
		f, err := hubble.New(hubble.Config{
			Member: m.name, Address: m.address, Credentials: o.tls.Credentials, Version: o.tls.Version,
			Resume: store, Evaluators: source, Sink: sink, Metrics: metrics, Log: log,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func states(followers []*hubble.Follower) []hubble.State {
	out := make([]hubble.State, 0, len(followers))
	for _, f := range followers {
		out = append(out, f.State())
	}
	return out
}

func serve(ctx context.Context, log *slog.Logger, server *http.Server, listener net.Listener,
	source *policies.Source, followers []*hubble.Follower, totals *rollup.Aggregator) error {
	// What takes in flows ends with ctx; the roll-ups end after it, so that the last flush has everything.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 2) // one from each part that can end by itself
	fail := func(err error) {
		failed <- err
		cancel()
	}
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()

	var takingIn sync.WaitGroup
	takingIn.Go(func() {
		if err := source.Run(ctx); err != nil {
			fail(err)
		}
	})
	for _, f := range followers {
		takingIn.Go(func() { f.Run(ctx) })
	}
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serve health: %w", err))
		}
	}()
	written := make(chan error, 1)
	go func() { written <- totals.Run(writing) }()
	log.Info("flow collector started", "members", len(followers), "health", listener.Addr().String())

	<-ctx.Done()
	log.Info("stopping")
	takingIn.Wait()
	stopWriting()
	err := <-written
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer done()
	if e := server.Shutdown(closing); e != nil {
		log.Warn("the health server did not stop in time", "error", e)
	}
	select {
	case cause := <-failed:
		return errors.Join(cause, err)
	default:
		return err
	}
}
