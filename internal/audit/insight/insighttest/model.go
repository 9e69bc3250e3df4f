// Package insighttest contains a flow store in memory for the tests of package insight and of its callers. It is for tests only.
package insighttest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Model implements insight.Reader over maps, without the optimizations of a store. It must be filled before it is read.
type Model struct {
	edges   map[audit.Edge]map[time.Time]*audit.Rollup
	order   []audit.Edge // sorted; nil when it has to be made again
	watched []audit.WatchedSpan
	losses  []audit.Loss
}

// NewModel returns a Model that holds the batches.
func NewModel(batches ...*audit.Batch) *Model {
	m := &Model{edges: map[audit.Edge]map[time.Time]*audit.Rollup{}}
	for _, b := range batches {
		m.Add(b)
	}
	return m
}

// Add takes in what a batch adds; positions and what was seen do not matter here.
func (m *Model) Add(b *audit.Batch) {
	for _, r := range b.Rollups {
		buckets := m.edges[r.Edge]
		if buckets == nil {
			buckets = map[time.Time]*audit.Rollup{}
			m.edges[r.Edge], m.order = buckets, nil
		}
		at := r.Bucket.UTC().Truncate(audit.BucketWidth)
		if have := buckets[at]; have != nil {
			have.Count += r.Count
			have.FirstSeen, have.LastSeen = audit.Earlier(have.FirstSeen, r.FirstSeen), audit.Later(have.LastSeen, r.LastSeen)
			continue
		}
		buckets[at] = &r
	}
	m.watched, m.losses = append(m.watched, b.Watched...), append(m.losses, b.Losses...)
}

// Totals implements audit.Reader.
func (m *Model) Totals(ctx context.Context, f audit.Filter, each func(audit.Total) error) error {
	for _, e := range m.sorted() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !Matches(f, e) {
			continue
		}
		t := audit.Total{Edge: e}
		for at, r := range m.edges[e] {
			if !inWindow(f, at) {
				continue
			}
			if len(t.Days) == 0 {
				t.FirstSeen, t.LastSeen = r.FirstSeen, r.LastSeen
			}
			t.Count += r.Count
			t.FirstSeen, t.LastSeen = audit.Earlier(t.FirstSeen, r.FirstSeen), audit.Later(t.LastSeen, r.LastSeen)
			t.Days = append(t.Days, at.Truncate(24*time.Hour))
		}
		if len(t.Days) == 0 {
			continue
		}
		slices.SortFunc(t.Days, time.Time.Compare)
		t.Days = slices.CompactFunc(t.Days, time.Time.Equal)
		if err := each(t); err != nil {
			return err
		}
	}
	return nil
}

// Series implements audit.Reader.
func (m *Model) Series(_ context.Context, q audit.SeriesQuery) ([]audit.Point, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	type key struct {
		start    time.Time
		decision policy.Verdict
	}
	counts := map[key]int64{}
	for e, buckets := range m.edges {
		for at, r := range buckets {
			if Matches(q.Filter, e) && inWindow(q.Filter, at) {
				counts[key{at.Truncate(q.Step), e.Decision}] += r.Count
			}
		}
	}
	out := make([]audit.Point, 0, len(counts))
	for k, n := range counts {
		if n == 0 {
			continue
		}
		out = append(out, audit.Point{Start: k.start, Decision: k.decision, Count: n})
	}
	slices.SortFunc(out, func(a, b audit.Point) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Decision, b.Decision))
	})
	return out, nil
}

// Coverage implements audit.Reader.
func (m *Model) Coverage(_ context.Context, since, until time.Time) ([]audit.Coverage, error) {
	return audit.ComputeCoverage(since, until, m.watched, m.losses), nil
}

func (m *Model) sorted() []audit.Edge {
	if m.order == nil {
		for e := range m.edges {
			m.order = append(m.order, e)
		}
		slices.SortFunc(m.order, compareEdges)
	}
	return m.order
}

func compareEdges(a, b audit.Edge) int {
	return cmp.Or(
		cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Subject, b.Subject),
		cmp.Compare(a.Cluster, b.Cluster),
		cmp.Compare(a.SourceCluster, b.SourceCluster),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.Destination, b.Destination),
		cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)),
	)
}

func inWindow(f audit.Filter, bucket time.Time) bool {
	since, until := f.Window()
	return !bucket.Before(since) && (until.IsZero() || bucket.Before(until))
}

// Matches reports whether the filter selects an edge, its window aside.
func Matches(f audit.Filter, e audit.Edge) bool {
	switch {
	case !among(f.Subjects, e.Subject), !among(f.Resources, e.Resource), !among(f.Clusters, e.Cluster), !among(f.Actions, e.Action),
		!among(f.Decisions, e.Decision), !among(f.Verdicts, e.Verdict), !among(f.Ports, e.Port),
		f.Policy != "" && f.Policy != e.Statement.Policy, f.SID != "" && f.SID != e.Statement.SID,
		f.Unattributed && e.Subject != "" && e.Resource != "",
		f.Disagree && !e.Disagrees(),
		f.Within != nil && !slices.Contains(f.Within.Subjects, e.Subject) && !slices.Contains(f.Within.Resources, e.Resource):
		return false
	}
	text := strings.ToLower(f.Text)
	return slices.ContainsFunc(
		[]string{e.Subject, e.Resource, e.Source, e.Destination},
		func(s string) bool { return strings.Contains(strings.ToLower(s), text) },
	)
}

func among[T comparable](wanted []T, v T) bool { return len(wanted) == 0 || slices.Contains(wanted, v) }
