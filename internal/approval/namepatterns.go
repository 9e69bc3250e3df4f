package approval

import (
	"iter"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
)

// NamePatterns are names of applications and resources, and prefixes of names that end with "*". The zero value covers nothing.
type NamePatterns struct {
	exact map[string]bool
	stems []string // prefixes without their final "*"
}

// NewNamePatterns returns the patterns that are written as some texts.
func NewNamePatterns(written []string) *NamePatterns {
	p := &NamePatterns{}
	for _, text := range written {
		p.Add(text)
	}
	return p
}

// Add adds a name or a prefix. A text that is neither covers only itself.
func (p *NamePatterns) Add(text string) {
	if n, err := policy.ParseName(text); err == nil && n.Wildcard {
		p.stems = append(p.stems, strings.TrimSuffix(text, "*"))
		return
	}
	if p.exact == nil {
		p.exact = map[string]bool{}
	}
	p.exact[text] = true
}

// Cover reports whether one of the patterns covers a name.
func (p *NamePatterns) Cover(name string) bool {
	return p.exact[name] || slices.ContainsFunc(p.stems, func(stem string) bool { return strings.HasPrefix(name, stem) })
}

// CoverLater reports whether the patterns may cover names that are added later.
func (p *NamePatterns) CoverLater() bool { return len(p.stems) > 0 }

// Overlap reports whether there may be a name that both sides cover.
func (p *NamePatterns) Overlap(o *NamePatterns) bool {
	for name := range p.exact {
		if o.Cover(name) {
			return true
		}
	}
	for name := range o.exact {
		if p.Cover(name) {
			return true
		}
	}
	return slices.ContainsFunc(p.stems, func(a string) bool {
		return slices.ContainsFunc(o.stems, func(b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) })
	})
}

// ResourcesCoveredBy returns the resources of the catalog that names and prefixes cover now, each once.
func ResourcesCoveredBy(c *catalog.Catalog, names []string) iter.Seq[catalog.Entity] {
	return coveredBy(names, c.ResourcesWithPrefix, func(name string) (catalog.Entity, bool) {
		e, _ := c.ByName(name)
		found, ok := c.Resource(e.ID)
		return found, ok && found.Name == name
	})
}

// coveredBy returns the entities that names and prefixes cover, each once.
func coveredBy(names []string, withPrefix func(string) iter.Seq[catalog.Entity], named func(string) (catalog.Entity, bool)) iter.Seq[catalog.Entity] {
	return func(yield func(catalog.Entity) bool) {
		var before NamePatterns
		for _, name := range names {
			if n, err := policy.ParseName(name); err != nil || !n.Wildcard {
				if e, ok := named(name); ok && !before.Cover(name) && !yield(e) {
					return
				}
			} else {
				for e := range withPrefix(strings.TrimSuffix(name, "*")) {
					if !before.Cover(e.Name) && !yield(e) {
						return
					}
				}
			}
			before.Add(name)
		}
	}
}
