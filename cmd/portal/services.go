package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	packagestore "github.com/acp-io/acp/internal/accesspackage/gormstore"
	"github.com/acp-io/acp/internal/accesspackage/holderupdate"
	"github.com/acp-io/acp/internal/accessreview"
	reviewstore "github.com/acp-io/acp/internal/accessreview/gormstore"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog/workloads"
	"github.com/acp-io/acp/internal/externalchanges"
	outsidestore "github.com/acp-io/acp/internal/externalchanges/gormstore"
	"github.com/acp-io/acp/internal/idempotency"
	"github.com/acp-io/acp/internal/ledger"
	"github.com/acp-io/acp/internal/ledger/anchor"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/notify"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/accessrequest"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/portal/ticketapi"
	"github.com/acp-io/acp/internal/rollout"
	rolloutstore "github.com/acp-io/acp/internal/rollout/gormstore"
	"github.com/acp-io/acp/internal/tracing"
	"github.com/acp-io/acp/internal/wallclock"
)

// services are the parts of the portal that decide requests or work in the background. They use the sources.
type services struct {
	*sources

	options options
	log     *slog.Logger
	// replica names this process in leases of work that several portals share.
	replica string

	onCall          approval.OnCall
	followSchedules func(context.Context)
	// accessRequests is nil if AccessRequests are not handled.
	accessRequests *accessrequest.Controller
	workloads      *workloads.Registrar
	evidence       *rollout.Insight
	packages       *packagestore.Store
	approvals      *approval.Service
	follower       *approval.Follower
	outbox         []*approval.Worker
	recorder       *externalchanges.Recorder
	rollouts       *rollout.Service
	downgrader     *rollout.FleetDowngrader
	rolloutGuard   *rollout.Watcher
	updater        *holderupdate.Worker
	reviewStore    *reviewstore.Store
	reviews        *accessreview.Service
	reviewer       *accessreview.Worker
	notifications  *notifystore.Store
	anchors        *anchor.Keeper
}

// newServices creates the services and connects them with each other. It starts nothing. The context is that of the process; finish is closed
// when no request can add a job to the outbox any more.
func newServices(
	ctx context.Context, o options, s *sources, registry *prometheus.Registry, tracer *tracing.Tracer, finish <-chan struct{}, log *slog.Logger,
) (_ *services, err error) {
	v := &services{sources: s, options: o, log: log, replica: rand.Text()}
	states := rolloutstore.New(s.db)
	v.packages = packagestore.New(s.db)
	v.notifications = notifystore.New(s.db)
	registry.MustRegister(&notify.Collector{Store: v.notifications, Now: wallclock.Now, Log: log})
	if v.onCall, v.followSchedules, err = openSchedules(o, s.directory.Catalog, log); err != nil {
		return nil, err
	}
	if v.accessRequests, err = openAccessRequests(o, s.hostConfig, s.directory.Catalog, log); err != nil {
		return nil, err
	}
	if v.anchors, err = keeper(o, s.hostConfig, s.ledger, log); err != nil {
		return nil, err
	}
	v.workloads = v.newRegistrar()
	v.evidence = rollout.NewInsight(
		rollout.InsightConfig{
			Flows:     s.flows,
			Snapshot:  s.host.Snapshot,
			Fleet:     s.host.Fleet,
			Enforced:  s.host.Enforced,
			Store:     states,
			Window:    o.evidenceWindow,
			Threshold: o.evidenceThreshold,
			Now:       wallclock.Now,
		},
	)
	if v.approvals, err = v.newApprovals(ticketapi.NewTicketTimes(registry), tracer); err != nil {
		return nil, err
	}
	v.recorder = v.newRecorder()
	v.follower = approval.NewFollower(v.approvals, s.host, s.host.PolicyChanges(), resyncEvery, log)
	writer := s.host.Writer()
	writer.Ledger = s.ledger
	v.addRollouts(ctx, states, writer)
	v.addReviews()
	v.addOutbox(writer, finish)
	return v, nil
}

