package governanceapi

import (
	"context"
	"sync"
	"time"

	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/views"
)

const (
	// unusedCacheTime is how long the result of a search for unused statements is cached. It covers weeks of flows.
	unusedCacheTime = 5 * time.Minute
	// unusedRetry is the delay before a failed search is repeated.
	unusedRetry = 30 * time.Second
	// unusedTimeout is how long a request about policies waits for the search. Later requests find its result.
	unusedTimeout = 10 * time.Second
)

// statementIssues contains the issues of all statements.
type statementIssues struct {
	byStatement map[policy.Ref][]governance.Issue
	unusedKnown bool
}

// analyses caches the results of slow analyses.
type analyses struct {
	mu         sync.Mutex
	snapshot   *policy.Snapshot
	computedAt time.Time
	issues     map[policy.Ref][]governance.Issue

	searching   sync.Mutex // held by the search for unused statements; other requests use the cached result
	unusedNext  time.Time  // when the search is repeated
	unused      map[policy.Ref]message.Message
	unusedKnown bool
}

// issues returns the issues of all statements, including the unused ones.
func (a *API) issues(ctx context.Context) (statementIssues, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return statementIssues{}, err
	}
	found := a.analyses.issuesOf(snap, a.Now())
	unused, known, err := a.unusedStatements(ctx, snap)
	if err != nil {
		if err := core.RequestContext(ctx).Err(); err != nil {
			return statementIssues{}, err
		}
		a.Log.Debug("unused statements could not be determined", "error", err)
	}
	out := statementIssues{byStatement: make(map[policy.Ref][]governance.Issue, len(found)+len(unused)), unusedKnown: known}
	for ref, list := range found {
		out.byStatement[ref] = list[:len(list):len(list)]
	}
	for ref, why := range unused {
		out.byStatement[ref] = append(out.byStatement[ref], governance.Issue{Kind: governance.Unused, Message: why})
	}
	return out, nil
}

// issuesOf returns the issues of the statements of a snapshot. It is repeated each minute, because statements end.
func (x *analyses) issuesOf(snap *policy.Snapshot, now time.Time) map[policy.Ref][]governance.Issue {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.snapshot != snap || now.Sub(x.computedAt) > time.Minute || now.Before(x.computedAt) {
		x.snapshot, x.computedAt, x.issues = snap, now, governance.Issues(snap, now)
	}
	return x.issues
}

// unusedStatements returns the unused statements with the reasons. It returns false if the members were not watched well enough, or
// if the result is not known yet.
func (a *API) unusedStatements(ctx context.Context, snap *policy.Snapshot) (map[policy.Ref]message.Message, bool, error) {
	x := &a.analyses
	now := a.Now()
	x.mu.Lock()
	unused, known, fresh := x.unused, x.unusedKnown, now.Before(x.unusedNext) && x.unusedNext.Sub(now) <= unusedCacheTime
	x.mu.Unlock()
	if fresh || !x.searching.TryLock() {
		return unused, known, nil
	}
	defer x.searching.Unlock()
	found, known, err := a.findUnused(ctx, snap, now)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.unusedNext = now.Add(unusedRetry)
		return x.unused, x.unusedKnown, err
	}
	x.unusedNext, x.unused, x.unusedKnown = now.Add(unusedCacheTime), found, known
	return found, known, nil
}

func (a *API) findUnused(ctx context.Context, snap *policy.Snapshot, now time.Time) (map[policy.Ref]message.Message, bool, error) {
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), unusedTimeout)
	defer cancel()
	const window = views.DefaultQuietDays * 24 * time.Hour
	fleet := insight.FleetOf(a.Host.Members())
	watch, err := insight.WatchedDays(limited, a.Flows, now.Add(-window), now, nil)
	if err != nil {
		return nil, false, err
	}
	grants := map[policy.Ref]policy.Grant{}
	var list []policy.Grant
	for _, w := range snap.Statements() {
		if g := grantFor(w.Ref.Policy, w.Statement); g.Resource != "" {
			grants[w.Ref] = g
			list = append(list, g)
		}
	}
	from, err := a.OriginsOf(ctx, list)
	if err != nil {
		return nil, false, err
	}
	all, err := insight.Unused(
		limited,
		a.Flows,
		insight.UnusedInput{Snapshot: snap, Fleet: fleet, QuietFor: window, Now: now, Since: now.Add(-views.LastUseWindow),
			Granted: func(ref policy.Ref) (time.Time, bool) {
				t, i := from.Item(grants[ref])
				if t == nil {
					return time.Time{}, false
				}
				return views.GrantedAt(t, i), true
			}},
	)
	if err != nil {
		return nil, false, err
	}
	found := make(map[policy.Ref]message.Message, len(all))
	for _, u := range all {
		found[u.Ref] = u.Reason
	}
	return found, watch.CoversAll(fleet, snap), nil
}
