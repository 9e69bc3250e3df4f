package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/catalog"
	credentialstore "github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/health"
	"github.com/acp-io/acp/internal/idempotency"
	oncestore "github.com/acp-io/acp/internal/idempotency/gormstore"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/host"
	"github.com/acp-io/acp/internal/wallclock"
)

// sources are what the portal reads and writes: its database, the catalog, the flows and the host cluster.
type sources struct {
	inputs

	db          *database.DB
	ticketStore *gormstore.Store
	credentials *credentialstore.Store
	idempotency idempotency.Store
	ledger      *ledgerstore.Reader
	directory   *catalog.Service
	flows       *remoteFlows
	host        *host.Host
	// hub gets the changes that open pages show. The host cluster's reader already needs it.
	hub *core.Hub
}

// openSources opens the database and reads the catalog. It asks the host cluster for ACP's kinds, but the portal also starts without a
// host cluster. Nothing stays open after an error.
func openSources(ctx context.Context, o options, probes *health.Probes, log *slog.Logger) (opened *sources, err error) {
	s := &sources{hub: core.NewHub()}
	if s.inputs, err = o.inputs(); err != nil {
		return nil, err
	}
	probes.Starting("opening the database and bringing its schema up to date")
	if s.db, err = database.OpenWithRefresh(ctx, s.dsn, o.dsn); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = s.db.Close() // the error of the start says more
		}
	}()
	s.ticketStore = gormstore.New(s.db)
	s.credentials = credentialstore.New(s.db, ledgerstore.Append)
	s.idempotency = oncestore.New(s.db)
	s.ledger = ledgerstore.NewReader(s.db)
	probes.Starting("reading the catalog")
	if s.directory, err = openCatalog(ctx, o, s.db, log); err != nil {
		return nil, err
	}
	probes.Starting("contacting the host cluster")
	if s.host, err = host.New(s.hostConfig, s.hub.Resource, log); err != nil {
		return nil, err
	}
	s.host.InNamespace(o.namespace)
	s.directory.Grants = s.host.GrantsOf
	if err := checkKinds(ctx, s.host, log); err != nil {
		return nil, err
	}
	s.flows = openFlows(s.flowAddress)
	return s, nil
}

// Close closes the database and the store of the flows.
func (s *sources) Close() error {
	_ = s.flows.Close() // only read
	return s.db.Close()
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

// stats returns the numbers of tickets, jobs, sessions and tokens for the metrics.
func (s *sources) stats(ctx context.Context) (n core.Stats, err error) {
	if n.Tickets, n.Outbox, n.Oldest, err = s.ticketStore.Stats(ctx); err != nil {
		return n, err
	}
	n.Sessions, n.Tokens, err = s.credentials.Count(ctx, wallclock.Now())
	return n, err
}
