package audittest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// totalsOfWholeDays tests windows for which a store may keep sums by hour or by day: such that begin or end within a minute, an hour or a day,
// while the store catches up with its sums, with roll-ups that arrive late, and after old days were deleted.
func totalsOfWholeDays(t *testing.T, s audit.Store) {
	m, today := newModel(), T0.Truncate(24*time.Hour)
	at := func(day int, clock time.Duration) time.Time {
		return today.Add(time.Duration(day)*24*time.Hour + clock)
	}
	often, seldom := Edge(), Edge(func(e *audit.Edge) { e.Subject, e.Decision = "seldom", policy.DefaultDenied })
	n := int64(0)
	add := func(e audit.Edge, times ...time.Time) {
		t.Helper()
		b := &audit.Batch{ID: fmt.Sprint("days", n)}
		for _, x := range times {
			n++
			b.Rollups = append(b.Rollups, audit.Rollup{Bucket: x, Edge: e, Count: n, FirstSeen: x.Add(time.Second), LastSeen: x.Add(59 * time.Second)})
		}
		mustAppend(t, s, b)
		m.append(b)
	}
	const minute, lastMinute = time.Minute, 24*time.Hour - time.Minute
	bounds := []time.Time{at(1, 0), at(1, minute), at(2, 0), at(2, 11*time.Hour), at(2, 11*time.Hour+30*time.Second), at(3, 0), at(3, lastMinute), at(4, 0),
		at(5, 2*time.Hour+minute)}
	check := func(when string) {
		t.Helper()
		compare := func(f audit.Filter) {
			t.Helper()
			if diff := cmp.Diff(m.totals(f), totals(t, s, f), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s: Totals(%+v) (-want +got):\n%s", when, f, diff)
			}
			if f.Since.IsZero() || f.Until.IsZero() {
				return
			}
			for _, step := range []time.Duration{time.Hour, 24 * time.Hour, 48 * time.Hour} {
				q := audit.SeriesQuery{Filter: f, Step: step}
				q.Clusters = []string{often.Cluster} // otherwise the series is read from sums of all edges
				got, err := s.Series(t.Context(), q)
				if err != nil {
					t.Fatalf("%s: Series(%+v): %v", when, q, err)
				}
				if diff := cmp.Diff(m.series(q), got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s: Series(%+v) (-want +got):\n%s", when, q, diff)
				}
			}
		}
		compare(audit.Filter{})
		for i, since := range bounds {
			compare(audit.Filter{Since: since})
			compare(audit.Filter{Until: since})
			for _, until := range bounds[i+1:] {
				compare(audit.Filter{Since: since, Until: until})
				compare(audit.Filter{Since: since, Until: until, Subjects: []string{seldom.Subject}})
			}
		}
	}
	for day := range 6 {
		for _, clock := range []time.Duration{0, minute, 11 * time.Hour, 12*time.Hour + 7*minute, lastMinute} {
			add(often, at(day, clock))
		}
	}
	add(seldom, at(2, 11*time.Hour), at(5, 0))
	check("while days are summed up")
	for range 8 {
		add(often, at(6, 3*time.Hour))
	}
	check("after all days were summed up")
	add(seldom, at(-1, 23*time.Hour), at(1, 0), at(2, 11*time.Hour+minute), at(3, lastMinute))
	add(often, at(2, 11*time.Hour), at(2, 12*time.Hour), at(6, 4*time.Hour))
	check("with late roll-ups")
	retention := audit.Retention{Rollups: at(2, 0)}
	if _, err := s.Prune(t.Context(), retention); err != nil {
		t.Fatalf("Prune: %v", err)
	}
	m.prune(retention)
	check("without the first days")
	add(seldom, at(1, 5*time.Hour))
	add(often, at(9, 0))
	for range 4 {
		add(often, at(9, minute))
	}
	check("after days without traffic")
}
