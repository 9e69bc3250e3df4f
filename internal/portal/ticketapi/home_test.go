package ticketapi

import (
	"fmt"
	"log/slog"
	"path/filepath"
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
		list, leftOut, known := a.deniedLately(t.Context(), catalog.Build(nil), owned[:n])
		if !known || leftOut != want || len(list) != homeApplications {
			t.Errorf("%d applications: %d rows, %d left out, want %d; known: %v", n, len(list), leftOut, want, known)
		}
	}
}
