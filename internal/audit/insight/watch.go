package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// Watch is how well the members were watched in a window.
type Watch struct {
	Since, Until time.Time
	// Members are by name; each has every UTC day of the window.
	Members []MemberWatch
}

// MemberWatch is one member.
type MemberWatch struct {
	Cluster string
	Days    []DayWatch
	// Lost counts the flows that are known to be lost, Seen the connections; those are only counted where some were lost.
	Lost, Seen int64
	// Recent tells that the member was watched at the end of the window, see RecentWatch.
	Recent bool
}

// RecentWatch is how long before the end of the window a member has to have been watched to count as watched now. Collectors
// record what they watched each second, and hand members over to each other within a minute.
const RecentWatch = 15 * time.Minute

// DayWatch is one UTC day, or the part of it that is in the window.
type DayWatch struct {
	From, To time.Time
	// Watched is the time in which flows were followed, gaps taken off.
	Watched time.Duration
	Lost    int64
}

// Watched asks how well members were watched: those that the store knows, and those that are named, which were not watched
// if the store does not know them.
func Watched(ctx context.Context, r Reader, since, until time.Time, named []string) (*Watch, error) {
	w, err := WatchedDays(ctx, r, since, until, named)
	if err != nil || !until.After(since) {
		return w, err
	}
	for i := range w.Members {
		m := &w.Members[i]
		if m.Lost == 0 {
			continue
		}
		points, err := r.Series(ctx, audit.SeriesQuery{Filter: audit.Filter{Since: since, Until: until, Clusters: []string{m.Cluster}}, Step: day})
		if err != nil {
			return nil, fmt.Errorf("count connections: %w", err)
		}
		for _, p := range points {
			m.Seen += p.Count
		}
	}
	return w, nil
}

// WatchedDays is Watched without counting connections, which takes a store longer than the rest.
func WatchedDays(ctx context.Context, r Reader, since, until time.Time, named []string) (*Watch, error) {
	w := &Watch{Since: since.UTC(), Until: until.UTC()}
	covered, err := r.Coverage(ctx, since, until)
	if err != nil {
		return nil, fmt.Errorf("ask what was watched: %w", err)
	}
	recent, err := r.Coverage(ctx, later(since, until.Add(-RecentWatch)), until)
	if err != nil {
		return nil, fmt.Errorf("ask what was watched lately: %w", err)
	}
	names := slices.Clone(named)
	known := map[string]map[time.Time]audit.Coverage{}
	for _, c := range covered {
		if known[c.Cluster] == nil {
			known[c.Cluster] = map[time.Time]audit.Coverage{}
			names = append(names, c.Cluster)
		}
		known[c.Cluster][c.Day.UTC()] = c
	}
	now := map[string]bool{}
	for _, c := range recent {
		now[c.Cluster] = now[c.Cluster] || c.Watched > c.GapTime
	}
	for _, name := range sortedNames(names) {
		m := w.blank(name)
		m.Recent = now[name]
		for i := range m.Days {
			d := &m.Days[i]
			c := known[name][d.From.Truncate(day)]
			d.Lost, d.Watched = c.Lost, min(max(c.Watched-c.GapTime, 0), d.To.Sub(d.From))
			m.Lost += d.Lost
		}
		w.Members = append(w.Members, m)
	}
	return w, nil
}

// blank is a member that was not watched.
func (w *Watch) blank(name string) MemberWatch {
	m := MemberWatch{Cluster: name}
	for start := w.Since.Truncate(day); start.Before(w.Until); start = start.Add(day) {
		m.Days = append(m.Days, DayWatch{From: later(start, w.Since), To: earlier(start.Add(day), w.Until)})
	}
	return m
}

// Of is the watch of exactly these members; one that the store does not know was not watched.
func (w *Watch) Of(names []string) *Watch {
	out := &Watch{Since: w.Since, Until: w.Until}
	for _, name := range sortedNames(names) {
		i, ok := slices.BinarySearchFunc(w.Members, name, func(m MemberWatch, name string) int { return cmp.Compare(m.Cluster, name) })
		if ok {
			out.Members = append(out.Members, w.Members[i])
		} else {
			out.Members = append(out.Members, w.blank(name))
		}
	}
	return out
}

// Unwatched names the members that were never watched in the window, and those that are not watched at its end any more.
func (w *Watch) Unwatched() (never, ended []string) {
	for _, m := range w.Members {
		switch {
		case m.Watched() <= 0:
			never = append(never, m.Cluster)
		case !m.Recent:
			ended = append(ended, m.Cluster)
		}
	}
	return never, ended
}

// lossiest is the member with the highest share of lost flows, and that share.
func (w *Watch) lossiest() (m MemberWatch, share float64) {
	for _, x := range w.Members {
		if x.Lost <= 0 {
			continue
		}
		if s := float64(x.Lost) / float64(x.Lost+x.Seen); s > share {
			m, share = x, s
		}
	}
	return m, share
}

// DaysObserved counts the UTC days on which at least one member was watched for some time.
func (w *Watch) DaysObserved() int {
	n := 0
	for i := range w.days() {
		if slices.ContainsFunc(w.Members, func(m MemberWatch) bool { return m.Days[i].Watched > 0 }) {
			n++
		}
	}
	return n
}

// days is how many UTC days the window touches.
func (w *Watch) days() int {
	if len(w.Members) == 0 {
		return 0
	}
	return len(w.Members[0].Days)
}

// worst is the member that was watched for the shortest time, and that time; false: no member is known.
func (w *Watch) worst() (string, time.Duration, bool) {
	if len(w.Members) == 0 {
		return "", 0, false
	}
	m := slices.MinFunc(w.Members, func(a, b MemberWatch) int { return cmp.Compare(a.Watched(), b.Watched()) })
	return m.Cluster, m.Watched(), true
}

// Watched is the time in which the member was watched.
func (m *MemberWatch) Watched() (sum time.Duration) {
	for _, d := range m.Days {
		sum += d.Watched
	}
	return sum
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
