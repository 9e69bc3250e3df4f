package audittest

import (
	"fmt"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// PrintTotalsOfYear prints the benchmark figures of totals from begin to end: the duration of the totals of all edges and of those of all
// resources by their names, each read once, and the 99th percentile of those of one resource and of one subject. It fails if a total lacks a day.
func PrintTotalsOfYear(tb testing.TB, store string, r audit.Reader, f *Fleet, begin, end time.Time, times int) {
	tb.Helper()
	days := int(end.Truncate(24*time.Hour).Sub(begin.Truncate(24*time.Hour))/(24*time.Hour)) + 1
	ask := func(filter audit.Filter) time.Duration {
		tb.Helper()
		filter.Since, filter.Until = begin, end
		begun, n := time.Now(), 0
		if err := r.Totals(tb.Context(), filter, func(t audit.Total) error {
			if n++; len(t.Days) < days-1 {
				return fmt.Errorf("%d days of %s, want %d", len(t.Days), t.Resource, days)
			}
			return nil
		}); err != nil || n == 0 {
			tb.Fatalf("Totals(%+v): %d edges, %v", filter, n, err)
		}
		return time.Since(begun)
	}
	fmt.Printf("bench flows_totals_year_%s %d ms\n", store, ask(audit.Filter{}).Milliseconds())
	var names []string
	known := map[string]bool{}
	for _, e := range f.Edges {
		if !known[e.Resource] {
			known[e.Resource] = true
			names = append(names, e.Resource)
		}
	}
	fmt.Printf("bench flows_totals_year_named_%s %d ms\n", store, ask(audit.Filter{Resources: names}).Milliseconds())
	var took []time.Duration
	for i := range times {
		e := f.Edges[i*7919%len(f.Edges)]
		took = append(took, ask(audit.Filter{Resources: []string{e.Resource}}), ask(audit.Filter{Subjects: []string{e.Subject}}))
	}
	_, p99 := Figures(took)
	fmt.Printf("bench flows_last_use_year_p99_%s %d ms\n", store, p99.Milliseconds())
}
