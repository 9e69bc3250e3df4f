package catalog

import (
	"cmp"
	"maps"
	"slices"
)

// People sorted by id.
func (c *Catalog) People() []Person { return slices.Clone(c.sortedPeople) }

// Groups sorted by id.
func (c *Catalog) Groups() []Group { return byID(c.groups) }

func byID[T any](m map[string]*T) []T {
	out := make([]T, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, *m[id])
	}
	return out
}

// Stored is everything that the store has, gone or not, sorted by kind and id.
func (s *Service) Stored() []Stored {
	v := s.view.Load()
	out := slices.Collect(maps.Values(v.stored))
	slices.SortFunc(out, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return out
}
