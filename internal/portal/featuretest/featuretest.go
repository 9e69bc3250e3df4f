// Package featuretest has what the unit tests of the portal's features share: the context of a request, and the data of the demo
// company. Package portal tests the features together, behind HTTP.
package featuretest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/catalog/gormstore"
	"github.com/acp-io/acp/internal/database/databasetest"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/portal/views"
)

// Now is the time of the tests.
var Now = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// Context returns the context of a request of a caller, as a handler receives it after the permissions of its route were checked.
func Context(t testing.TB, who approval.Actor) *gin.Context {
	t.Helper()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	core.SetCaller(c, who)
	return c
}

// Data returns the demo company of portaltest at the time Now, without a host cluster, tickets and flows.
func Data(t testing.TB) *views.Data {
	t.Helper()
	now := func() time.Time { return Now }
	directory, err := catalog.NewService(t.Context(), catalog.Config{Store: gormstore.New(databasetest.Open(t, databasetest.SQLite(t))),
		Sources: []catalog.Source{catalog.Folder{ID: "files", Dir: portaltest.Catalog(t)}}, Now: now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := directory.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	return &views.Data{Directory: directory, Now: now, Log: slog.New(slog.DiscardHandler)}
}
