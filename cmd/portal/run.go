package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"gorm.io/gorm"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/audit/flowstore"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/credential"
	credentialstore "github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/externalchanges"
	outsidestore "github.com/acp-io/acp/internal/externalchanges/gormstore"
	"github.com/acp-io/acp/internal/hostcluster"
	"github.com/acp-io/acp/internal/idempotency"
	oncestore "github.com/acp-io/acp/internal/idempotency/gormstore"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/ledger/anchor"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/notify"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/notify/setup"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/rollout"
	rolloutstore "github.com/acp-io/acp/internal/rollout/gormstore"
	"github.com/acp-io/acp/internal/wallclock"
	"github.com/acp-io/acp/web"
)

const (
	catalogEvery = 3 * time.Second
	storeEvery   = time.Second
	resyncEvery  = 30 * time.Second
	pruneEvery   = 10 * time.Minute
	guardEvery   = 10 * time.Second
	// downgradePatience is how long who downgrades waits for all of it; the rest goes on.
	downgradePatience = 5 * time.Second
	jobLease          = 5 * time.Second // more than a write may take
	workers           = 4               // jobs of one resource are done in order, those of others beside them
	// gcPercent: what the portal keeps is small beside what its answers are made of and leave at once; a heap half as large
	// again is worth half the collecting. GOGC says otherwise.
	gcPercent = 200
)

// run serves until the context ends.
func run(ctx context.Context, o options, log *slog.Logger) error {
	return operate(ctx, o, prometheus.NewRegistry(), log)
}

