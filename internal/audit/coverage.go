package audit

import (
	"cmp"
	"slices"
	"time"
)

// Coverage describes how completely a cluster was observed on one day.
type Coverage struct {
	Cluster string
	// Day is the start of the UTC day.
	Day time.Time
	// Watched is the part of the day in which the cluster was followed. Gaps are not subtracted.
	Watched time.Duration
	// Lost is the number of flows known to be missing, counted on the day on which the loss ended.
	Lost int64
	// GapTime is the part of the day that is in gaps.
	GapTime time.Duration
}

const day = 24 * time.Hour

type coverageKey struct {
	cluster string
	day     time.Time
}

type span struct{ from, to time.Time }

// ComputeCoverage computes the coverage in the window from the spans and losses that touch it. A zero bound means unbounded.
func ComputeCoverage(since, until time.Time, watched []WatchedSpan, losses []Loss) []Coverage {
	days := map[coverageKey]*Coverage{}
	of := func(cluster string, at time.Time) *Coverage {
		k := coverageKey{cluster, at.UTC().Truncate(day)}
		c := days[k]
		if c == nil {
			c = &Coverage{Cluster: k.cluster, Day: k.day}
			days[k] = c
		}
		return c
	}
	spans, gaps := map[string][]span{}, map[string][]span{}
	for _, w := range watched {
		spans[w.Source] = append(spans[w.Source], span{w.From, w.To})
	}
	for _, l := range losses {
		if l.Reason == LossGap {
			gaps[l.Cluster] = append(gaps[l.Cluster], span{l.From, l.To})
		}
		if l.Count > 0 && !l.To.Before(since) && (until.IsZero() || l.To.Before(until)) {
			of(l.Cluster, l.To).Lost += l.Count
		}
	}
	for cluster, list := range spans {
		perDay(list, since, until, func(at time.Time, d time.Duration) { of(cluster, at).Watched += d })
	}
	for cluster, list := range gaps {
		perDay(list, since, until, func(at time.Time, d time.Duration) { of(cluster, at).GapTime += d })
	}
	out := make([]Coverage, 0, len(days))
	for _, c := range days {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Coverage) int { return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), a.Day.Compare(b.Day)) })
	return out
}

// perDay calls add with the time that the spans cover in the window. Overlapping parts count once, and spans are divided at the
// ends of days.
func perDay(spans []span, since, until time.Time, add func(time.Time, time.Duration)) {
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	done := since
	for _, s := range spans {
		if s.from.Before(done) {
			s.from = done
		}
		if !until.IsZero() && s.to.After(until) {
			s.to = until
		}
		for s.from.Before(s.to) {
			end := s.from.UTC().Truncate(day).Add(day)
			if end.After(s.to) {
				end = s.to
			}
			add(s.from, end.Sub(s.from))
			s.from, done = end, end
		}
	}
}
