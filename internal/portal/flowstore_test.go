package portal

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/acp-io/acp/internal/audit"
	auditsqlite "github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/portaltest"
)

var errUnavailable = fmt.Errorf("no such file: %w", audit.ErrUnavailable)

// flowStore is a SQLite store that a test can make unavailable.
type flowStore struct {
	*auditsqlite.Store
	t       testing.TB
	err     error
	batches int
	held    func(audit.Filter)    // called before each query about connections, unless nil
	denying func(context.Context) // called before denials are counted, unless nil
}

func newFlowStore(t testing.TB) *flowStore {
	t.Helper()
	s, err := auditsqlite.Open(t.Context(), filepath.Join(t.TempDir(), "flows.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := &flowStore{Store: s, t: t}
	at := time.Now().Add(-time.Hour)
	f.see(at, refused("m1", portaltest.App888), 3)
	f.see(at, refused("m2", portaltest.App889), 5)
	return f
}

func refused(cluster, subject string) audit.Edge {
	return audit.Edge{Cluster: cluster, Subject: subject, Resource: portaltest.BobsCluster, Action: "redis:connect", Port: 6379, Protocol: "TCP",
		Decision: policy.DefaultDenied, Verdict: audit.VerdictDropped}
}

// see stores n connections of one edge.
func (f *flowStore) see(at time.Time, e audit.Edge, n int64) {
	f.t.Helper()
	f.append(&audit.Batch{Rollups: []audit.Rollup{{Bucket: at.UTC().Truncate(time.Minute), Edge: e, Count: n, FirstSeen: at.UTC(), LastSeen: at.UTC()}},
		Positions: []audit.Position{{Source: e.Cluster, Time: at.UTC()}}})
}

func (f *flowStore) append(b *audit.Batch) {
	f.t.Helper()
	f.batches++
	b.ID = fmt.Sprint("batch-", f.batches)
	if err := f.Append(f.t.Context(), b); err != nil {
		f.t.Fatal(err)
	}
}

func (f *flowStore) Totals(ctx context.Context, q audit.Filter, each func(audit.Total) error) error {
	if f.err != nil {
		return f.err
	}
	return f.Store.Totals(ctx, q, each)
}

func (f *flowStore) Connections(ctx context.Context, q audit.ConnectionQuery) (audit.ConnectionPage, error) {
	if f.err != nil {
		return audit.ConnectionPage{}, f.err
	}
	if f.held != nil {
		f.held(q.Filter)
	}
	return f.Store.Connections(ctx, q)
}

func (f *flowStore) Series(ctx context.Context, q audit.SeriesQuery) ([]audit.Point, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.Store.Series(ctx, q)
}

func (f *flowStore) Flows(ctx context.Context, q audit.FlowQuery) (audit.FlowPage, error) {
	if f.err != nil {
		return audit.FlowPage{}, f.err
	}
	return f.Store.Flows(ctx, q)
}

func (f *flowStore) Denied(ctx context.Context, q audit.DeniedQuery) (map[string]int64, error) {
	if f.err != nil {
		return nil, f.err
	}
	if f.denying != nil {
		f.denying(ctx)
	}
	return f.Store.Denied(ctx, q)
}

func (f *flowStore) LastFlow(ctx context.Context) (map[string]time.Time, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.Store.LastFlow(ctx)
}

func (f *flowStore) Losses(ctx context.Context, q audit.LossQuery) (audit.LossPage, error) {
	if f.err != nil {
		return audit.LossPage{}, f.err
	}
	return f.Store.Losses(ctx, q)
}

func (f *flowStore) Coverage(ctx context.Context, since, until time.Time) ([]audit.Coverage, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.Store.Coverage(ctx, since, until)
}
