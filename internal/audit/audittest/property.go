package audittest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// spanDays is the number of days over which random batches are spread.
const spanDays = 4

type generator struct{ *rand.Rand }

func pick[T any](g generator, list ...T) T { return list[g.IntN(len(list))] }

// some returns a random part of the list, often none.
func some[T any](g generator, list ...T) []T {
	if g.IntN(3) > 0 {
		return nil
	}
	return list[:1+g.IntN(len(list))]
}

func (g generator) edge() audit.Edge {
	e := audit.Edge{
		Cluster:       pick(g, "m1", "m2"),
		SourceCluster: pick(g, "m1", ""),
		Subject:       pick(g, "", "App/1", "app/2"),
		Resource:      pick(g, "", "r/a", "r/B"),
		Action:        pick(g, "", "redis:connect"),
		Port:          pick[uint16](g, 0, 6379, 65535),
		Protocol:      "TCP",
		Decision: pick(
			g,
			policy.Allowed,
			policy.DefaultDenied,
			policy.Audited,
		),
		Verdict:       pick(g, audit.VerdictForwarded, audit.VerdictDropped, audit.VerdictUnknown),
		OtherSubjects: pick(g, "", "app/8 app/9"),
	}
	if e.Subject == "" {
		e.Source = pick(g, "10.0.0.0/24", "namespace=x,app='y'")
	}
	if e.Decision == policy.Allowed {
		e.Statement = policy.Ref{Policy: pick(g, "p", "q"), SID: "s"}
	}
	return e
}

// minute returns a random minute, mostly near the middle of the days.
func (g generator) minute() time.Time {
	return T0.Truncate(24 * time.Hour).Add(time.Duration(g.IntN(spanDays*24*6)) * 10 * time.Minute)
}

func (g generator) moment() time.Time {
	return g.minute().Add(time.Duration(g.IntN(60_000_000)) * time.Microsecond)
}

func (g generator) batch(id string) *audit.Batch {
	b := &audit.Batch{ID: id}
	for range g.IntN(40) {
		bucket := g.minute()
		first := bucket.Add(time.Duration(g.IntN(30_000_000)) * time.Microsecond)
		b.Rollups = append(
			b.Rollups,
			audit.Rollup{
				Bucket:    bucket,
				Edge:      g.edge(),
				Count:     pick(g, 0, 1+g.Int64N(1000), 1+g.Int64N(1000)),
				FirstSeen: first,
				LastSeen:  first.Add(time.Duration(g.IntN(30_000_000)) * time.Microsecond),
			},
		)
	}
	for range g.IntN(10) {
		at := g.moment()
		if g.IntN(3) == 0 {
			at = T0 // several at the same time
		}
		b.Flows = append(
			b.Flows,
			audit.Flow{
				Time:          at,
				Node:          pick(g, "n1", "n2"),
				Edge:          g.edge(),
				SourceAddress: netip.MustParseAddr("10.0.0.1"),
				SourcePort:    uint16(g.IntN(3)),
				Count:         1,
				Reason:        pick(g, "", "why"),
			},
		)
	}
	for range g.IntN(4) {
		from := g.moment()
		b.Losses = append(
			b.Losses,
			audit.Loss{
				Cluster: pick(g, "m1", "m2"),
				Node:    pick(g, "", "n1"),
				Reason:  pick(g, audit.LossRing, audit.LossGap),
				Count:   g.Int64N(9),
				From:    from,
				To:      from.Add(time.Duration(g.IntN(100)) * time.Minute),
			},
		)
	}
	for range g.IntN(3) {
		from := g.moment()
		b.Watched = append(b.Watched, audit.WatchedSpan{Source: pick(g, "m1", "m2"), From: from, To: from.Add(time.Duration(g.IntN(30*60)) * time.Second)})
	}
	return b
}

func (g generator) filter() audit.Filter {
	f := audit.Filter{
		Subjects: some(g, "app/2", "", "none"), Resources: some(g, "r/a", "r/B"), Clusters: some(g, "m1"), Actions: some(g, "redis:connect"),
		Decisions: some(g, policy.Allowed, policy.Audited), Verdicts: some(g, audit.VerdictDropped, audit.VerdictForwarded), Ports: some[uint16](g, 65535, 0),
		Policy: pick(g, "", "", "", "p"), SID: pick(g, "", "", "", "s"), Unattributed: g.IntN(5) == 0, Disagree: g.IntN(5) == 0,
		Text: pick(g, "", "", "", "APP", "r/b", "0.0.0/", "'y'", "1"),
	}
	if g.IntN(2) == 0 {
		f.Since = g.moment()
	}
	if g.IntN(2) == 0 {
		f.Until = g.moment()
	}
	if g.IntN(4) == 0 {
		f.Within = &audit.Scope{Subjects: some(g, "App/1"), Resources: some(g, "r/a")}
	}
	return f
}

