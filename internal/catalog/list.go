package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Listed is a person or a group with the lower-case texts that lists search in.
type Listed[T any] struct {
	Of    *T // must not be modified
	Names string
	Email string
}

// People returns all people, sorted by id. The result must not be modified.
func (c *Catalog) People() []Listed[Person] { return c.listedPeople }

// PersonByEmail returns the person with a mail address, regardless of case. It returns false for an address that nobody or several people
// have.
func (c *Catalog) PersonByEmail(address string) (found Person, ok bool) {
	address = strings.ToLower(strings.TrimSpace(address))
	if address == "" {
		return Person{}, false
	}
	for _, p := range c.listedPeople {
		if strings.TrimSpace(p.Email) != address {
			continue
		}
		if ok {
			return Person{}, false
		}
		found, ok = *p.Of, true
	}
	return found, ok
}

// Groups returns all groups, sorted by id. The result must not be modified.
func (c *Catalog) Groups() []Listed[Group] { return c.listedGroups }

// list prepares the texts of People and Groups, because a list is requested at each letter that a user types.
func (c *Catalog) list() {
	for _, p := range byID(c.people) {
		c.listedPeople = append(c.listedPeople, Listed[Person]{p, strings.ToLower(p.ID + "\n" + p.DisplayName), strings.ToLower(p.Email)})
	}
	for _, g := range byID(c.groups) {
		c.listedGroups = append(c.listedGroups, Listed[Group]{Of: g, Names: strings.ToLower(g.ID + "\n" + g.Title)})
	}
}

func byID[T any](m map[string]*T) []*T {
	out := make([]*T, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[id])
	}
	return out
}

// Stored returns everything in the store, including what is gone, sorted by kind and id.
func (s *Service) Stored() []Stored {
	v := s.view.Load()
	out := slices.Collect(maps.Values(v.stored))
	slices.SortFunc(out, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return out
}
