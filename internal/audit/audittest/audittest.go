// Package audittest is the conformance suite of flow stores. Every implementation of audit.Store runs it.
package audittest

import (
	"context"
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

// Run runs the suite. factory returns an empty store for one test and closes it when the test ends.
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
		"OpenConnectionsShow":     openConnectionsShow,
		"LossesAddUp":             lossesAddUp,
		"PruneKeepsWhatIsNewer":   pruneKeepsWhatIsNewer,
		"ConnectionsDisagree":     connectionsDisagree,
		"ConnectionsPages":        connectionsPages,
		"ConnectionsOrders":       connectionsOrders,
		"TotalsInOrder":           totalsInOrder,
		"TotalsOfWholeDays":       totalsOfWholeDays,
		"SeriesByStep":            seriesByStep,
		"SeriesOfEverything":      seriesOfEverything,
		"FlowsFilterAndPage":      flowsFilterAndPage,
		"LossesPages":             lossesPages,
		"CoverageAddsUp":          coverageAddsUp,
		"LeaseExcludes":           leaseExcludes,
		"LikeAModel":              likeAModel,
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
	return audit.Connection{Edge: e, Count: count,
		FirstSeen: T0.Add(time.Duration(firstMinute)*time.Minute + time.Second), LastSeen: T0.Add(time.Duration(lastMinute)*time.Minute + 30*time.Second)}
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
	if diff := cmp.Diff(want, got.Items, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Connections(%+v) (-want +got):\n%s", q, diff)
	}
}

func allLosses(t *testing.T, s audit.Store, q audit.LossQuery) []audit.Loss {
	t.Helper()
	page, err := s.Losses(t.Context(), q)
	if err != nil {
		t.Fatalf("Losses: %v", err)
	}
	if page.Next != "" {
		t.Errorf("Losses(%+v): got another page, want one", q)
	}
	return page.Items
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
	b := &audit.Batch{
		ID:      "same",
		Rollups: []audit.Rollup{rollup(0, 3, e)},
		Losses:  []audit.Loss{{Cluster: "m1", Reason: audit.LossRing, Count: 5, From: T0, To: T0}},
	}
	mustAppend(t, s, b)
	mustAppend(t, s, &audit.Batch{ID: "between", Rollups: []audit.Rollup{rollup(0, 1, e)}})
	mustAppend(t, s, b)
	wantConnections(t, s, audit.ConnectionQuery{}, connection(4, 0, 0, e))
	losses := allLosses(t, s, audit.LossQuery{Since: T0})
	if len(losses) != 1 || losses[0].Count != 5 {
		t.Errorf("Losses = %+v, want one of 5", losses)
	}
}

func appendNeedsAnID(t *testing.T, s audit.Store) {
	if err := s.Append(t.Context(), &audit.Batch{Rollups: []audit.Rollup{rollup(0, 1, Edge())}}); err == nil {
		t.Error("Append accepted a batch without an ID, whose repetition could not be detected")
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
		Seen:      []audit.SeenEvent{{Source: "m1", Time: T0, ID: 1}, {Source: "m1", Time: at, ID: ^uint64(0)}, {Source: "m2", Time: T0, ID: 7}},
	})
	mustAppend(
		t,
		s,
		&audit.Batch{ID: "2", Seen: []audit.SeenEvent{{Source: "m1", Time: at, ID: 2}}, ForgetSeen: map[string]time.Time{"m1": T0.Add(time.Microsecond)}},
	)
	got, err := s.Resume(t.Context(), "m1")
	if err != nil {
		t.Fatalf("Resume: %v", err)
	}
	want := audit.Resume{Position: at, Seen: []audit.SeenEvent{{Source: "m1", Time: at, ID: 2}, {Source: "m1", Time: at, ID: ^uint64(0)}}}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b audit.SeenEvent) bool { return a.ID < b.ID })); diff != "" {
		t.Errorf("Resume (-want +got):\n%s", diff)
	}
	// The access log of a member's Istio is a source of its own, and has the same member.
	log := T0.Add(time.Minute)
	mustAppend(t, s, &audit.Batch{ID: "3", Positions: []audit.Position{
		{Source: audit.IstioSource("m1"), Time: T0.Add(-time.Minute)}, {Source: audit.IstioSource("m2"), Time: log}}})
	if got, err := s.Resume(t.Context(), audit.IstioSource("m2")); err != nil || !got.Position.Equal(log) {
		t.Errorf("Resume of an access log: %+v, %v, want the position %s", got, err, log)
	}
	last, err := s.LastFlow(t.Context())
	if err != nil {
		t.Fatalf("LastFlow: %v", err)
	}
	if diff := cmp.Diff(map[string]time.Time{"m1": at, "m2": log}, last); diff != "" {
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
		t.Errorf("got Resume position %v, want the later one", got.Position)
	}
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
			t.Fatalf("concurrent read or write: %v", err)
		}
	}
	wantConnections(t, s, audit.ConnectionQuery{}, connection(writers*batches, 0, batches-1, Edge()))
}
