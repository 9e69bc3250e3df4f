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
	// Seen counts the connections of all members, Lost the flows that are known to be lost.
	Seen, Lost int64
}

// MemberWatch is one member.
type MemberWatch struct {
	Cluster string
	Days    []DayWatch
	Lost    int64
}

// DayWatch is one UTC day, or the part of it that is in the window.
type DayWatch struct {
	From, To time.Time
	// Watched is the time in which flows were followed, gaps taken off.
	Watched time.Duration
	Lost    int64
}

// Watched asks how well members were watched; without names, all that the store knows. A named member that the store does
// not know was not watched.
func Watched(ctx context.Context, r Reader, since, until time.Time, clusters []string) (*Watch, error) {
	w, err := WatchedDays(ctx, r, since, until, clusters)
	if err != nil || !until.After(since) {
		return w, err
	}
	points, err := r.Series(ctx, audit.SeriesQuery{Filter: audit.Filter{Since: since, Until: until, Clusters: clusters}, Step: day})
	if err != nil {
		return nil, fmt.Errorf("count connections: %w", err)
	}
	for _, p := range points {
		w.Seen += p.Count
	}
	return w, nil
}

// WatchedDays is Watched without counting connections, which takes a store longer than the rest.
func WatchedDays(ctx context.Context, r Reader, since, until time.Time, clusters []string) (*Watch, error) {
	w := &Watch{Since: since.UTC(), Until: until.UTC()}
	covered, err := r.Coverage(ctx, since, until)
	if err != nil {
		return nil, fmt.Errorf("ask what was watched: %w", err)
	}
	names := slices.Clone(clusters)
	known := map[string]map[time.Time]audit.Coverage{}
	for _, c := range covered {
		if len(clusters) > 0 && !slices.Contains(clusters, c.Cluster) {
			continue
		}
		if known[c.Cluster] == nil {
			known[c.Cluster] = map[time.Time]audit.Coverage{}
			names = append(names, c.Cluster)
		}
		known[c.Cluster][c.Day.UTC()] = c
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		m := MemberWatch{Cluster: name}
		for start := w.Since.Truncate(day); start.Before(w.Until); start = start.Add(day) {
			c := known[name][start]
			d := DayWatch{From: later(start, w.Since), To: earlier(start.Add(day), w.Until), Lost: c.Lost}
			d.Watched = min(max(c.Watched-c.GapTime, 0), d.To.Sub(d.From))
			m.Days, m.Lost = append(m.Days, d), m.Lost+d.Lost
		}
		w.Members, w.Lost = append(w.Members, m), w.Lost+m.Lost
	}
	return w, nil
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
	m := slices.MinFunc(w.Members, func(a, b MemberWatch) int { return cmp.Compare(a.watched(), b.watched()) })
	return m.Cluster, m.watched(), true
}

func (m *MemberWatch) watched() (sum time.Duration) {
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
