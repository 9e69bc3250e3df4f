package catalog

import (
	"maps"
	"slices"
)

// People sorted by id.
func (c *Catalog) People() []Person { return byID(c.people) }

// Groups sorted by id.
func (c *Catalog) Groups() []Group { return byID(c.groups) }

func byID[T any](m map[string]*T) []T {
	out := make([]T, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, *m[id])
	}
	return out
}
