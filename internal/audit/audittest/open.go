package audittest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// openConnectionsShow verifies that a roll-up with a count of 0 updates the last time and the days of its edge, and adds no
// connection.
func openConnectionsShow(t *testing.T, s audit.Store) {
	e, refused := Edge(), Edge(func(e *audit.Edge) { e.Subject, e.Decision, e.Verdict = "s", policy.Denied, audit.VerdictUnknown })
	mustAppend(t, s, &audit.Batch{ID: "1", Rollups: []audit.Rollup{rollup(0, 1, e), rollup(3, 0, e)}})
	mustAppend(t, s, &audit.Batch{ID: "2", Rollups: []audit.Rollup{rollup(days(2), 0, e), rollup(1, 0, refused)}})
	// Folds what is before.
	mustAppend(t, s, &audit.Batch{ID: "3", Rollups: []audit.Rollup{rollup(days(3), 0, Edge(func(e *audit.Edge) { e.Subject = "later" }))}})
	until := T0.Add(time.Duration(days(3)) * time.Minute)
	wantConnections(t, s, audit.ConnectionQuery{Filter: audit.Filter{Until: until}}, connection(1, 0, days(2), e), connection(0, 1, 1, refused))
	wantConnections(t, s, audit.ConnectionQuery{Filter: audit.Filter{Since: T0.Add(4 * time.Minute), Until: until}}, connection(0, days(2), days(2), e))
	day := T0.Truncate(24 * time.Hour)
	for name, tc := range map[string]struct {
		reason string
		since  time.Time
		want   audit.Total
	}{
		"All": {
			"the days are those on which it was open", day,
			audit.Total{Count: 1, FirstSeen: rollup(0, 1, e).FirstSeen, Days: []time.Time{day, day.Add(48 * time.Hour)}},
		},
		"OnlyOpen": {
			"an edge that was only seen to be open is included", T0.Add(4 * time.Minute),
			audit.Total{FirstSeen: rollup(days(2), 0, e).FirstSeen, Days: []time.Time{day.Add(48 * time.Hour)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.Edge, tc.want.LastSeen = e, rollup(days(2), 0, e).LastSeen
			got := totals(t, s, audit.Filter{Since: tc.since, Until: until, Subjects: []string{e.Subject}})
			if diff := cmp.Diff([]audit.Total{tc.want}, got); diff != "" {
				t.Errorf("%s: Totals (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	for _, f := range []audit.Filter{{}, {Clusters: []string{e.Cluster}}} {
		f.Since, f.Until = day, day.Add(96*time.Hour)
		got, err := s.Series(t.Context(), audit.SeriesQuery{Filter: f, Step: time.Hour})
		if err != nil {
			t.Fatalf("Series: %v", err)
		}
		if diff := cmp.Diff([]audit.Point{point(T0, policy.Allowed, 1)}, got); diff != "" {
			t.Errorf("Series(%+v) (-want +got):\n%s", f, diff)
		}
	}
	denied, err := s.Denied(t.Context(), audit.DeniedQuery{By: audit.BySubject})
	if err != nil || len(denied) != 0 {
		t.Errorf("got Denied = %v, %v; want none", denied, err)
	}
}
