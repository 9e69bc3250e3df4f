package audittest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// model is a reference implementation of a store, as simple as possible.
type model struct {
	rollups map[modelKey]audit.Rollup
	flows   []audit.Flow
	losses  map[lossKey]audit.Loss
	watched []audit.WatchedSpan
	// covered is the time from which on the coverage is exact: a span that continued beyond a pruned day may remain.
	covered time.Time
}

type modelKey struct {
	bucket time.Time
	edge   audit.Edge
}

type lossKey struct {
	cluster, node string
	reason        audit.LossReason
	minute        time.Time
}

func newModel() *model {
	return &model{rollups: map[modelKey]audit.Rollup{}, losses: map[lossKey]audit.Loss{}}
}

func (m *model) append(b *audit.Batch) {
	for _, r := range b.Rollups {
		k := modelKey{r.Bucket, r.Edge}
		if have, ok := m.rollups[k]; ok {
			r.Count += have.Count
			r.FirstSeen, r.LastSeen = audit.Earlier(r.FirstSeen, have.FirstSeen), audit.Later(r.LastSeen, have.LastSeen)
		}
		m.rollups[k] = r
	}
	for _, l := range b.Losses {
		k := lossKey{l.Cluster, l.Node, l.Reason, l.To.Truncate(audit.BucketWidth)}
		if have, ok := m.losses[k]; ok {
			l.Count += have.Count
			l.From, l.To = audit.Earlier(l.From, have.From), audit.Later(l.To, have.To)
		}
		m.losses[k] = l
	}
	m.flows = append(m.flows, b.Flows...)
	m.watched = append(m.watched, b.Watched...)
}

// prune requires times at the start of a day.
func (m *model) prune(r audit.Retention) {
	for k := range m.rollups {
		if k.bucket.Before(r.Rollups) {
			delete(m.rollups, k)
		}
	}
	for k, l := range m.losses {
		if l.To.Before(r.Losses) {
			delete(m.losses, k)
		}
	}
	m.flows = slices.DeleteFunc(m.flows, func(f audit.Flow) bool { return f.Time.Before(r.Flows) })
	m.covered = audit.Later(m.covered, r.Losses)
}

func (m *model) totals(f audit.Filter) []audit.Total {
	byEdge := map[audit.Edge]*audit.Total{}
	for k, r := range m.rollups {
		if !selects(f, r.Edge, r.Bucket) {
			continue
		}
		t := byEdge[k.edge]
		if t == nil {
			t = &audit.Total{Edge: k.edge, FirstSeen: r.FirstSeen, LastSeen: r.LastSeen}
			byEdge[k.edge] = t
		}
		t.Count += r.Count
		t.FirstSeen, t.LastSeen = audit.Earlier(t.FirstSeen, r.FirstSeen), audit.Later(t.LastSeen, r.LastSeen)
		if day := r.Bucket.Truncate(24 * time.Hour); !slices.ContainsFunc(t.Days, day.Equal) {
			t.Days = append(t.Days, day)
		}
	}
	out := make([]audit.Total, 0, len(byEdge))
	for _, t := range byEdge {
		slices.SortFunc(t.Days, time.Time.Compare)
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b audit.Total) int { return compareEdges(a.Edge, b.Edge) })
	return out
}

func (m *model) series(q audit.SeriesQuery) []audit.Point {
	points := map[audit.Point]int64{}
	for _, r := range m.rollups {
		if r.Count > 0 && selects(q.Filter, r.Edge, r.Bucket) {
			step := int64(q.Step / time.Second)
			points[audit.Point{Start: time.Unix(r.Bucket.Unix()/step*step, 0).UTC(), Decision: r.Decision}] += r.Count
		}
	}
	out := make([]audit.Point, 0, len(points))
	for p, n := range points {
		p.Count = n
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b audit.Point) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Decision, b.Decision))
	})
	return out
}

// selects reports whether the filter selects an edge at a time.
func selects(f audit.Filter, e audit.Edge, at time.Time) bool {
	since, until := f.Window()
	if at.Before(since) || !until.IsZero() && !at.Before(until) {
		return false
	}
	text := strings.ToLower(f.Text)
	ends := strings.ToLower(strings.Join([]string{e.Resource, e.Subject, e.Source, e.Destination}, "\x00"))
	return among(f.Subjects, e.Subject) && among(f.Resources, e.Resource) && among(f.Clusters, e.Cluster) && among(f.Actions, e.Action) &&
		among(f.Decisions, e.Decision) && among(f.Verdicts, e.Verdict) && among(f.Ports, e.Port) &&
		(f.Policy == "" || f.Policy == e.Statement.Policy) && (f.SID == "" || f.SID == e.Statement.SID) &&
		(!f.Unattributed || e.Subject == "" || e.Resource == "") && (!f.Disagree || e.Disagrees()) && strings.Contains(ends, text) &&
		(f.Within == nil || slices.Contains(f.Within.Subjects, e.Subject) || slices.Contains(f.Within.Resources, e.Resource))
}

func among[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// compareEdges orders edges like Totals.
func compareEdges(a, b audit.Edge) int {
	return cmp.Or(
		cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Subject, b.Subject),
		cmp.Compare(a.Cluster, b.Cluster),
		cmp.Compare(a.SourceCluster, b.SourceCluster),
		cmp.Compare(a.Source, b.Source),
		cmp.Compare(a.Destination, b.Destination),
		cmp.Compare(a.Action, b.Action),
		cmp.Compare(a.Port, b.Port),
		cmp.Compare(
			a.Protocol,
			b.Protocol,
		),
		cmp.Compare(a.Decision, b.Decision),
		cmp.Compare(a.Verdict, b.Verdict),
		cmp.Compare(a.Statement.Policy, b.Statement.Policy),
		cmp.Compare(a.Statement.SID, b.Statement.SID),
		cmp.Compare(a.OtherSubjects, b.OtherSubjects),
		cmp.Compare(a.OtherResources, b.OtherResources),
	)
}
