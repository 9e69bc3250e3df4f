package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	"gorm.io/gorm"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	packagestore "github.com/acp-io/acp/internal/accesspackage/gormstore"
	"github.com/acp-io/acp/internal/accesspackage/holderupdate"
	"github.com/acp-io/acp/internal/accessreview"
	reviewstore "github.com/acp-io/acp/internal/accessreview/gormstore"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/credential"
	credentialstore "github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/externalchanges"
	outsidestore "github.com/acp-io/acp/internal/externalchanges/gormstore"
	"github.com/acp-io/acp/internal/health"
	"github.com/acp-io/acp/internal/idempotency"
	oncestore "github.com/acp-io/acp/internal/idempotency/gormstore"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/ledger/anchor"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/notify"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/rolloutapi"
	"github.com/acp-io/acp/internal/portal/ticketapi"
	"github.com/acp-io/acp/internal/rollout"
	rolloutstore "github.com/acp-io/acp/internal/rollout/gormstore"
	savedviewstore "github.com/acp-io/acp/internal/savedview/gormstore"
	"github.com/acp-io/acp/internal/serving"
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

// operate wires the parts together and serves until the context ends. The metrics are in the registry.
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
	in, err := o.inputs()
	if err != nil {
		return err
	}
	publicURL, config, channels := in.publicURL, in.host, in.channels
	probes.Starting("opening the database and bringing its schema up to date")
	db, err := database.OpenWithRefresh(starting, in.dsn, o.dsn)
	if err != nil {
		return err
	}
	defer func() {
		if err := db.Close(); err != nil {
			log.Error("the database was not closed cleanly", "error", err)
		}
	}()
	store := gormstore.New(db)
	probes.Starting("reading the catalog")
	directory, err := openCatalog(starting, o, db, log)
	if err != nil {
		return err
	}
	credentials := credentialstore.New(db, ledgerstore.Append)
	flows := openFlows(in.flows)
	defer func() { _ = flows.Close() }() // only read

	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	probes.Starting("contacting the host cluster")
	hub := core.NewHub()
	h, err := host.New(config, hub.Resource, log)
	if err != nil {
		return err
	}
	h.InNamespace(o.namespace)
	directory.Grants = h.GrantsOf
	if err := checkKinds(starting, h, log); err != nil {
		return err
	}
	once := oncestore.New(db)
	registrar := workloads.New(
		workloads.Config{
			Cluster:       h.Workloads(),
			State:         h.Workloads().State,
			Catalog:       directory.Catalog,
			Covered:       h.SubjectCovered,
			Granted:       h.Granted,
			MostAddresses: o.workloadAddresses,
			Now:           wallclock.Now,
			Record: func(ctx context.Context, e ...ledger.Entry) error {
				return db.Write(ctx, func(tx *gorm.DB) error { return ledgerstore.Append(tx, e...) })
			},
		},
	)
	traces, err := otlp.Open(ctx, otlp.Config{Settings: o.tracing, Service: "acp-portal", Version: version.String(), Log: log, Metrics: registry})
	if err != nil {
		return err
	}
	times := ticketapi.NewTicketTimes(registry)
	var outbox []*approval.Worker
	finish := make(chan struct{}) // closed when no request can make a job any more
	states := rolloutstore.New(db)
	seen := rollout.NewInsight(
		rollout.InsightConfig{
			Flows:     flows,
			Snapshot:  h.Snapshot,
			Fleet:     h.Fleet,
			Enforced:  h.Enforced,
			Store:     states,
			Window:    o.evidenceWindow,
			Threshold: o.evidenceThreshold,
			Now:       wallclock.Now,
		},
	)
	onCall, followSchedules, err := openSchedules(o, directory.Catalog, log)
	if err != nil {
		return err
	}
	asked, err := openAccessRequests(o, config, directory.Catalog, log)
	if err != nil {
		return err
	}
	packages := packagestore.New(db)
	tickets, err := approval.NewService(
		approval.Config{
			Store:       store,
			Delegations: store,
			Catalog:     directory.Catalog,
			Host:        h,
			Evidence:    seen,
			Workloads:   registrar,
			Packages:    packages,
			OnCall:      onCall,
			Builtin:     o.builtin,
			LoginMaxAge: o.loginMaxAge,
			Now:         wallclock.Now,
			Tracer:      traces.Tracer(),
			OnChange: func(t *approval.Ticket) {
				hub.Ticket(t)
				times.Changed(t)
				if asked != nil {
					asked.Notice(t)
				}
			},
			Requeue: func() { requeue(outbox) },
		},
	)
	if err != nil {
		return err
	}
	objects := outsidestore.New(db)
	h.RecordOwnChanges(objects.AddOwnChange)
	h.RecordOwnInstructions(objects.AddOwnInstruction)
	recorder := &externalchanges.Recorder{
		Host:    h,
		Store:   objects,
		Now:     wallclock.Now,
		Log:     log,
		Settle:  externalchanges.DefaultSettle,
		Every:   externalchanges.DefaultEvery,
		Compare: externalchanges.DefaultCompare,
		ResourceID: func(name string) string {
			e, _ := directory.Catalog().ByName(name)
			return e.ID
		},
	}
	h.OnObject(recorder.Notice)
	h.OnInstruction(recorder.NoticeInstruction)
	follower := approval.NewFollower(tickets, h, h.PolicyChanges(), resyncEvery, log)
	writer := h.Writer()
	writer.Ledger = ledgerstore.NewReader(db)
	replica := rand.Text()
	rollouts := rollout.NewService(rollout.Config{Store: states, Writer: writer, Host: h, Catalog: directory.Catalog,
		Organizations: tickets.Organizations, Now: wallclock.Now, Log: log})
	downgrader := &rollout.FleetDowngrader{
		Service: rollout.NewService(
			rollout.Config{Store: states, Writer: h.UnlimitedWriter(), Host: h, Catalog: directory.Catalog, Organizations: tickets.Organizations,
				Now: wallclock.Now, Log: log},
		),
		Objects: rolloutapi.ProtectedBy(h),
		ClassOf: h.ClassOf,
		MaxWait: fleetDowngradeMaxWait,
		Running: ctx,
	}
	guard := &rollout.Watcher{
		Service:   rollouts,
		Name:      replica,
		Denials:   seen,
		Tickets:   rollout.ApprovalTickets{Service: tickets},
		Resources: h.Enforced,
		Every:     guardEvery,
		Log:       log,
	}
	reviewStore := reviewstore.New(db)
	reviews := accessreview.NewService(
		accessreview.Config{Store: reviewStore, Grants: tickets, Catalog: directory.Catalog, ClassOf: h.ClassOf, HostKnown: h.Ready,
			Now: wallclock.Now},
	)
	reviewer := accessreview.NewWorker(reviews, replica, &accessreview.Flows{Reader: flows, Snapshot: h.Snapshot, Fleet: h.Fleet}, reviewEvery, log)
	updater := &holderupdate.Worker{Name: replica, Store: packages, Tickets: tickets, Reader: store, Now: wallclock.Now, Every: packagesEvery, Log: log}
	for i := range workers {
		outbox = append(
			outbox,
			approval.NewWorker(approval.WorkerConfig{
				Name:        fmt.Sprintf("%s-%d", replica, i),
				Service:     tickets,
				Outbox:      store,
				Writer:      writer,
				Objects:     writer,
				PolicyName:  policy.PolicyNameFor,
				DefaultMode: h.DefaultMode,
				Log:         log,
				Lease:       jobLease,
				Poll:        storeEvery,
				Finish:      finish,
				Wrote:       follower.Enqueue,
			}),
		)
	}
	dist, err := fs.Sub(web.Dist, "dist")
	if err != nil {
		return err
	}
	notifications := notifystore.New(db)
	registry.MustRegister(&notify.Collector{Store: notifications, Now: wallclock.Now, Log: log})
	anchors, err := keeper(o, config, ledgerstore.NewReader(db), log)
	if err != nil {
		return err
	}
	server, err := portal.New(streams, portal.Config{
		Config: core.Config{Accepting: probes.Accepting, PublicURL: publicURL, TrustedProxies: in.trustedProxies,
			EmbedOrigins: o.embedOrigins, Tickets: tickets, Directory: directory, Once: once,
			Sessions: credentials.Manager(), SessionIdle: o.sessionIdle, Credentials: &credential.Service{Store: credentials, Now: wallclock.Now},
			Issuer: o.issuer, ClientID: o.clientID, ClientSecret: o.clientSecret, Claims: o.claims, Web: dist, Hub: hub, Metrics: registry,
			Stats:  counted(store, credentials),
			Tracer: traces.Tracer(), TraceURL: o.traceURL, Now: wallclock.Now, Log: log},
		Host:            h,
		Flows:           flows,
		EvidenceWindow:  o.evidenceWindow,
		Insight:         seen,
		Rollout:         rollouts,
		FleetDowngrader: downgrader,
		Inbox:           notifications,
		Slack:           channels.Slack,
		Receivers:       channels.Receivers,
		Channels:        channels.People,
		SavedViews:      savedviewstore.New(db),
		Packages:        packages,
		Reviews:         reviews,
		ReviewStore:     reviewStore,
		Workloads:       registrar,
		Ledger:          ledgerstore.NewReader(db),
		Demo:            o.demo,
		Witnesses:       func(ctx context.Context) ([]ledger.Witness, error) { return anchor.Witnesses(ctx, anchors.Anchors) },
	})
	if err != nil {
		return err
	}

	var background, working sync.WaitGroup
	ended := make(chan error, 1) // of the host cluster's reader
	background.Go(func() { directory.Run(ctx, catalogEvery) })
	background.Go(func() { hub.FollowStore(ctx, store, wallclock.Now, storeEvery, log) })
	background.Go(func() { hub.FollowInboxes(ctx, notifications, storeEvery, log) })
	background.Go(func() { follower.Run(ctx) })
	background.Go(func() { prune(ctx, credentials, once, log) })
	background.Go(func() { anchors.Run(ctx) })
	background.Go(func() { guard.Run(ctx) })
	background.Go(func() { reviewer.Run(ctx) })
	background.Go(func() { updater.Run(ctx) })
	background.Go(func() { recorder.Run(ctx) })
	background.Go(func() { followSchedules(ctx) })
	if asked != nil {
		background.Go(func() { asked.Run(ctx, tickets) })
	}
	background.Go(func() {
		if err := h.FollowMemberEvents(ctx, recordMemberEvents(db)); err != nil {
			log.Error("events about members cannot be followed, so they are not recorded in the ledger", "error", err)
		}
	})
	for _, run := range notifier(notifications, store, store, directory.Catalog, onCall, channels, publicURL, replica, hub.Inbox, log) {
		background.Go(func() { run(ctx) })
	}
	for _, w := range outbox {
		working.Go(func() { w.Run(ctx) })
	}
	background.Go(func() {
		if err := h.Run(ctx); err != nil && ctx.Err() == nil {
			ended <- err
		}
	})
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

// requeue makes workers read jobs of other replicas at once.
func requeue(workers []*approval.Worker) {
	for _, w := range workers {
		w.Requeue()
	}
}

// checkKinds returns an error if the host cluster lacks a kind. The portal starts without a host cluster, and waits for it.
func checkKinds(ctx context.Context, h *host.Host, log *slog.Logger) error {
	err := h.CheckKinds(ctx)
	if err == nil || errors.Is(err, host.ErrKindMissing) {
		return err //nolint:wrapcheck // it says all
	}
	log.Warn("the host cluster cannot be reached; the portal starts and waits for it", "error", err)
	return nil
}

func prune(ctx context.Context, s credential.Store, once idempotency.Store, log *slog.Logger) {
	t := time.NewTicker(pruneEvery)
	defer t.Stop()
	for {
		if err := errors.Join(
			s.Prune(ctx, wallclock.Now()), once.Prune(ctx, wallclock.Now().Add(-idempotency.AnswerRetention)),
		); err != nil && ctx.Err() == nil {
			log.Warn("expired sessions, tokens and idempotency keys could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