// likeAModel appends random batches, some of them repeatedly, and compares the results of every kind of query with those of the
// model.
func likeAModel(t *testing.T, s audit.Store) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g, m := generator{rand.New(rand.NewPCG(seed, 0))}, newModel()
	var batches []*audit.Batch
	check := func() {
		t.Helper()
		for range 8 {
			compare(t, s, m, g)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	for i := range 12 {
		b := g.batch(fmt.Sprint(i))
		mustAppend(t, s, b)
		m.append(b)
		batches = append(batches, b)
		mustAppend(t, s, batches[g.IntN(len(batches))])
		if i%4 == 3 {
			check()
		}
	}
	cut := func() time.Time {
		return T0.Truncate(24 * time.Hour).Add(time.Duration(g.IntN(spanDays)) * 24 * time.Hour)
	}
	r := audit.Retention{Rollups: cut(), Flows: cut(), Losses: cut()}
	if _, err := s.Prune(t.Context(), r); err != nil {
		t.Fatalf("Prune: %v", err)
	}
	m.prune(r)
	check()
	b := g.batch("after")
	mustAppend(t, s, b)
	m.append(b)
	check()
}

func compare(t *testing.T, s audit.Store, m *model, g generator) {
	t.Helper()
	f := g.filter()
	want := m.totals(f)
	if diff := cmp.Diff(want, totals(t, s, f), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Totals(%+v) (-want +got):\n%s", f, diff)
	}
	compareConnections(t, s, f, 1+g.IntN(20), want)
	compareSeries(t, s, m, g, f)
	compareSeries(t, s, m, g, audit.Filter{Clusters: f.Clusters, Decisions: f.Decisions, Verdicts: f.Verdicts, Disagree: f.Disagree})
	compareFlows(t, s, f, 1+g.IntN(20), m)
	compareLosses(t, s, m, f.Since, f.Until)
}

func compareSeries(t *testing.T, s audit.Store, m *model, g generator, f audit.Filter) {
	t.Helper()
	q := audit.SeriesQuery{Filter: f, Step: pick(g, 10*time.Minute, 7*time.Minute, 24*time.Hour)}
	q.Since, q.Until = T0.Truncate(24*time.Hour), T0.Truncate(24*time.Hour).Add(spanDays*24*time.Hour)
	got, err := s.Series(t.Context(), q)
	if err != nil {
		t.Errorf("Series(%+v): %v", q, err)
	}
	if diff := cmp.Diff(m.series(q), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Series(%+v) (-want +got):\n%s", q, diff)
	}
}

func compareConnections(t *testing.T, s audit.Store, f audit.Filter, limit int, want []audit.Total) {
	t.Helper()
	got := map[audit.Edge]audit.Connection{}
	n := 0
	var last time.Time
	for q := (audit.ConnectionQuery{Filter: f, Limit: limit}); ; {
		page, err := s.Connections(t.Context(), q)
		if err != nil {
			t.Fatalf("Connections(%+v): %v", q, err)
		}
		for _, c := range page.Items {
			if n > 0 && c.LastSeen.After(last) {
				t.Errorf("Connections(%+v): got %v after %v", q, c.LastSeen, last)
			}
			last = c.LastSeen
			got[c.Edge] = c
			n++
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if n != len(want) {
		t.Errorf("Connections(%+v) in pages of %d: got %d items, want %d", f, limit, n, len(want))
	}
	for _, w := range want {
		if diff := cmp.Diff(audit.Connection{Edge: w.Edge, Count: w.Count, FirstSeen: w.FirstSeen, LastSeen: w.LastSeen}, got[w.Edge]); diff != "" {
			t.Errorf("Connections(%+v) in pages of %d (-want +got):\n%s", f, limit, diff)
		}
	}
}

func compareFlows(t *testing.T, s audit.Store, f audit.Filter, limit int, m *model) {
	t.Helper()
	want := slices.DeleteFunc(slices.Clone(m.flows), func(x audit.Flow) bool { return !selects(f, x.Edge, x.Time) })
	var got []audit.Flow
	for q := (audit.FlowQuery{Filter: f, Limit: limit}); ; {
		page, err := s.Flows(t.Context(), q)
		if err != nil {
			t.Fatalf("Flows(%+v): %v", q, err)
		}
		got = append(got, page.Items...)
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if !slices.IsSortedFunc(got, func(a, b audit.Flow) int { return b.Time.Compare(a.Time) }) {
		t.Errorf("Flows(%+v) are not sorted by time", f)
	}
	text := func(f audit.Flow) string { return fmt.Sprintf("%v", f) }
	order := func(a, b audit.Flow) int { return strings.Compare(text(a), text(b)) }
	slices.SortFunc(want, order)
	slices.SortFunc(got, order)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), sameAddress); diff != "" {
		t.Errorf("Flows(%+v) in pages of %d (-want +got):\n%s", f, limit, diff)
	}
}

func compareLosses(t *testing.T, s audit.Store, m *model, since, until time.Time) {
	t.Helper()
	var want []audit.Loss
	for _, l := range m.losses {
		if !l.To.Before(since) && (until.IsZero() || l.From.Before(until)) {
			want = append(want, l)
		}
	}
	text := func(l audit.Loss) string { return fmt.Sprintf("%v", l) }
	sorted := cmpopts.SortSlices(func(a, b audit.Loss) bool { return text(a) < text(b) })
	if diff := cmp.Diff(want, allLosses(t, s, audit.LossQuery{Since: since, Until: until}), sorted, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Losses from %v to %v (-want +got):\n%s", since, until, diff)
	}
	since = audit.Later(since, m.covered)
	got, err := s.Coverage(t.Context(), since, until)
	if err != nil {
		t.Fatalf("Coverage: %v", err)
	}
	if diff := cmp.Diff(audit.ComputeCoverage(since, until, m.watched, want), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Coverage from %v to %v (-want +got):\n%s", since, until, diff)
	}
}
