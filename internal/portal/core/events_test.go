package core

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/approval/gormstore"
	"github.com/acp-io/acp/internal/catalog"
	catalogstore "github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/credential"
	credentialstore "github.com/acp-io/acp/internal/credential/gormstore"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/database/databasetest"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

// streamServer returns a server with the stores that event streams read.
func streamServer(t *testing.T) *Server {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	db, err := database.Open(t.Context(), databasetest.SQLite(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	directory, err := catalog.NewService(
		t.Context(),
		catalog.Config{
			Store:   catalogstore.New(db),
			Sources: []catalog.Source{catalog.Folder{ID: "files", Dir: portaltest.Catalog(t)}},
			Now:     time.Now,
			Log:     log,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := directory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := gormstore.New(db)
	tickets, err := approval.NewService(
		approval.Config{Store: store, Delegations: store, Catalog: directory.Catalog, Host: struct{ approval.Host }{}, Now: time.Now},
	)
	if err != nil {
		t.Fatal(err)
	}
	return &Server{
		Config: Config{
			Tickets:     tickets,
			Directory:   directory,
			Credentials: &credential.Service{Store: credentialstore.New(db, ledgerstore.Append), Now: time.Now},
			Now:         time.Now,
			Log:         log,
		},
	}
}

// TestStreamOfAToken checks that an event stream ends with the token or the session by which it was opened.
func TestStreamOfAToken(t *testing.T) {
	x := streamServer(t)
	made, secret, err := x.Credentials.Create(
		t.Context(),
		"alice",
		credential.Request{Name: "test", Scopes: []credential.Scope{credential.ScopeRead}, Lifetime: time.Hour},
	)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{s: x, request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), who: approval.Actor{ID: "alice"}, token: secret}
	if !s.valid() {
		t.Error("a good token")
	}
	if _, err := x.Tickets.Delegate(t.Context(), approval.Actor{ID: "carol"}, "alice", x.Now(), x.Now().Add(time.Hour), "away"); err != nil {
		t.Fatal(err)
	}
	if !s.valid() || !slices.Equal(s.who.StandsFor, []string{"carol"}) {
		t.Errorf("a delegation made meanwhile counts: %+v", s.who)
	}
	if err := x.Credentials.Revoke(t.Context(), "alice", made.ID); err != nil {
		t.Fatal(err)
	}
	if s.valid() {
		t.Error("a revoked token's stream goes on")
	}
}
