// Package audittest is the conformance suite of flow stores: every backend of audit.Store runs it.
package audittest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// T0 is the start of the first bucket of the suite.
var T0 = time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)

// Run runs the suite; factory returns an empty store for one test and closes it when the test ends.
func Run(t *testing.T, factory func(t *testing.T) audit.Store) {
	for name, test := range map[string]func(*testing.T, audit.Store){
		"AppendAddsUp":            appendAddsUp,
		"AppendIsIdempotent":      appendIsIdempotent,
		"AppendNeedsAnID":         appendNeedsAnID,
		"ResumeGoesWithTheBatch":  resumeGoesWithTheBatch,
		"PositionNeverGoesBack":   positionNeverGoesBack,
		"ConnectionsFilter":       connectionsFilter,
		"ConnectionsOrderLimit":   connectionsOrderAndLimit,
		"DeniedCounts":            deniedCounts,
		"LossesAddUp":             lossesAddUp,
		"PruneKeepsWhatIsNewer":   pruneKeepsWhatIsNewer,
		"ConcurrentReadsAndWrite": concurrentReadsAndWrite,
	} {
		t.Run(name, func(t *testing.T) { test(t, factory(t)) })
	}
}

// Edge returns an edge with every field set.
func Edge(change ...func(*audit.Edge)) audit.Edge {
	e := audit.Edge{
		Cluster: "m1", SourceCluster: "m2", Subject: "trnv1:rsc:trip-com:iam:sa:app/888", Resource: "trnv1:rsc:trip-com:redis:clusters:a",
		Source: "", Destination: "", Action: "redis:connect", Port: 6379, Protocol: "TCP",
		Decision: policy.Allowed, Verdict: audit.VerdictForwarded, Statement: policy.Ref{Policy: "p", SID: "s"},
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func rollup(minute int, count int64, e audit.Edge) audit.Rollup {
	b := T0.Add(time.Duration(minute) * time.Minute)
	return audit.Rollup{Bucket: b, Edge: e, Count: count, FirstSeen: b.Add(time.Second), LastSeen: b.Add(30 * time.Second)}
}

func connection(count int64, firstMinute, lastMinute int, e audit.Edge) audit.Connection {
	return audit.Connection{
		Cluster: e.Cluster, SourceCluster: e.SourceCluster, Subject: e.Subject, Resource: e.Resource, Source: e.Source, Destination: e.Destination,
		Action: e.Action, Port: e.Port, Protocol: e.Protocol, Decision: e.Decision, Verdict: e.Verdict, Statement: e.Statement, Count: count,
		FirstSeen: T0.Add(time.Duration(firstMinute)*time.Minute + time.Second), LastSeen: T0.Add(time.Duration(lastMinute)*time.Minute + 30*time.Second),
	}
}

func mustAppend(t *testing.T, s audit.Store, b *audit.Batch) {
	t.Helper()
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatalf("Append(%s): %v", b.ID, err)
	}
}

func wantConnections(t *testing.T, s audit.Store, q audit.ConnectionQuery, want ...audit.Connection) {
	t.Helper()
	got, err := s.Connections(t.Context(), q)
	if err != nil {
		t.Fatalf("Connections: %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Connections(%+v) (-want +got):\n%s", q, diff)
	}
}

func appendAddsUp(t *testing.T, s audit.Store) {
	e := Edge()
	mustAppend(t, s, &audit.Batch{ID: "1", Rollups: []audit.Rollup{rollup(0, 3, e), rollup(1, 4, e)}})
	late := rollup(0, 2, e)
	late.FirstSeen, late.LastSeen = late.Bucket.Add(20*time.Second), late.Bucket.Add(40*time.Second)
	mustAppend(t, s, &audit.Batch{ID: "2", Rollups: []audit.Rollup{late}})
	wantConnections(t, s, audit.ConnectionQuery{}, connection(9, 0, 1, e))
}

func appendIsIdempotent(t *testing.T, s audit.Store) {
	e := Edge()
	b := &audit.Batch{ID: "same", Rollups: []audit.Rollup{rollup(0, 3, e)}, Losses: []audit.Loss{{Cluster: "m1", Reason: audit.LossRing, Count: 5, From: T0, To: T0}}}
	mustAppend(t, s, b)
	mustAppend(t, s, &audit.Batch{ID: "between", Rollups: []audit.Rollup{rollup(0, 1, e)}})
	mustAppend(t, s, b)
	wantConnections(t, s, audit.ConnectionQuery{}, connection(4, 0, 0, e))
	losses, err := s.Losses(t.Context(), T0)
	if err != nil {
		t.Fatalf("Losses: %v", err)
	}
	if len(losses) != 1 || losses[0].Count != 5 {
		t.Errorf("Losses = %+v, want one of 5", losses)
	}
}

func appendNeedsAnID(t *testing.T, s audit.Store) {
	if err := s.Append(t.Context(), &audit.Batch{Rollups: []audit.Rollup{rollup(0, 1, Edge())}}); err == nil {
		t.Error("Append took a batch without an id, which could never be told apart when it is repeated")
	}
	wantConnections(t, s, audit.ConnectionQuery{})
}

func resumeGoesWithTheBatch(t *testing.T, s audit.Store) {
	first, err := s.Resume(t.Context(), "m1")
	if err != nil {
		t.Fatalf("Resume: %v", err)
	}
	if diff := cmp.Diff(audit.Resume{}, first, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Resume of an unknown source (-want +got):\n%s", diff)
	}
	at := T0.Add(1500 * time.Microsecond)
	mustAppend(t, s, &audit.Batch{
		ID:        "1",
		Positions: []audit.Position{{Source: "m1", Time: at}, {Source: "m2", Time: T0}},
		Seen:      []audit.Seen{{Source: "m1", Time: T0, ID: 1}, {Source: "m1", Time: at, ID: ^uint64(0)}, {Source: "m2", Time: T0, ID: 7}},
	})
	mustAppend(t, s, &audit.Batch{ID: "2", Seen: []audit.Seen{{Source: "m1", Time: at, ID: 2}}, ForgetSeen: map[string]time.Time{"m1": T0.Add(time.Microsecond)}})
	got, err := s.Resume(t.Context(), "m1")
	if err != nil {
		t.Fatalf("Resume: %v", err)
	}
	want := audit.Resume{Position: at, Seen: []audit.Seen{{Source: "m1", Time: at, ID: 2}, {Source: "m1", Time: at, ID: ^uint64(0)}}}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b audit.Seen) bool { return a.ID < b.ID })); diff != "" {
		t.Errorf("Resume (-want +got):\n%s", diff)
	}
	last, err := s.LastFlow(t.Context())
	if err != nil {
		t.Fatalf("LastFlow: %v", err)
	}
	if diff := cmp.Diff(map[string]time.Time{"m1": at, "m2": T0}, last); diff != "" {
		t.Errorf("LastFlow (-want +got):\n%s", diff)
	}
}

