package audittest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

func totals(t *testing.T, s audit.Store, f audit.Filter) []audit.Total {
	t.Helper()
	var out []audit.Total
	if err := s.Totals(t.Context(), f, func(x audit.Total) error {
		out = append(out, x)
		return nil
	}); err != nil {
		t.Fatalf("Totals: %v", err)
	}
	return out
}

func point(start time.Time, w policy.Verdict, n int64) audit.Point {
	return audit.Point{Start: start, Decision: w, Count: n}
}

func totalsInOrder(t *testing.T, s audit.Store) {
	e := Edge(func(e *audit.Edge) { e.OtherSubjects, e.OtherResources = "s1 s2", "r1" })
	before := Edge(func(e *audit.Edge) { e.Subject = "a" })
	first := Edge(func(e *audit.Edge) { e.Resource, e.Subject = "a", "z" })
	mustAppend(
		t,
		s,
		&audit.Batch{ID: "1", Rollups: []audit.Rollup{rollup(0, 1, e), rollup(days(2), 2, e), rollup(0, 3, before), rollup(5, 4, first), rollup(6, 5, first)}},
	)
	total := func(count int64, firstMinute, lastMinute int, e audit.Edge, days ...int) audit.Total {
		c := connection(count, firstMinute, lastMinute, e)
		out := audit.Total{Edge: c.Edge, Count: c.Count, FirstSeen: c.FirstSeen, LastSeen: c.LastSeen}
		for _, d := range days {
			out.Days = append(out.Days, T0.Truncate(24*time.Hour).Add(time.Duration(d)*24*time.Hour))
		}
		return out
	}
	want := []audit.Total{total(9, 5, 6, first, 0), total(3, 0, 0, before, 0), total(3, 0, days(2), e, 0, 2)}
	if diff := cmp.Diff(want, totals(t, s, audit.Filter{})); diff != "" {
		t.Errorf("Totals (-want +got):\n%s", diff)
	}
	want = []audit.Total{total(5, 6, 6, first, 0), total(2, days(2), days(2), e, 2)}
	if diff := cmp.Diff(want, totals(t, s, audit.Filter{Since: T0.Add(6 * time.Minute)})); diff != "" {
		t.Errorf("Totals of a window that begins within a day (-want +got):\n%s", diff)
	}
	want = []audit.Total{total(4, 5, 5, first, 0), total(3, 0, 0, before, 0), total(1, 0, 0, e, 0)}
	if diff := cmp.Diff(want, totals(t, s, audit.Filter{Until: T0.Add(6 * time.Minute)})); diff != "" {
		t.Errorf("Totals of a window that ends within a day (-want +got):\n%s", diff)
	}
	stop := errors.New("enough")
	n := 0
	if err := s.Totals(
		t.Context(), audit.Filter{}, func(audit.Total) error { n++; return stop },
	); !errors.Is(err, stop) || errors.Is(err, audit.ErrUnavailable) || n != 1 {
		t.Errorf("Totals with a callback that fails: %v after %d calls, want its own error after 1", err, n)
	}
	if err := s.Totals(t.Context(), audit.Filter{Subjects: []string{"nobody"}}, func(audit.Total) error { return stop }); err != nil {
		t.Errorf("Totals of nothing: %v", err)
	}
}

func seriesByStep(t *testing.T, s audit.Store) {
	e, denied := Edge(), Edge(func(e *audit.Edge) { e.Decision = policy.Denied })
	mustAppend(t, s, &audit.Batch{ID: "1", Rollups: []audit.Rollup{
		rollup(0, 1, e), rollup(4, 2, e), rollup(5, 4, e), rollup(5, 8, denied), rollup(14, 16, e), rollup(15, 32, e), rollup(days(1), 64, e)}})
	at := func(minute int) time.Time { return T0.Add(time.Duration(minute) * time.Minute) }
	for name, tc := range map[string]struct {
		reason string
		query  audit.SeriesQuery
		want   []audit.Point
	}{
		"Minutes": {
			reason: "empty steps are left out",
			query:  audit.SeriesQuery{Filter: audit.Filter{Since: at(0), Until: at(6)}, Step: time.Minute},
			want: []audit.Point{
				point(at(0), policy.Allowed, 1), point(at(4), policy.Allowed, 2),
				point(at(5), policy.Allowed, 4), point(at(5), policy.Denied, 8),
			},
		},
		"Steps": {
			reason: "a step that the window begins in has what is inside of the window",
			query:  audit.SeriesQuery{Filter: audit.Filter{Since: at(4), Until: at(15)}, Step: 5 * time.Minute},
			want: []audit.Point{
				point(at(0), policy.Allowed, 2), point(at(5), policy.Allowed, 4),
				point(at(5), policy.Denied, 8), point(at(10), policy.Allowed, 16),
			},
		},
		"Filter": {
			reason: "a series is of what the filter selects",
			query:  audit.SeriesQuery{Filter: audit.Filter{Since: at(0), Until: at(days(2)), Decisions: []policy.Verdict{policy.Denied}}, Step: 24 * time.Hour},
			want:   []audit.Point{point(T0.Truncate(24*time.Hour), policy.Denied, 8)},
		},
		"Days": {
			reason: "steps begin at multiples of the step",
			query:  audit.SeriesQuery{Filter: audit.Filter{Since: at(15), Until: at(days(2))}, Step: 24 * time.Hour},
			want:   []audit.Point{point(T0.Truncate(24*time.Hour), policy.Allowed, 32), point(T0.Truncate(24*time.Hour).Add(24*time.Hour), policy.Allowed, 64)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Series(t.Context(), tc.query)
			if err != nil {
				t.Fatalf("Series: %v", err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	for reason, q := range map[string]audit.SeriesQuery{
		"without a beginning":          {Filter: audit.Filter{Until: at(5)}, Step: time.Minute},
		"without an end":               {Filter: audit.Filter{Since: at(5)}, Step: time.Minute},
		"with a step of no minutes":    {Filter: audit.Filter{Since: at(0), Until: at(5)}, Step: 90 * time.Second},
		"without a step":               {Filter: audit.Filter{Since: at(0), Until: at(5)}},
		"with more steps than allowed": {Filter: audit.Filter{Since: at(0), Until: at(audit.MaxSteps + 1)}, Step: time.Minute},
	} {
		if _, err := s.Series(t.Context(), q); !errors.Is(err, audit.ErrInvalidQuery) {
			t.Errorf("series %s: got %v, want ErrInvalidQuery", reason, err)
		}
	}
}