// newRegistrar returns the registrar of external workloads.
func (v *services) newRegistrar() *workloads.Registrar {
	cluster := v.host.Workloads()
	return workloads.New(
		workloads.Config{
			Cluster:       cluster,
			State:         cluster.State,
			Catalog:       v.directory.Catalog,
			Covered:       v.host.SubjectCovered,
			Granted:       v.host.Granted,
			MostAddresses: v.options.workloadAddresses,
			Now:           wallclock.Now,
			Record: func(ctx context.Context, e ...ledger.Entry) error {
				return v.db.Write(ctx, func(tx *gorm.DB) error { return ledgerstore.Append(tx, e...) })
			},
		},
	)
}

// newApprovals returns the service that decides tickets. A changed ticket is passed to the open pages, to the histogram of the times of tickets,
// and to the controller of AccessRequests.
func (v *services) newApprovals(times *ticketapi.TicketTimes, tracer *tracing.Tracer) (*approval.Service, error) {
	return approval.NewService(
		approval.Config{
			Store:       v.ticketStore,
			Delegations: v.ticketStore,
			Catalog:     v.directory.Catalog,
			Host:        v.host,
			Evidence:    v.evidence,
			Workloads:   v.workloads,
			Packages:    v.packages,
			OnCall:      v.onCall,
			Builtin:     v.options.builtin,
			LoginMaxAge: v.options.loginMaxAge,
			Now:         wallclock.Now,
			Tracer:      tracer,
			OnChange: func(t *approval.Ticket) {
				v.hub.Ticket(t)
				times.Changed(t)
				if v.accessRequests != nil {
					v.accessRequests.Notice(t)
				}
			},
			Requeue: func() {
				for _, w := range v.outbox {
					w.Requeue()
				}
			},
		},
	)
}

// newRecorder returns the recorder of changes that others make to ACP's objects on the host cluster. To tell them from the portal's own, it
// stores those, too.
func (v *services) newRecorder() *externalchanges.Recorder {
	store := outsidestore.New(v.db)
	v.host.RecordOwnChanges(store.AddOwnChange)
	v.host.RecordOwnInstructions(store.AddOwnInstruction)
	recorder := &externalchanges.Recorder{
		Host:    v.host,
		Store:   store,
		Now:     wallclock.Now,
		Log:     v.log,
		Settle:  externalchanges.DefaultSettle,
		Every:   externalchanges.DefaultEvery,
		Compare: externalchanges.DefaultCompare,
		ResourceID: func(name string) string {
			e, _ := v.directory.Catalog().ByName(name)
			return e.ID
		},
	}
	v.host.OnObject(recorder.Notice)
	v.host.OnInstruction(recorder.NoticeInstruction)
	return recorder
}

// addRollouts adds what changes modes: for people, for the downgrade of the whole fleet, and for the guard that stops a rollout.
func (v *services) addRollouts(ctx context.Context, states *rolloutstore.Store, writer *host.Writer) {
	config := rollout.Config{Store: states, Writer: writer, Host: v.host, Catalog: v.directory.Catalog, Organizations: v.approvals.Organizations,
		Now: wallclock.Now, Log: v.log}
	v.rollouts = rollout.NewService(config)
	urgent := v.host.UnlimitedWriter()
	config.Writer = urgent
	v.downgrader = &rollout.FleetDowngrader{
		Service: rollout.NewService(config),
		Objects: urgent.ProtectedResources,
		ClassOf: v.host.ClassOf,
		MaxWait: fleetDowngradeMaxWait,
		Running: ctx,
	}
	v.rolloutGuard = &rollout.Watcher{
		Service:   v.rollouts,
		Name:      v.replica,
		Denials:   v.evidence,
		Tickets:   rollout.ApprovalTickets{Service: v.approvals},
		Resources: v.host.Enforced,
		Every:     guardEvery,
		Log:       v.log,
	}
}