func positionNeverGoesBack(t *testing.T, s audit.Store) {
	mustAppend(t, s, &audit.Batch{ID: "1", Positions: []audit.Position{{Source: "m1", Time: T0.Add(time.Hour)}}})
	mustAppend(t, s, &audit.Batch{ID: "2", Positions: []audit.Position{{Source: "m1", Time: T0}}})
	got, err := s.Resume(t.Context(), "m1")
	if err != nil {
		t.Fatalf("Resume: %v", err)
	}
	if !got.Position.Equal(T0.Add(time.Hour)) {
		t.Errorf("Resume position = %v, want the later one", got.Position)
	}
}

func connectionsFilter(t *testing.T, s audit.Store) {
	allowed := Edge()
	denied := Edge(func(e *audit.Edge) {
		e.Subject, e.Decision, e.Verdict, e.Statement = "trnv1:rsc:trip-com:iam:sa:app/889", policy.DefaultDenied, audit.VerdictDropped, policy.Ref{}
	})
	other := Edge(func(e *audit.Edge) { e.Resource = "trnv1:rsc:trip-com:redis:clusters:b" })
	outside := Edge(func(e *audit.Edge) { e.Subject, e.Source, e.SourceCluster = "", "203.0.113.0/24", "" })
	mustAppend(t, s, &audit.Batch{ID: "1", Rollups: []audit.Rollup{rollup(0, 1, allowed), rollup(1, 2, denied), rollup(2, 3, other), rollup(3, 4, outside)}})
	for name, tc := range map[string]struct {
		reason string
		query  audit.ConnectionQuery
		want   []audit.Connection
	}{
		"Resource": {
			reason: "every client of the resource, also the one without a name",
			query:  audit.ConnectionQuery{Resource: allowed.Resource},
			want:   []audit.Connection{connection(4, 3, 3, outside), connection(2, 1, 1, denied), connection(1, 0, 0, allowed)},
		},
		"Subject": {
			reason: "everything that the application connects to",
			query:  audit.ConnectionQuery{Subject: allowed.Subject},
			want:   []audit.Connection{connection(3, 2, 2, other), connection(1, 0, 0, allowed)},
		},
		"Decisions": {
			reason: "several words are alternatives",
			query:  audit.ConnectionQuery{Decisions: []policy.Word{policy.Denied, policy.DefaultDenied}},
			want:   []audit.Connection{connection(2, 1, 1, denied)},
		},
		"Since": {
			reason: "a bucket counts whole, so that the minute that has begun is not lost",
			query:  audit.ConnectionQuery{Since: T0.Add(2*time.Minute + 59*time.Second)},
			want:   []audit.Connection{connection(4, 3, 3, outside), connection(3, 2, 2, other)},
		},
		"Both": {
			reason: "filters narrow each other",
			query:  audit.ConnectionQuery{Subject: allowed.Subject, Resource: other.Resource, Decisions: []policy.Word{policy.Denied}},
		},
		"Hostile": {
			reason: "a value is never part of the query's text",
			query:  audit.ConnectionQuery{Resource: `' OR 1=1 --`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Log(tc.reason)
			wantConnections(t, s, tc.query, tc.want...)
		})
	}
}

