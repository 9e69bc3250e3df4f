package ticketapi

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
	"github.com/acp-io/acp/internal/portal/views"
)

// TestHomeCountsOmittedApplications checks that the home page shows a few of many applications and counts the others.
func TestHomeCountsOmittedApplications(t *testing.T) {
	flows, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flows.Close() })
	at := time.Now().Add(-time.Hour).UTC()
	var owned []catalog.Entity
	for i := range homeApplications + 3 {
		e := catalog.Entity{ID: fmt.Sprint("app-", i), Name: fmt.Sprint("trnv1:rsc:trip-com:iam:sa:app/many-", i)}
		owned = append(owned, e)
		edge := audit.Edge{
			Cluster:  "m1",
			Subject:  e.Name,
			Resource: portaltest.BobsCluster,
			Action:   "redis:connect",
			Port:     6379,
			Protocol: "TCP",
			Decision: policy.DefaultDenied,
			Verdict:  audit.VerdictDropped,
		}
		if err := flows.Append(t.Context(), &audit.Batch{ID: fmt.Sprint("batch-", i), Positions: []audit.Position{{Source: "m1", Time: at}},
			Rollups: []audit.Rollup{{Bucket: at.Truncate(time.Minute), Edge: edge, Count: int64(i + 1), FirstSeen: at, LastSeen: at}}}); err != nil {
			t.Fatal(err)
		}
	}
	owned = append(owned, catalog.Entity{ID: "quiet", Name: "trnv1:rsc:trip-com:iam:sa:app/quiet"})
	a := &API{Data: &views.Data{Flows: flows, Now: time.Now, Log: slog.New(slog.DiscardHandler)}}
	for n, want := range map[int]int{homeApplications: 0, homeApplications + 3: 3, homeApplications + 4: 3} {
		got := a.deniedLately(t.Context(), catalog.Build(nil), owned[:n])
		if !got.known || got.leftOut != want || len(got.rows) != homeApplications || got.count != homeApplications || got.partial {
			t.Errorf("%d applications: %d rows of %d, %d left out, want %d; known: %v", n, len(got.rows), got.count, got.leftOut, want, got.known)
		}
	}
}

// TestSectionThatPanicsIsUnknown checks that an unexpected failure of a section that is read in the background neither ends the portal nor
// delays the page.
func TestSectionThatPanicsIsUnknown(t *testing.T) {
	failing := inBackground(slog.New(slog.DiscardHandler), func() int { panic("unexpected") })
	if got := failing.wait(t.Context(), -1); got != -1 {
		t.Errorf("a section that failed: %d, want that it is unknown", got)
	}
	working := inBackground(slog.New(slog.DiscardHandler), func() int { return 7 })
	if got := working.wait(t.Context(), -1); got != 7 {
		t.Errorf("a section that was read: %d, want 7", got)
	}
}

// TestHomeCountsOmittedConnections checks that the home page counts the refused connections beyond its limit, and reports that it did not
// read all.
func TestHomeCountsOmittedConnections(t *testing.T) {
	for name, tc := range map[string]struct {
		edges   int
		partial bool
	}{"within the limit of edges": {homeDenied + 12, false}, "beyond the limit of edges": {homeEdges + 5, true}} {
		t.Run(name, func(t *testing.T) {
			flows, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = flows.Close() })
			at := time.Now().Add(-time.Hour).UTC()
			app := catalog.Entity{ID: "app", Name: portaltest.App888}
			batch := audit.Batch{ID: "batch", Positions: []audit.Position{{Source: "m1", Time: at}}}
			for i := range tc.edges {
				edge := audit.Edge{Cluster: "m1", Subject: app.Name, Resource: portaltest.BobsCluster, Port: uint16(i + 1), Protocol: "TCP",
					Decision: policy.DefaultDenied, Verdict: audit.VerdictDropped}
				batch.Rollups = append(batch.Rollups, audit.Rollup{Bucket: at.Truncate(time.Minute), Edge: edge, Count: 1, FirstSeen: at, LastSeen: at})
			}
			if err := flows.Append(t.Context(), &batch); err != nil {
				t.Fatal(err)
			}
			a := &API{Data: &views.Data{Flows: flows, Now: time.Now, Log: slog.New(slog.DiscardHandler)}}
			got := a.deniedLately(t.Context(), catalog.Build(nil), []catalog.Entity{app})
			if !got.known || len(got.rows) != homeDenied || got.count != min(tc.edges, homeEdges) || got.partial != tc.partial || got.leftOut != 0 ||
				!slices.Equal(got.read, []string{app.Name}) {
				t.Errorf("%d rows of %d of %v, partial: %v, known: %v", len(got.rows), got.count, got.read, got.partial, got.known)
			}
		})
	}
}

// TestSections checks that a section is returned if it is ready, also at the end of the bound, and is not known if it is late.
func TestSections(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := inBackground(slog.New(slog.DiscardHandler), func() int { return 7 }).wait(t.Context(), -1); got != 7 {
		t.Errorf("a section is %d, want 7", got)
	}
	ready := &section[int]{ready: make(chan int, 1)}
	ready.ready <- 7
	if got := ready.wait(ended, -1); got != 7 {
		t.Errorf("a section that is ready at the end is %d, want 7", got)
	}
	release := make(chan struct{})
	defer close(release)
	if got := inBackground(slog.New(slog.DiscardHandler), func() int { <-release; return 7 }).wait(ended, -1); got != -1 {
		t.Errorf("a late section is %d, want -1", got)
	}
}

// TestHomeMarksManyDisagreements checks that the number of disagreements is exact up to its limit, and marked if there are more.
func TestHomeMarksManyDisagreements(t *testing.T) {
	for edges, marked := range map[int]bool{0: false, audit.MaxPage: false, audit.MaxPage + 1: true} {
		t.Run(fmt.Sprint(edges), func(t *testing.T) {
			flows, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = flows.Close() })
			at := time.Now().Add(-time.Hour).UTC()
			batch := audit.Batch{ID: "batch", Positions: []audit.Position{{Source: "m1", Time: at}}}
			for i := range edges {
				edge := audit.Edge{Cluster: "m1", Subject: portaltest.App888, Resource: portaltest.BobsCluster, Port: uint16(i + 1), Protocol: "TCP",
					Decision: policy.DefaultDenied, Verdict: audit.VerdictForwarded}
				batch.Rollups = append(batch.Rollups, audit.Rollup{Bucket: at.Truncate(time.Minute), Edge: edge, Count: 1, FirstSeen: at, LastSeen: at})
			}
			if err := flows.Append(t.Context(), &batch); err != nil {
				t.Fatal(err)
			}
			a := &API{Data: &views.Data{Flows: flows, Now: time.Now, Log: slog.New(slog.DiscardHandler)}}
			got := a.disagreements(t.Context())
			if got.count == nil || *got.count != min(edges, audit.MaxPage) || (got.partial != nil) != marked {
				t.Errorf("%v, marked: %v", got.count, got.partial)
			}
		})
	}
}
