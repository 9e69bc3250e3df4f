package audittest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// seriesOfEverything tests series for which a store may keep sums: the filter has no name, no statement and no port.
func seriesOfEverything(t *testing.T, s audit.Store) {
	with := func(cluster, subject string, w policy.Verdict, v audit.Verdict) audit.Edge {
		return Edge(func(e *audit.Edge) { e.Cluster, e.Subject, e.Decision, e.Verdict = cluster, subject, w, v })
	}
	b := &audit.Batch{ID: "1", Rollups: []audit.Rollup{
		rollup(0, 1, with("m1", "s1", policy.Allowed, audit.VerdictForwarded)), rollup(0, 2, with("m1", "s2", policy.Allowed, audit.VerdictForwarded)),
		rollup(1, 4, with("m1", "s1", policy.Denied, audit.VerdictDropped)), rollup(1, 8, with("m2", "s1", policy.Denied, audit.VerdictForwarded)),
		rollup(1, 0, with("m2", "s2", policy.Audited, audit.VerdictForwarded)), rollup(days(1), 16, with("m1", "s1", policy.Allowed, audit.VerdictUnknown)),
	}}
	mustAppend(t, s, b)
	mustAppend(t, s, &audit.Batch{ID: "2", Rollups: []audit.Rollup{rollup(0, 32, with("m1", "s1", policy.Allowed, audit.VerdictForwarded))}})
	mustAppend(t, s, b)
	at := func(minute int) time.Time { return T0.Add(time.Duration(minute) * time.Minute) }
	check := func(cases map[string]seriesCase) {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				q := audit.SeriesQuery{Filter: tc.filter, Step: 24 * time.Hour}
				q.Since, q.Until = at(0), at(days(2))
				if !tc.until.IsZero() {
					q.Until, q.Step = tc.until, time.Minute
				}
				got, err := s.Series(t.Context(), q)
				if err != nil {
					t.Fatalf("Series: %v", err)
				}
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			})
		}
	}
	first, second := T0.Truncate(24*time.Hour), T0.Truncate(24*time.Hour).Add(24*time.Hour)
	check(map[string]seriesCase{
		"All": {reason: "edges and batches add up, and a repeated batch counts once",
			want: []audit.Point{point(first, policy.Allowed, 35), point(first, policy.Denied, 12), point(second, policy.Allowed, 16)}},
		"Window": {reason: "the end of the window is exclusive", until: at(1), want: []audit.Point{point(at(0), policy.Allowed, 35)}},
		"Cluster": {reason: "the destination's cluster", filter: audit.Filter{Clusters: []string{"m2", "m3"}},
			want: []audit.Point{point(first, policy.Denied, 8)}},
		"Verdict": {reason: "the dataplane's verdict", filter: audit.Filter{Verdicts: []audit.Verdict{audit.VerdictForwarded}},
			want: []audit.Point{point(first, policy.Allowed, 35), point(first, policy.Denied, 8)}},
		"Decision": {reason: "the evaluator's decision", filter: audit.Filter{Decisions: []policy.Verdict{policy.Denied, policy.Audited}},
			want: []audit.Point{point(first, policy.Denied, 12)}},
		"Disagree": {reason: "denied, but forwarded", filter: audit.Filter{Disagree: true},
			want: []audit.Point{point(first, policy.Denied, 8)}},
		"Within": {
			reason: "a scope restricts the sums",
			filter: audit.Filter{Within: &audit.Scope{Subjects: []string{"s2"}}},
			want:   []audit.Point{point(first, policy.Allowed, 2)},
		},
		"Nothing": {reason: "an empty scope selects nothing", filter: audit.Filter{Within: &audit.Scope{}}},
	})
	if _, err := s.Prune(t.Context(), audit.Retention{Rollups: second}); err != nil {
		t.Fatalf("Prune: %v", err)
	}
	check(map[string]seriesCase{"Pruned": {reason: "sums are pruned together with their roll-ups", want: []audit.Point{point(second, policy.Allowed, 16)}}})
}

type seriesCase struct {
	reason string
	filter audit.Filter
	// until, when set, ends the window, which is then counted by minutes.
	until time.Time
	want  []audit.Point
}
