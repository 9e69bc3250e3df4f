package policy

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
)

// knownNames returns the names that prefixes stand for.
func knownNames(in Input) []string {
	out := make([]string, 0, len(in.KnownNames)+len(in.Resources)+len(in.Workloads))
	out = append(out, in.KnownNames...)
	for _, r := range in.Resources {
		if r != nil {
			out = append(out, string(r.Spec.Resource))
		}
	}
	for _, w := range in.Workloads {
		if w != nil {
			out = append(out, string(w.Spec.Subject))
		}
	}
	return sortedUnique(out)
}

// knownUnder returns the known names that begin with a stem.
func (s *Snapshot) knownUnder(stem string) []string {
	first := sort.SearchStrings(s.known, stem)
	n := sort.Search(len(s.known)-first, func(i int) bool { return !strings.HasPrefix(s.known[first+i], stem) })
	return s.known[first : first+n]
}

// epoch identifies instants at which every answer is the same: the number of changes before, and which hours are open.
type epoch struct {
	changes int
	open    string // a byte for each of Snapshot.hours
}

// epochSpan is the time between two changes.
type epochSpan struct {
	epoch
	from, until time.Time // until is exclusive
}

// epoch returns the epoch of an instant.
func (s *Snapshot) epoch(at time.Time) epoch {
	e := epoch{changes: s.changesUntil(at)}
	if len(s.hours) == 0 {
		return e
	}
	if last := s.lastEpoch.Load(); last != nil && !at.Before(last.from) && at.Before(last.until) {
		return last.epoch
	}
	open := make([]byte, len(s.hours))
	for i, h := range s.hours {
		if h.Open(at) {
			open[i] = 1
		}
	}
	e.open = string(open)
	from, hasFrom := s.LastChange(at)
	until, hasUntil := s.NextChange(at)
	if hasFrom && hasUntil {
		s.lastEpoch.Store(&epochSpan{epoch: e, from: from, until: until})
	}
	return e
}

// changesUntil returns the number of changes, other than of hours, up to an instant.
func (s *Snapshot) changesUntil(at time.Time) int {
	n, _ := slices.BinarySearchFunc(s.changes, at, func(c, at time.Time) int {
		if c.After(at) {
			return 1
		}
		return -1
	})
	return n
}

type wildcardAt struct {
	name string
	epoch
}

// wildcardUnit returns the unit of a wildcard, which is compiled once for each epoch. Its slices are shared and must
// not be changed.
func (s *Snapshot) wildcardUnit(name string, at time.Time) (*Unit, bool) {
	key := wildcardAt{name, s.epoch(at)}
	if u, ok := s.compiled.Load(key); ok {
		return u.(*Unit), u.(*Unit) != nil
	}
	u := s.compileWildcard(name, at, nil)
	s.compiled.Store(key, u)
	return u, u != nil
}

// wildcardUnitIf returns the unit of a wildcard as if the supposed resources were onboarded in Enforce.
func (s *Snapshot) wildcardUnitIf(name string, at time.Time, supposed []string) (*Unit, bool) {
	if supposed == nil || len(s.refusedDenies) == 0 {
		if u, ok := s.wildcardUnit(name, at); ok || supposed == nil {
			return u, ok
		}
	}
	u := s.compileWildcard(name, at, supposed)
	return u, u != nil
}

// reuseWildcardUnits copies the compiled units of wildcards that did not change.
func (s *Snapshot) reuseWildcardUnits(from *Snapshot) {
	if s.delta.all || len(s.delta.known) > 0 || !slices.EqualFunc(s.changes, from.changes, time.Time.Equal) ||
		!slices.EqualFunc(s.hours, from.hours, (*Hours).Equal) {
		return
	}
	var touched []string
	for _, st := range s.delta.statements {
		if len(st.wild) > 0 {
			touched = from.unitsOf(s.unitsOf(touched, st), st)
		}
	}
	latest := -1 // time advances: earlier epochs are not queried again
	from.compiled.Range(func(key, _ any) bool {
		latest = max(latest, key.(wildcardAt).changes)
		return true
	})
	from.compiled.Range(func(key, unit any) bool {
		if k := key.(wildcardAt); k.changes == latest && !slices.Contains(touched, k.name) {
			s.compiled.Store(key, unit)
		}
		return true
	})
}

// compileWildcard returns the unit of a wildcard. It returns nil if no statement that could be pushed names the
// wildcard, or if none of the names that it stands for is known. The supposed resources are treated as onboarded in
// Enforce.
func (s *Snapshot) compileWildcard(name string, at time.Time, supposed []string) *Unit {
	statements := s.wildUnits[name]
	stem := strings.TrimSuffix(name, "*")
	c, ok := s.resources.of(stem)
	if !ok || !slices.ContainsFunc(statements, func(st *statement) bool { return !st.refused() }) {
		return nil
	}
	u := newUnit(name, c)
	u.Wildcard, u.Mode = true, v1alpha1.ModeAudit
	if len(stem) > len(c.stem) {
		names := s.knownUnder(stem)
		for _, n := range supposed {
			if strings.HasPrefix(n, stem) && !slices.Contains(names, n) {
				names = append(slices.Clip(names), n)
			}
		}
		for _, n := range names {
			if value, err := labelValue(c.stem, n); err == nil {
				u.LabelValues = append(u.LabelValues, value)
			}
		}
		if len(u.LabelValues) == 0 {
			return nil
		}
	}
	s.fill(&u, c, statements, s.overriders(name, stem, c, at, supposed), at, supposed)
	return &u
}

// WildcardUnits returns the names of the wildcard units that contain the allows of a wildcard resource, sorted: one for
// each class that the wildcard overlaps and an allow names.
func (s *Snapshot) WildcardUnits(resource string) []string {
	n, err := ParseName(resource)
	if err != nil {
		return nil
	}
	var out []string
	for _, c := range s.resources.overlapping(n) {
		if name := longer(strings.TrimSuffix(resource, "*"), c.stem) + "*"; s.wildUnits[name] != nil {
			out = append(out, name)
		}
	}
	return sortedUnique(out)
}

// inherited returns the rules of the wildcard units that cover a resource, and the number of entries that they need, as
// if the supposed resources were in Enforce.
func (s *Snapshot) inherited(resource string, c *resourceClass, at time.Time, supposed []string) (rules []Rule, entries int) {
	var names []string
	for _, w := range s.index.wildcards[headOf(resource)] {
		if strings.HasPrefix(resource, w.stem) {
			names = append(names, longer(w.stem, c.stem)+"*")
		}
	}
	for _, name := range sortedUnique(names) {
		if u, ok := s.wildcardUnitIf(name, at, supposed); ok {
			rules, entries = append(rules, u.Rules...), entries+u.Entries
		}
	}
	return rules, entries
}

func longer(a, b string) string {
	if len(b) > len(a) {
		return b
	}
	return a
}
