package audittest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Pages runs the queries of the flow pages, each several times with different names, and returns the 99th percentile of the
// duration of each kind. The flows of the fleet must lie between since and until.
func Pages(ctx context.Context, tb testing.TB, r audit.Reader, f *Fleet, since, until time.Time, times int) map[string]time.Duration {
	tb.Helper()
	kinds := map[string]func(int) error{}
	list := func(name string, filter func(i int) audit.Filter) {
		kinds["connections "+name] = func(i int) error {
			x := filter(i)
			x.Since, x.Until = since, until
			_, err := r.Connections(ctx, audit.ConnectionQuery{Filter: x, Limit: 50})
			return err
		}
		kinds["flows "+name] = func(i int) error {
			x := filter(i)
			x.Since, x.Until = since, until
			_, err := r.Flows(ctx, audit.FlowQuery{Filter: x, Limit: 50})
			return err
		}
		kinds["series "+name] = func(i int) error {
			x := filter(i)
			x.Since, x.Until = since, until
			_, err := r.Series(ctx, audit.SeriesQuery{Filter: x, Step: max(time.Minute, until.Sub(since)/60).Truncate(time.Minute)})
			return err
		}
	}
	edge := func(i int) audit.Edge { return f.Edges[i*7919%len(f.Edges)] }
	list("newest", func(int) audit.Filter { return audit.Filter{} })
	list("of a resource", func(i int) audit.Filter { return audit.Filter{Resources: []string{edge(i).Resource}} })
	list("of a subject", func(i int) audit.Filter { return audit.Filter{Subjects: []string{edge(i).Subject}} })
	list("denied", func(int) audit.Filter {
		return audit.Filter{Decisions: []policy.Verdict{policy.Denied, policy.DefaultDenied}}
	})
	out := map[string]time.Duration{}
	for name, ask := range kinds {
		var took []time.Duration
		for i := range times {
			begun := time.Now()
			if err := ask(i); err != nil {
				tb.Fatalf("%s: %v", name, err)
			}
			took = append(took, time.Since(begun))
		}
		_, out[name] = Figures(took)
	}
	return out
}

// PrintPages prints the benchmark figure of all pages, which is that of the slowest kind, and logs each kind.
func PrintPages(tb testing.TB, name string, kinds map[string]time.Duration) {
	tb.Helper()
	var worst time.Duration
	for kind, d := range kinds {
		fmt.Printf("  %-28s p99 %v\n", kind, d.Round(100*time.Microsecond))
		worst = max(worst, d)
	}
	fmt.Printf("bench %s %d ms\n", name, worst.Milliseconds())
}