// operate wires the parts together and serves until the context ends. What is counted is in the registry.
func operate(ctx context.Context, o options, registry *prometheus.Registry, log *slog.Logger) error {
	ctrllog.SetLogger(logr.FromSlogHandler(log.Handler()))
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	listener, err := listen(ctx, o.listen)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }() // closed by the server already, unless starting failed
	secret := func() (string, error) { return readSecret(o.clientSecretFile) }
	if _, err := secret(); err != nil {
		return err
	}
	publicURL, err := url.Parse(o.publicURL)
	if err != nil {
		return fmt.Errorf("--public-url: %w", err)
	}
	config, err := hostcluster.Config(o.kubeconfig)
	if err != nil {
		return err
	}
	dsn, err := o.dsn()
	if err != nil {
		return err
	}
	db, err := database.OpenChanging(ctx, dsn, o.dsn)
	if err != nil {
		return err
	}
	defer func() {
		if err := db.Close(); err != nil {
			log.Error("the database was not closed well", "error", err)
		}
	}()
	store := gormstore.New(db)
	directory, err := openCatalog(ctx, o, db, log)
	if err != nil {
		return err
	}
	credentials := credentialstore.New(db, ledgerstore.Append)
	where, err := flowstore.Parse(o.flowStore, os.ReadFile)
	if err != nil {
		return fmt.Errorf("--flow-store: %w", err)
	}
	flows := openFlows(where)
	defer func() { _ = flows.Close() }() // only read

	trusted, err := proxies(o.trustedProxies)
	if err != nil {
		return err
	}
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	metricsListener, err := listenMetrics(ctx, o.metricsAddress)
	if err != nil {
		return err
	}
	hub := portal.NewHub()
	h, err := host.New(config, hub.Resource, log)
	if err != nil {
		return err
	}
	directory.Grants = h.GrantsOf
	if err := h.CheckKinds(ctx); errors.Is(err, host.ErrKindMissing) {
		return err
	} else if err != nil {
		log.Warn("the host cluster cannot be reached; the portal starts and waits for it", "error", err)
	}
	once := oncestore.New(db)
	registrar := workloads.New(workloads.Config{Cluster: h.Workloads(), State: h.Workloads().State, Catalog: directory.Catalog, Covered: h.SubjectCovered, Granted: h.Granted, MostAddresses: o.workloadAddresses, Now: wallclock.Now,
		Record: func(ctx context.Context, e ...ledger.Entry) error {
			return db.Write(ctx, func(tx *gorm.DB) error { return ledgerstore.Append(tx, e...) })
		}})
	times := portal.NewTicketTimes(registry)
	var outbox []*approval.Worker
	states := rolloutstore.New(db)
	seen := rollout.NewInsight(rollout.InsightConfig{Flows: flows, Snapshot: h.Snapshot, Fleet: h.Fleet, Enforced: h.Enforced, Store: states, Window: o.evidenceWindow, Threshold: o.evidenceThreshold, Now: wallclock.Now})
	tickets, err := approval.NewService(approval.Config{Store: store, Catalog: directory.Catalog, Host: h, Evidence: seen, Now: wallclock.Now,
		OnChange: func(t *approval.Ticket) {
			hub.Ticket(t)
			times.Changed(t)
		},
		Wake: func() {
			for _, w := range outbox {
				w.Wake()
			}
		}})
	if err != nil {
		return err
	}
	objects := outsidestore.New(db)
	h.Noting(objects.Own)
	recorder := &externalchanges.Recorder{Host: h, Store: objects, Now: wallclock.Now, Log: log, Settle: externalchanges.DefaultSettle, Every: externalchanges.DefaultEvery, Compare: externalchanges.DefaultCompare}
	h.OnObject(recorder.Notice)
	follower := approval.NewFollower(tickets, h, h.PolicyChanges(), resyncEvery, log)
	writer := h.Writer()
	writer.Ledger = ledgerstore.NewReader(db)
	replica := rand.Text()
	rollouts := rollout.NewService(rollout.Config{Store: states, Switch: writer, Host: h, Catalog: directory.Catalog, Now: wallclock.Now, Log: log})
	downgrades := &rollout.Downgrades{Service: rollout.NewService(rollout.Config{Store: states, Switch: h.Urgent(), Host: h, Catalog: directory.Catalog, Now: wallclock.Now, Log: log}),
		Objects: portal.ProtectedBy(h), ClassOf: h.ClassOf, Patience: downgradePatience, Running: ctx}
	guard := &rollout.Watcher{Service: rollouts, Name: replica, Denials: seen, Tickets: rollout.Requests{Service: tickets}, Resources: h.Enforced, Every: guardEvery, Log: log}
	for i := range workers {
		outbox = append(outbox, approval.NewWorker(approval.WorkerConfig{Name: fmt.Sprintf("%s-%d", replica, i), Service: tickets, Writer: writer, Objects: writer,
			PolicyName: policy.PolicyNameFor, DefaultMode: h.DefaultMode, Log: log, Lease: jobLease, Poll: storeEvery, Wrote: follower.Look}))
	}
	dist, err := fs.Sub(web.Dist, "dist")
	if err != nil {
		return err
	}
	channels, err := setup.Load(o.notify)
	if err != nil {
		return err
	}
	notifications := notifystore.New(db)
	registry.MustRegister(&notify.Collector{Store: notifications, Now: wallclock.Now, Log: log})
	anchors, err := keeper(o, config, ledgerstore.NewReader(db), log)
	if err != nil {
		return err
	}
	server, err := portal.New(ctx, portal.Config{PublicURL: publicURL, Tickets: tickets, Host: h, Flows: flows, EvidenceWindow: o.evidenceWindow, Insight: seen, Rollout: rollouts, Downgrades: downgrades, Directory: directory, Once: once, Inbox: notifications, Channels: channels.People, Workloads: registrar, Ledger: ledgerstore.NewReader(db),
		Witnesses: func(ctx context.Context) ([]ledger.Witness, error) { return anchor.Witnesses(ctx, anchors.Anchors) }, Sessions: credentials.Manager(),
		Credentials: &credential.Service{Store: credentials, Now: wallclock.Now}, TrustedProxies: trusted, Metrics: registry, Stats: counted(store, credentials),
		SessionIdle: o.sessionIdle, Issuer: o.issuer, ClientID: o.clientID, ClientSecret: secret, Web: dist, Hub: hub, Demo: o.demo, Now: wallclock.Now, Log: log})
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	var hostErr error
	background.Go(func() { directory.Run(ctx, catalogEvery) })
	background.Go(func() { hub.FollowStore(ctx, store, wallclock.Now, storeEvery, log) })
	background.Go(func() { hub.FollowInboxes(ctx, notifications, storeEvery, log) })
	background.Go(func() { follower.Run(ctx) })
	background.Go(func() { prune(ctx, credentials, once, log) })
	background.Go(func() { anchors.Run(ctx) })
	background.Go(func() { guard.Run(ctx) })
	background.Go(func() { recorder.Run(ctx) })
	background.Go(func() {
		if err := h.Happenings(ctx, told(db)); err != nil {
			log.Error("what happens in members does not come into the ledger", "error", err)
		}
	})
	for _, run := range notifier(notifications, store, directory.Catalog, channels, publicURL, replica, hub.Inbox, log) {
		background.Go(func() { run(ctx) })
	}
	for _, w := range outbox {
		background.Go(func() { w.Run(ctx) })
	}
	background.Go(func() {
		if err := h.Run(ctx); err != nil && ctx.Err() == nil {
			hostErr = err
			cancel()
		}
	})
	if metricsListener != nil {
		background.Go(func() {
			if err := serve(ctx, metricsListener, metricsServer(registry)); err != nil {
				log.Error("metrics are not served", "error", err)
			}
		})
	}
	log.Info("portal is served", "address", o.publicURL)
	err = serve(ctx, listener, server.Listen())
	cancel()
	background.Wait()
	return errors.Join(err, hostErr)
}

func serve(ctx context.Context, l net.Listener, srv *http.Server) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		return errors.Join(fmt.Errorf("shut down: %w", err), srv.Close())
	}
	return nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another program: stop it or choose another --listen", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

func readSecret(file string) (string, error) {
	if file == "" {
		return "", nil // a public client; PKCE protects the code
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("--oidc-client-secret-file: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

func prune(ctx context.Context, s credential.Store, once idempotency.Store, log *slog.Logger) {
	t := time.NewTicker(pruneEvery)
	defer t.Stop()
	for {
		if err := errors.Join(s.Prune(ctx, wallclock.Now()), once.Prune(ctx, wallclock.Now().Add(-idempotency.Remembered))); err != nil && ctx.Err() == nil {
			log.Warn("expired sessions, tokens and idempotency keys could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
