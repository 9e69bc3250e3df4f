package views

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// UseWatch is the period in which the members of a resource must have been watched completely enough, so that an absence of uses proves
// that there were none.
const UseWatch = DefaultQuietDays * 24 * time.Hour

// watchKept is how long a watch is used again. It is much shorter than insight.RecentWatch, so that a member that is no longer watched
// is noticed in time.
const watchKept = time.Minute

// watchCache stores the latest watch, which is the same for all resources.
type watchCache struct {
	mu     sync.Mutex
	latest *insight.Watch
}

// Watch returns how completely the members were watched in the last UseWatch.
func (d *Data) Watch(ctx context.Context) (*insight.Watch, error) {
	now := d.Now()
	d.watch.mu.Lock()
	w := d.watch.latest
	d.watch.mu.Unlock()
	if w != nil && !now.Before(w.Until) && now.Sub(w.Until) < watchKept {
		return w, nil
	}
	w, err := insight.Watched(ctx, d.Flows, now.Add(-UseWatch), now, nil)
	if err != nil {
		return nil, err
	}
	d.watch.mu.Lock()
	d.watch.latest = w
	d.watch.mu.Unlock()
	return w, nil
}

// UsesQuery selects the uses that LastUses reads.
type UsesQuery struct {
	Snapshot *policy.Snapshot
	Edges    []governance.Edge
	// Origins contains the tickets of the edges. A connection from before the approval does not count as a
	// use of the ticket's statement.
	Origins Origins
	// Window is how far back uses are searched.
	Window time.Duration
	// Filter restricts the connections, for a page about one name or for a caller who may not see all of them; nil selects those of the
	// edges. It must select every connection that may be a use of an edge and that the caller may see.
	Filter *audit.Filter
	// Resource is the exact resource that the page is about, whose members must have been watched; empty means those of each edge.
	Resource string
}

// LastUses contains when edges were last used. Methods of a nil LastUses report no use. It is not safe for concurrent use.
type LastUses struct {
	UsesQuery
	uses    *governance.Uses
	watch   *insight.Watch
	fleet   insight.Fleet
	granted map[policy.Ref]time.Time
	watched map[watchedSince]bool
}

// watchedSince is a resource and the beginning of the time in which it must have been watched.
type watchedSince struct {
	resource string
	since    time.Time
}

// LastUses reads when edges were last used, in a number of queries that does not depend on the edges of a page. It returns nil if the
// flows cannot be read.
func (d *Data) LastUses(ctx context.Context, q UsesQuery) *LastUses {
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), FlowTimeout)
	defer cancel()
	out := &LastUses{UsesQuery: q, uses: governance.NewUses(q.Edges), fleet: insight.FleetOf(d.Host.Members()), granted: map[policy.Ref]time.Time{},
		watched: map[watchedSince]bool{}}
	for i := range q.Edges {
		e := &q.Edges[i]
		if t, item := q.Origins.Item(e.Grant); t != nil {
			out.granted[e.Ref] = GrantedAt(t, item)
		}
	}
	if err := out.read(limited, d); err != nil {
		if !errors.Is(err, audit.ErrUnavailable) {
			d.Log.Debug("the last uses of statements could not be read", "error", err)
		}
		return nil
	}
	return out
}

func (u *LastUses) read(ctx context.Context, d *Data) error {
	var err error
	if u.watch, err = d.Watch(ctx); err != nil {
		return err
	}
	if len(u.Edges) == 0 {
		return nil
	}
	filters := u.uses.Filters()
	if u.Filter != nil {
		filters = []audit.Filter{*u.Filter}
	}
	now := d.Now()
	by := insight.NewAttribution(u.Snapshot, now)
	for _, f := range filters {
		f.Since, f.Until = now.Add(-u.Window), now
		err := d.Flows.Totals(ctx, f, func(t audit.Total) error {
			refs, implied := by.Statements(&t)
			for _, ref := range refs {
				if !implied || !t.LastSeen.Before(u.granted[ref]) {
					u.uses.Add(t.Subject, t.Resource, ref, t.LastSeen)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Of returns whether an edge was used, and when it was used last; nil if no use was seen.
func (u *LastUses) Of(e *governance.Edge) (openapi.UseState, *time.Time) {
	if u == nil {
		return openapi.UseStateUnknown, nil
	}
	if at, ok := u.uses.Last()[governance.UseOf(e)]; ok {
		return openapi.UseStateUsed, new(at.UTC())
	}
	if u.Filter == nil && !u.uses.Complete(e) || !u.isWatched(e) {
		return openapi.UseStateUnknown, nil
	}
	return openapi.UseStateUnused, nil
}

// isWatched reports whether an absence of uses of an edge proves that there were none.
func (u *LastUses) isWatched(e *governance.Edge) bool {
	key := watchedSince{e.Resource, u.watch.Since}
	if u.Resource != "" {
		key.resource = u.Resource
	}
	for _, begin := range []time.Time{e.NotBefore, u.granted[e.Ref]} {
		if begin.After(key.since) {
			key.since = begin
		}
	}
	enough, known := u.watched[key]
	if !known {
		enough = u.watch.ReliabilityOf(u.fleet, u.Snapshot, key.resource, key.since).Enough
		u.watched[key] = enough
	}
	return enough
}
