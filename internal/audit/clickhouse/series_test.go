package clickhouse

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/audittest"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/testenv"
)

// withoutSums changes the last batches to what a program without sums by minute would have written.
func withoutSums(t *testing.T, s *Store) {
	t.Helper()
	for _, text := range []string{
		fmt.Sprintf("INSERT INTO entries (written, kind, edge, bucket, count, first_seen, last_seen) SELECT written, kind, edge, bucket, count, "+
			"first_seen, last_seen FROM entries WHERE kind = %d AND source = '%s'",
			kindRollup, summed),
		fmt.Sprintf("ALTER TABLE entries DELETE WHERE kind = %d OR kind = %d AND source = '%s' SETTINGS mutations_sync = 2", kindMinute, kindRollup, summed),
	} {
		if err := s.conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSeriesOfBothPrograms covers the time while collectors are updated one by one, and while older roll-ups are kept.
func TestSeriesOfBothPrograms(t *testing.T) {
	s := open(t, testenv.ClickHouse(t))
	t0 := audittest.T0
	denied := audittest.Edge(func(e *audit.Edge) { e.Decision, e.Verdict = policy.Denied, audit.VerdictDropped })
	add := func(id string, bucket time.Time, e audit.Edge, n int64) {
		t.Helper()
		if err := s.Append(
			t.Context(),
			&audit.Batch{ID: id, Rollups: []audit.Rollup{{Bucket: bucket, Edge: e, Count: n, FirstSeen: bucket, LastSeen: bucket}}},
		); err != nil {
			t.Fatal(err)
		}
	}
	want := func(reason string, f audit.Filter, points ...audit.Point) {
		t.Helper()
		f.Since, f.Until = t0, t0.Add(time.Hour)
		got, err := s.Series(t.Context(), audit.SeriesQuery{Filter: f, Step: time.Minute})
		if diff := cmp.Diff(points, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", reason, err, diff)
		}
	}
	add("1", t0, audittest.Edge(), 1)
	add("2", t0.Add(time.Minute), denied, 2)
	withoutSums(t, s)
	want(
		"no sums yet",
		audit.Filter{},
		audit.Point{Start: t0, Decision: policy.Allowed, Count: 1},
		audit.Point{Start: t0.Add(time.Minute), Decision: policy.Denied, Count: 2},
	)
	add("3", t0, denied, 4)
	add("4", t0.Add(time.Minute), denied, 8)
	add("2", t0.Add(time.Minute), denied, 2) // retried by the newer program
	want(
		"some minutes have both",
		audit.Filter{},
		audit.Point{Start: t0, Decision: policy.Allowed, Count: 1},
		audit.Point{Start: t0, Decision: policy.Denied, Count: 4},
		audit.Point{Start: t0.Add(time.Minute), Decision: policy.Denied, Count: 10},
	)
	want("denied only", audit.Filter{Decisions: []policy.Verdict{policy.Denied}}, audit.Point{Start: t0, Decision: policy.Denied, Count: 4},
		audit.Point{Start: t0.Add(time.Minute), Decision: policy.Denied, Count: 10})
	want("by an edge's own words", audit.Filter{Resources: []string{denied.Resource}, Decisions: []policy.Verdict{policy.Denied}},
		audit.Point{Start: t0, Decision: policy.Denied, Count: 4}, audit.Point{Start: t0.Add(time.Minute), Decision: policy.Denied, Count: 10})
	if _, err := s.Prune(t.Context(), audit.Retention{Rollups: t0.Add(48 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	want("both go", audit.Filter{})
}
