package audittest

import (
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// days returns a number of days in minutes, the unit of the suite's builders.
func days(n int) int { return n * 24 * 60 }

func pruneKeepsWhatIsNewer(t *testing.T, s audit.Store) {
	old, kept := Edge(func(e *audit.Edge) { e.Subject = "old" }), Edge()
	tomorrow := T0.Add(24 * time.Hour)
	mustAppend(t, s, &audit.Batch{
		ID:      "1",
		Rollups: []audit.Rollup{rollup(0, 1, old), rollup(0, 2, kept), rollup(days(1), 4, kept)},
		Flows:   []audit.Flow{flow(0, old), flow(days(1), kept)},
		Losses: []audit.Loss{
			{Cluster: "m1", Reason: audit.LossRing, Count: 1, From: T0, To: T0},
			{Cluster: "m1", Reason: audit.LossGap, From: T0, To: tomorrow},
		},
		Positions: []audit.Position{{Source: "m1", Time: T0}},
		Watched:   []audit.WatchedSpan{{Source: "m1", From: T0, To: T0.Add(time.Hour)}, {Source: "m1", From: tomorrow, To: tomorrow.Add(time.Hour)}},
	})
	mustPrune := func(r audit.Retention) {
		t.Helper()
		if _, err := s.Prune(t.Context(), r); err != nil {
			t.Fatalf("Prune: %v", err)
		}
	}
	wantAll := func() {
		t.Helper()
		wantConnections(t, s, audit.ConnectionQuery{}, connection(6, 0, days(1), kept), connection(1, 0, 0, old))
		wantFlows(t, s, audit.FlowQuery{}, flow(days(1), kept), flow(0, old))
	}
	mustPrune(audit.Retention{})
	wantAll()
	endOfDay := T0.Truncate(24 * time.Hour).Add(24*time.Hour - time.Second)
	mustPrune(audit.Retention{Rollups: endOfDay, Flows: endOfDay, Losses: endOfDay})
	wantAll()
	mustPrune(audit.Retention{Flows: tomorrow})
	wantFlows(t, s, audit.FlowQuery{}, flow(days(1), kept))
	mustPrune(audit.Retention{Rollups: tomorrow})
	wantConnections(t, s, audit.ConnectionQuery{}, connection(4, days(1), days(1), kept))
	if n := len(allLosses(t, s, audit.LossQuery{})); n != 2 {
		t.Errorf("got %d losses after pruning other data, want 2", n)
	}
	mustPrune(audit.Retention{Losses: tomorrow})
	if got := allLosses(t, s, audit.LossQuery{}); len(got) != 1 || got[0].Reason != audit.LossGap {
		t.Errorf("got Losses %+v, want the one that ended later", got)
	}
	if got, err := s.Coverage(t.Context(), time.Time{}, T0.Add(time.Hour)); err != nil || len(got) != 1 || got[0].Watched != 0 {
		t.Errorf("Coverage of the pruned day = %+v, %v; want only the gap that lasted into the next", got, err)
	}
	if r, err := s.Resume(t.Context(), "m1"); err != nil || r.Position.IsZero() {
		t.Errorf("got Resume = %+v, %v; want the position to remain", r, err)
	}
	// Flows that were written together with older counts are kept for their own retention.
	mustAppend(t, s, &audit.Batch{ID: "mixed", Rollups: []audit.Rollup{rollup(days(1), 1, kept)}, Flows: []audit.Flow{flow(days(3), kept)}})
	mustPrune(audit.Retention{Flows: tomorrow.Add(24 * time.Hour)})
	wantFlows(t, s, audit.FlowQuery{}, flow(days(3), kept))
	mustPrune(audit.Retention{Flows: tomorrow.Add(4 * 24 * time.Hour)})
	// The pruned edge is seen again.
	mustAppend(t, s, &audit.Batch{ID: "2", Rollups: []audit.Rollup{rollup(days(1)+1, 8, old)}, Flows: []audit.Flow{flow(days(1)+1, old)}})
	wantConnections(t, s, audit.ConnectionQuery{Filter: audit.Filter{Subjects: []string{"old"}}}, connection(8, days(1)+1, days(1)+1, old))
}
