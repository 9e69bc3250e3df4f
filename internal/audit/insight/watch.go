package insight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/audit"
)

// Watch describes how completely the members were watched in a window.
type Watch struct {
	Since, Until time.Time
	// Members contains every UTC day of the window by member.
	Members []MemberWatch
}

// MemberWatch is the watch of one member.
type MemberWatch struct {
	Cluster string
	Days    []DayWatch
	// Lost is the number of flows that are known to be lost, and Seen the number of connections, which are only counted
	// if some were lost.
	Lost, Seen int64
	// Recent reports whether the member was watched at the end of the window; see RecentWatch.
	Recent bool
}

// RecentWatch is the time before the end of the window in which a member must have been watched to count as watched
// now. Collectors record their watch each second, and transfer members between them within a minute.
const RecentWatch = 15 * time.Minute

// DayWatch is one UTC day, or the part of it in the window.
type DayWatch struct {
	From, To time.Time
	// Watched is the time in which flows were received, without gaps.
	Watched time.Duration
	Lost    int64
}

// Watched returns how completely the members were watched: those that the store contains, and those that are named,
// which count as not watched if the store does not contain them.
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

// WatchedDays is Watched without the number of connections, which is the slowest part of the query.
func WatchedDays(ctx context.Context, r Reader, since, until time.Time, named []string) (*Watch, error) {
	w := &Watch{Since: since.UTC(), Until: until.UTC()}
	covered, err := r.Coverage(ctx, since, until)
	if err != nil {
		return nil, fmt.Errorf("ask what was watched: %w", err)
	}
	recent, err := r.Coverage(ctx, audit.Later(since, until.Add(-RecentWatch)), until)
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

// blank returns a member that was not watched.
func (w *Watch) blank(name string) MemberWatch {
	m := MemberWatch{Cluster: name}
	for start := w.Since.Truncate(day); start.Before(w.Until); start = start.Add(day) {
		m.Days = append(m.Days, DayWatch{From: audit.Later(start, w.Since), To: audit.Earlier(start.Add(day), w.Until)})
	}
	return m
}

// Of returns the watch of exactly these members; one that the store does not contain was not watched.
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

// Unwatched returns the members that were never watched in the window, and those that are not watched at its end.
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

// lossiest returns the member with the highest share of lost flows, and that share.
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

// DaysObserved counts the UTC days on which at least one member was watched.
func (w *Watch) DaysObserved() int {
	n := 0
	for i := range w.days() {
		if slices.ContainsFunc(w.Members, func(m MemberWatch) bool { return m.Days[i].Watched > 0 }) {
			n++
		}
	}
	return n
}

// days returns the number of UTC days in the window.
func (w *Watch) days() int {
	if len(w.Members) == 0 {
		return 0
	}
	return len(w.Members[0].Days)
}

// worst returns the member that was watched for the shortest time, and that time; false if no member is known.
func (w *Watch) worst() (string, time.Duration, bool) {
	if len(w.Members) == 0 {
		return "", 0, false
	}
	m := slices.MinFunc(w.Members, func(a, b MemberWatch) int { return cmp.Compare(a.Watched(), b.Watched()) })
	return m.Cluster, m.Watched(), true
}

// Watched returns the time in which the member was watched.
func (m *MemberWatch) Watched() (sum time.Duration) {
	for _, d := range m.Days {
		sum += d.Watched
	}
	return sum
}