// addReviews adds the reviews of access, and the work on new versions of access packages that existing holders are given.
func (v *services) addReviews() {
	v.reviewStore = reviewstore.New(v.db)
	v.reviews = accessreview.NewService(
		accessreview.Config{Store: v.reviewStore, Grants: v.approvals, Catalog: v.directory.Catalog, ClassOf: v.host.ClassOf, HostKnown: v.host.Ready,
			Now: wallclock.Now},
	)
	flows := &accessreview.Flows{Reader: v.flows, Snapshot: v.host.Snapshot, Fleet: v.host.Fleet}
	v.reviewer = accessreview.NewWorker(v.reviews, v.replica, flows, reviewEvery, v.log)
	v.updater = &holderupdate.Worker{Name: v.replica, Store: v.packages, Tickets: v.approvals, Reader: v.ticketStore, Now: wallclock.Now,
		Every: packagesEvery, Log: v.log}
}

// addOutbox adds the workers that write approved changes to the host cluster.
func (v *services) addOutbox(writer *host.Writer, finish <-chan struct{}) {
	for i := range workers {
		v.outbox = append(
			v.outbox,
			approval.NewWorker(approval.WorkerConfig{
				Name:        fmt.Sprintf("%s-%d", v.replica, i),
				Service:     v.approvals,
				Outbox:      v.ticketStore,
				Writer:      writer,
				Objects:     writer,
				PolicyName:  policy.PolicyNameFor,
				DefaultMode: v.host.DefaultMode,
				Log:         v.log,
				Lease:       jobLease,
				Poll:        storeEvery,
				Finish:      finish,
				Wrote:       v.follower.Enqueue,
			}),
		)
	}
}

// start runs the services until the context ends. The workers of the outbox are counted by working, because they are waited for before
// the others end, and all others by background. The channel gets the error with which the host cluster's reader ended before the context.
func (v *services) start(ctx context.Context, background, working *sync.WaitGroup) <-chan error {
	ended := make(chan error, 1)
	background.Go(func() { v.directory.Run(ctx, catalogEvery) })
	background.Go(func() { v.hub.FollowStore(ctx, v.ticketStore, wallclock.Now, storeEvery, v.log) })
	background.Go(func() { v.hub.FollowInboxes(ctx, v.notifications, storeEvery, v.log) })
	background.Go(func() { v.follower.Run(ctx) })
	background.Go(func() { v.prune(ctx) })
	background.Go(func() { v.anchors.Run(ctx) })
	background.Go(func() { v.rolloutGuard.Run(ctx) })
	background.Go(func() { v.reviewer.Run(ctx) })
	background.Go(func() { v.updater.Run(ctx) })
	background.Go(func() { v.recorder.Run(ctx) })
	background.Go(func() { v.followSchedules(ctx) })
	if v.accessRequests != nil {
		background.Go(func() { v.accessRequests.Run(ctx, v.approvals) })
	}
	background.Go(func() {
		if err := v.host.FollowMemberEvents(ctx, recordMemberEvents(v.db)); err != nil {
			v.log.Error("events about members cannot be followed, so they are not recorded in the ledger", "error", err)
		}
	})
	for _, run := range v.notifiers() {
		background.Go(func() { run(ctx) })
	}
	for _, w := range v.outbox {
		working.Go(func() { w.Run(ctx) })
	}
	background.Go(func() {
		if err := v.host.Run(ctx); err != nil && ctx.Err() == nil {
			ended <- err
		}
	})
	return ended
}

// prune removes what has expired until the context ends.
func (v *services) prune(ctx context.Context) {
	t := time.NewTicker(pruneEvery)
	defer t.Stop()
	for {
		now := wallclock.Now()
		err := errors.Join(v.credentials.Prune(ctx, now), v.idempotency.Prune(ctx, now.Add(-idempotency.AnswerRetention)))
		if err != nil && ctx.Err() == nil {
			v.log.Warn("expired sessions, tokens and idempotency keys could not be removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
