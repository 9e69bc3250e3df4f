package rollout

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/notify"
)

// GapKind classifies why the guard does not see all denials in a member.
type GapKind string

const (
	// GapUnwatched means that the flows of the member are not watched.
	GapUnwatched GapKind = "unwatched"
	// GapLost means that flows of the member were lost recently.
	GapLost GapKind = "lost"
)

// gapNotification contains, by kind, the name of the notification about a new gap.
var gapNotification = map[GapKind]string{GapUnwatched: notify.EventFlowsUnwatched, GapLost: notify.EventFlowsLost}

// Gap is a period, not yet ended, in which the guard does not see all denials in a member.
type Gap struct {
	Kind  GapKind   `json:"kind"`
	Since time.Time `json:"since"`
}

// maxGaps bounds how much gaps extend the time in which a member is guarded. Without it, an attacker who causes the
// loss of flows could make the guard watch, and with Reopens open, a resource that has been closed for a long time.
const maxGaps = 7 * 24 * time.Hour

// guarded reports whether denials in a member still stop the rollout: until it was watched for watchFor since it began
// to enforce. Gaps do not count, because it is not known whether there were denials.
func (s *State) guarded(cluster string, now time.Time) bool {
	since, enforces := s.Enforced[cluster]
	gaps := s.Missed[cluster]
	if g, open := s.Gaps[cluster]; open {
		gaps += now.Sub(g.Since)
	}
	return enforces && now.Sub(since)-min(gaps, maxGaps) <= watchFor
}

// observe records the gaps of the guarded members, and sends one notification when a gap begins.
func (w *Watcher) observe(ctx context.Context, e catalog.Entity, st State, now time.Time) (State, error) {
	var clusters []string
	for cluster := range st.Enforced {
		if st.guarded(cluster, now) {
			clusters = append(clusters, cluster)
		}
	}
	if len(clusters) == 0 && len(st.Gaps)+len(st.Missed) == 0 {
		return st, nil
	}
	slices.Sort(clusters)
	found := map[string]GapKind{}
	if len(clusters) > 0 {
		var err error
		if found, err = w.Denials.Missing(ctx, clusters, now); err != nil {
			return st, err
		}
	}
	if next, _ := st.withGaps(clusters, found, now); next.sameGaps(&st) {
		return st, nil
	}
	return w.Store.Change(ctx, e.Name, func(s *State) (News, error) {
		next, began := s.withGaps(clusters, found, now)
		news := News{}
		for _, cluster := range slices.Sorted(maps.Keys(s.Gaps)) {
			if _, open := next.Gaps[cluster]; !open && slices.Contains(clusters, cluster) {
				news.Entries = append(
					news.Entries,
					line(now, "", "resource.rollout-seen", e, map[string]string{"cluster": cluster, "since": s.Gaps[cluster].Since.Format(time.RFC3339)}),
				)
			}
		}
		for _, cluster := range began {
			g := next.Gaps[cluster]
			news.Entries = append(
				news.Entries,
				line(
					now,
					"",
					"resource.rollout-unseen",
					e,
					map[string]string{"cluster": cluster, "why": string(g.Kind), "since": g.Since.Format(time.RFC3339)},
				),
			)
			b := resourceEvent(now, gapNotification[g.Kind], e, notify.Facts{Cluster: cluster}, ownersAndSecurity(w.Catalog(), e))
			b.Event += "/" + cluster // several members may have a new gap at the same time
			news.ResourceEvents = append(news.ResourceEvents, b)
		}
		*s = next
		return news, nil
	})
}

// withGaps returns the state with the gaps that were found in the guarded members, and the members in which a gap
// begins or gets worse.
func (s *State) withGaps(guarded []string, found map[string]GapKind, now time.Time) (next State, began []string) {
	next = *s
	next.Gaps, next.Missed = map[string]Gap{}, map[string]time.Duration{}
	for _, cluster := range guarded {
		was, open := s.Gaps[cluster]
		if missed := s.Missed[cluster]; missed > 0 {
			next.Missed[cluster] = missed
		}
		kind, missing := found[cluster]
		switch {
		case missing && open:
			next.Gaps[cluster] = Gap{Kind: kind, Since: was.Since}
			if was.Kind == GapLost && kind == GapUnwatched {
				began = append(began, cluster)
			}
		case missing:
			since := now.Add(-insight.RecentWatch).UTC()
			if enforced := s.Enforced[cluster]; since.Before(enforced) {
				since = enforced.UTC()
			}
			next.Gaps[cluster] = Gap{Kind: kind, Since: since}
			began = append(began, cluster)
		case open:
			next.Missed[cluster] = min(next.Missed[cluster]+now.Sub(was.Since), maxGaps)
		}
	}
	return next, began
}

func (s *State) sameGaps(o *State) bool {
	return maps.EqualFunc(s.Gaps, o.Gaps, func(a, b Gap) bool { return a.Kind == b.Kind && a.Since.Equal(b.Since) }) && maps.Equal(s.Missed, o.Missed)
}

// Missing implements Denials. A member counts as not watched after insight.RecentWatch.
func (i *Insight) Missing(ctx context.Context, clusters []string, now time.Time) (map[string]GapKind, error) {
	covered, err := i.watches.recent(ctx, now)
	if err != nil {
		return nil, err
	}
	watched, lost := map[string]bool{}, map[string]bool{}
	for _, c := range covered {
		watched[c.Cluster] = watched[c.Cluster] || c.Watched > c.GapTime
		lost[c.Cluster] = lost[c.Cluster] || c.Lost > 0
	}
	out := map[string]GapKind{}
	for _, cluster := range clusters {
		switch {
		case !watched[cluster]:
			out[cluster] = GapUnwatched
		case lost[cluster]:
			out[cluster] = GapLost
		}
	}
	return out, nil
}