func connectionsOrderAndLimit(t *testing.T, s audit.Store) {
	b := &audit.Batch{ID: "1"}
	for i := range audit.DefaultConnections + 5 {
		b.Rollups = append(b.Rollups, rollup(i, 1, Edge(func(e *audit.Edge) { e.Subject = fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/%d", i) })))
	}
	mustAppend(t, s, b)
	got, err := s.Connections(t.Context(), audit.ConnectionQuery{})
	if err != nil {
		t.Fatalf("Connections: %v", err)
	}
	if len(got) != audit.DefaultConnections {
		t.Errorf("without a limit there are %d connections, want %d", len(got), audit.DefaultConnections)
	}
	got, err = s.Connections(t.Context(), audit.ConnectionQuery{Limit: 3})
	if err != nil {
		t.Fatalf("Connections: %v", err)
	}
	if len(got) != 3 {
		t.Fatalf("with a limit of 3 there are %d connections", len(got))
	}
	for i, c := range got {
		if want := fmt.Sprintf("trnv1:rsc:trip-com:iam:sa:app/%d", audit.DefaultConnections+4-i); c.Subject != want {
			t.Errorf("connection %d is of %s, want %s: newest first", i, c.Subject, want)
		}
	}
}

func deniedCounts(t *testing.T, s audit.Store) {
	deny := func(subject, resource string, w policy.Word) audit.Edge {
		return Edge(func(e *audit.Edge) { e.Subject, e.Resource, e.Decision = subject, resource, w })
	}
	mustAppend(t, s, &audit.Batch{ID: "1", Rollups: []audit.Rollup{
		rollup(0, 100, deny("s1", "r1", policy.Denied)),
		rollup(5, 1, deny("s1", "r1", policy.Denied)), rollup(6, 2, deny("s1", "r1", policy.DefaultDenied)), rollup(5, 4, deny("s1", "r2", policy.DefaultDenied)),
		rollup(5, 8, deny("s2", "r1", policy.DefaultDenied)), rollup(5, 16, deny("s1", "r1", policy.Audited)), rollup(5, 32, deny("", "r1", policy.Denied)),
	}})
	since := T0.Add(5 * time.Minute)
	for name, tc := range map[string]struct {
		reason string
		query  audit.DeniedQuery
		want   map[string]int64
	}{
		"BySubject":          {"an edge without a subject has no subject to be counted for", audit.DeniedQuery{By: audit.BySubject, Since: since}, map[string]int64{"s1": 7, "s2": 8}},
		"ByResource":         {"audited is not denied", audit.DeniedQuery{By: audit.ByResource, Since: since}, map[string]int64{"r1": 43, "r2": 4}},
		"SubjectsOfResource": {"filtered by the other side", audit.DeniedQuery{By: audit.BySubject, Resource: "r1", Since: since}, map[string]int64{"s1": 3, "s2": 8}},
		"ResourcesOfSubject": {"filtered by the other side", audit.DeniedQuery{By: audit.ByResource, Subject: "s1"}, map[string]int64{"r1": 103, "r2": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Denied(t.Context(), tc.query)
			if err != nil {
				t.Fatalf("Denied: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: Denied (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := s.Denied(t.Context(), audit.DeniedQuery{By: "cluster; DROP TABLE edges"}); !errors.Is(err, audit.ErrInvalidQuery) {
		t.Errorf("Denied by an unknown name: %v, want ErrInvalidQuery", err)
	}
}

func lossesAddUp(t *testing.T, s audit.Store) {
	l := audit.Loss{Cluster: "m1", Node: "n1", Reason: audit.LossRing, Count: 3, From: T0, To: T0.Add(time.Second)}
	later := l
	later.Count, later.From, later.To = 4, T0.Add(2*time.Second), T0.Add(3*time.Second)
	gap := audit.Loss{Cluster: "m2", Reason: audit.LossGap, From: T0, To: T0.Add(time.Hour)}
	mustAppend(t, s, &audit.Batch{ID: "1", Losses: []audit.Loss{l, gap}})
	mustAppend(t, s, &audit.Batch{ID: "2", Losses: []audit.Loss{later}})
	got, err := s.Losses(t.Context(), T0)
	if err != nil {
		t.Fatalf("Losses: %v", err)
	}
	sum := l
	sum.Count, sum.To = 7, later.To
	if diff := cmp.Diff([]audit.Loss{gap, sum}, got); diff != "" {
		t.Errorf("Losses (-want +got):\n%s", diff)
	}
}

func pruneKeepsWhatIsNewer(t *testing.T, s audit.Store) {
	old, kept := Edge(func(e *audit.Edge) { e.Subject = "old" }), Edge()
	mustAppend(t, s, &audit.Batch{
		ID: "1", Rollups: []audit.Rollup{rollup(0, 1, old), rollup(0, 2, kept), rollup(10, 4, kept)},
		Losses:    []audit.Loss{{Cluster: "m1", Reason: audit.LossRing, Count: 1, From: T0, To: T0}, {Cluster: "m1", Reason: audit.LossGap, From: T0, To: T0.Add(time.Hour)}},
		Positions: []audit.Position{{Source: "m1", Time: T0}},
	})
	n, err := s.Prune(t.Context(), T0.Add(10*time.Minute))
	if err != nil {
		t.Fatalf("Prune: %v", err)
	}
	if n != 2 {
		t.Errorf("Prune deleted %d roll-ups, want 2", n)
	}
	wantConnections(t, s, audit.ConnectionQuery{}, connection(4, 10, 10, kept))
	losses, err := s.Losses(t.Context(), time.Time{})
	if err != nil {
		t.Fatalf("Losses: %v", err)
	}
	if len(losses) != 1 || losses[0].Reason != audit.LossGap {
		t.Errorf("Losses = %+v, want the one that ended later", losses)
	}
	if r, err := s.Resume(t.Context(), "m1"); err != nil || r.Position.IsZero() {
		t.Errorf("Resume = %+v, %v; a position must outlive the roll-ups", r, err)
	}
	// The edge that was pruned is seen again.
	mustAppend(t, s, &audit.Batch{ID: "2", Rollups: []audit.Rollup{rollup(11, 8, old)}})
	wantConnections(t, s, audit.ConnectionQuery{Subject: "old"}, connection(8, 11, 11, old))
}

func concurrentReadsAndWrite(t *testing.T, s audit.Store) {
	const writers, batches = 3, 20
	var wg sync.WaitGroup
	errs := make(chan error, writers*batches*2)
	for w := range writers {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for i := range batches {
				errs <- s.Append(context.Background(), &audit.Batch{ID: fmt.Sprintf("%d-%d", w, i), Rollups: []audit.Rollup{rollup(i, 1, Edge())}})
			}
		}()
		go func() {
			defer wg.Done()
			for range batches {
				_, err := s.Connections(context.Background(), audit.ConnectionQuery{})
				errs <- err
			}
		}()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatalf("while reading and writing at the same time: %v", err)
		}
	}
	wantConnections(t, s, audit.ConnectionQuery{}, connection(writers*batches, 0, batches-1, Edge()))
}
