package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/bench/world"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/policy"
)

const (
	replayedEdges = 1_000_000
	// proposedClients is the number of clients of the proposed resource. Each uses it about every hour for a month, so that a
	// tenth of the roll-ups in the store are about it.
	proposedClients  = 500
	proposedBuckets  = 400
	storedRollups    = 2_000_000
	storedClients    = 50
	storedWindow     = 30 * 24 * time.Hour
	rollupsPerAppend = 20_000
)

// edges is a Reader that generates edges while they are read, so that the measured heap does not contain them.
type edges struct {
	resources, subjects []string
	perResource         int
	days                []time.Time
}

func (e *edges) Totals(_ context.Context, f audit.Filter, each func(audit.Total) error) error {
	t := audit.Total{Count: 7, FirstSeen: e.days[0], LastSeen: e.days[len(e.days)-1], Days: e.days}
	t.Edge = audit.Edge{
		Cluster:       "m1",
		SourceCluster: "m2",
		Action:        world.Action,
		Port:          world.Port,
		Protocol:      v1alpha1.ProtocolTCP,
		Decision:      policy.Audited,
		Verdict:       audit.VerdictForwarded,
	}
	step := max(len(e.subjects)/e.perResource, 1)
	for i, resource := range e.resources {
		if len(f.Resources) > 0 && !slices.Contains(f.Resources, resource) {
			continue
		}
		t.Resource = resource
		for n := range e.perResource {
			t.Subject = e.subjects[(i+n*step)%len(e.subjects)]
			if err := each(t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *edges) Coverage(_ context.Context, since, until time.Time) ([]audit.Coverage, error) {
	return audit.ComputeCoverage(since, until, []audit.WatchedSpan{{Source: "m1", From: since, To: until}}, nil), nil
}

func (e *edges) Series(context.Context, audit.SeriesQuery) ([]audit.Point, error) { return nil, nil }

// measureInsight measures the replay of a change over a million edges and a proposal for a resource with many clients.
func measureInsight(w *world.World, s *policy.Snapshot) error {
	ctx := context.Background()
	since := world.Now.Add(-storedWindow)
	subjects := map[string]bool{}
	for _, g := range w.Grants {
		if g.AppTeam < 0 {
			subjects[g.App.Name()] = true
		}
	}
	r := &edges{perResource: replayedEdges / len(w.Resources)}
	for name := range subjects {
		r.subjects = append(r.subjects, name)
	}
	slices.Sort(r.subjects)
	for _, name := range w.Resources {
		r.resources = append(r.resources, name.Name())
	}
	for at := since; at.Before(world.Now); at = at.Add(24 * time.Hour) {
		r.days = append(r.days, at.Truncate(24*time.Hour))
	}
	after := w.Input
	after.Policies = slices.Clone(after.Policies)[len(after.Policies)/100:] // without one in a hundred grants
	next := s.Next(after)
	var problem error
	took := fastestWall(3, func() {
		im, err := insight.Replay(ctx, r, insight.ReplayInput{Before: s, After: next, Since: since, Until: world.Now})
		if err != nil || im.Denied.Connections == 0 || im.Unchanged == 0 {
			problem = fmt.Errorf("a replay says %d denied and %d unchanged: %w", im.Denied.Connections, im.Unchanged, err)
		}
	})
	if problem != nil {
		return problem
	}
	report("replay_1m_edges", took.Seconds()*1000, "ms")

	one := &edges{resources: r.resources[:1], subjects: r.subjects, perResource: proposedClients, days: r.days}
	if problem = propose(ctx, "propose_resource_model", one, s, one.resources[0], since); problem != nil {
		return problem
	}
	return measureStored(ctx, r, s, since)
}

// propose measures a proposal for a resource.
func propose(ctx context.Context, name string, r insight.Reader, s *policy.Snapshot, resource string, since time.Time) (problem error) {
	took := fastestWall(5, func() {
		p, err := insight.Propose(ctx, r, insight.ProposeInput{Snapshot: s, Resource: resource, Since: since, Now: world.Now})
		if err != nil || len(p.Lines) != proposedClients {
			problem = fmt.Errorf("a proposal has %d clients: %w", len(p.Lines), err)
		}
	})
	report(name, took.Seconds()*1000, "ms")
	return problem
}

// measureStored measures a proposal from a store of two million roll-ups, a tenth of which are about the resource.
func measureStored(ctx context.Context, names *edges, s *policy.Snapshot, since time.Time) (err error) {
	folder, err := os.MkdirTemp("", "acp-bench-flows-*")
	if err != nil {
		return fmt.Errorf("make a flow store: %w", err)
	}
	defer func() {
		if gone := os.RemoveAll(folder); err == nil {
			err = gone
		}
	}()
	store, err := sqlite.Open(ctx, filepath.Join(folder, "flows.db"))
	if err != nil {
		return err
	}
	defer func() {
		if closed := store.Close(); err == nil {
			err = closed
		}
	}()
	if err := fill(ctx, store, names, since); err != nil {
		return err
	}
	return propose(ctx, "propose_resource", store, s, names.resources[0], since)
}

func fill(ctx context.Context, store *sqlite.Store, names *edges, since time.Time) error {
	batch := &audit.Batch{Watched: []audit.WatchedSpan{{Source: "m1", From: since, To: world.Now}}}
	flush := func() error {
		err := store.Append(ctx, batch)
		batch = &audit.Batch{ID: batch.ID + "+"}
		return err
	}
	batch.ID = "b"
	step := storedWindow / proposedBuckets
	others := (storedRollups/proposedBuckets - proposedClients) / storedClients
	for bucket := range proposedBuckets {
		at := since.Add(time.Duration(bucket) * step).Truncate(audit.BucketWidth)
		for i := range others + 1 {
			clients := storedClients
			if i == 0 {
				clients = proposedClients
			}
			for n := range clients {
				batch.Rollups = append(batch.Rollups, audit.Rollup{
					Bucket:    at,
					Count:     3,
					FirstSeen: at.Add(time.Second),
					LastSeen:  at.Add(50 * time.Second),
					Edge: audit.Edge{
						Cluster:       "m1",
						SourceCluster: "m2",
						Subject:       names.subjects[(i+n)%len(names.subjects)],
						Resource:      names.resources[i],
						Action:        world.Action,
						Port:          world.Port,
						Protocol:      v1alpha1.ProtocolTCP,
						Decision:      policy.Audited,
						Verdict:       audit.VerdictForwarded,
					},
				})
				if len(batch.Rollups) == rollupsPerAppend {
					if err := flush(); err != nil {
						return err
					}
				}
			}
		}
	}
	return flush()
}

// fastestWall runs f several times and returns the least wall time, which includes the time to read from a disk.
func fastestWall(times int, f func()) time.Duration {
	var best time.Duration
	for i := range times {
		start := time.Now()
		f()
		if took := time.Since(start); i == 0 || took < best {
			best = took
		}
	}
	return best
}
