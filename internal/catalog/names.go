package catalog

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

func (c *Catalog) sortNames() []string { return slices.Sorted(maps.Keys(c.names)) }

// ApplicationsWithPrefix returns the applications whose names begin with a text, sorted by name.
func (c *Catalog) ApplicationsWithPrefix(text string) iter.Seq[Entity] {
	return c.withPrefix(text, c.applications)
}

// ResourcesWithPrefix returns the resources whose names begin with a text, sorted by name.
func (c *Catalog) ResourcesWithPrefix(text string) iter.Seq[Entity] {
	return c.withPrefix(text, c.resources)
}

func (c *Catalog) withPrefix(text string, of map[string]*Entity) iter.Seq[Entity] {
	return func(yield func(Entity) bool) {
		if c.sortedNames == nil {
			return
		}
		names := c.sortedNames()
		at, _ := slices.BinarySearch(names, text)
		for _, name := range names[at:] {
			if !strings.HasPrefix(name, text) {
				return
			}
			if e := c.names[name]; of[e.ID] == e && !yield(*e) {
				return
			}
		}
	}
}
