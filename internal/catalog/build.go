package catalog

import (
	"slices"
	"sync"

	"github.com/acp-io/acp/internal/message"
)

// Unique removes the records that contradict each other, and adds a problem for each. Of records with one kind and id
// it removes all, because it is unknown which of them is meant, and any of them may come from a person who claims what
// the other one owns; of two records with one resource name it removes the later one. A record that could not be read
// counts as one of its kind and id.
func (r *SourceContent) Unique() {
	places, names := map[Ref][]string{}, map[string]Ref{}
	for _, p := range r.Problems {
		places[p.Ref] = append(places[p.Ref], p.Where)
	}
	for _, rec := range r.Records {
		places[rec.Ref()] = append(places[rec.Ref()], rec.Where)
	}
	kept := make([]Record, 0, len(r.Records))
	for _, rec := range r.Records {
		ref := rec.Ref()
		if len(places[ref]) > 1 {
			r.Problems = append(r.Problems, problemOf(rec.Where, ref, message.CatalogDefinedTwice(ref.String(), otherPlace(places[ref], rec.Where))))
			continue
		}
		if rec.Name != "" {
			if other, dup := names[rec.Name]; dup {
				r.Problems = append(r.Problems, problemOf(rec.Where, ref, message.CatalogNameOfAnother(ref.String(), other.String(), rec.Name)))
				continue
			}
			names[rec.Name] = ref
		}
		kept = append(kept, rec)
	}
	r.Records = kept
}

// otherPlace returns a place other than the given one, for messages.
func otherPlace(places []string, but string) message.Message {
	i := slices.IndexFunc(places, func(p string) bool { return p != but })
	switch {
	case i < 0:
		return message.CatalogSamePlace()
	case places[i] == "":
		return message.CatalogSameSource()
	}
	return message.Verbatim(places[i])
}

// Build makes a Catalog from records in their normal form. Of two records that contradict each other the first counts.
// References to people or groups that do not exist are kept: an owner who left must be visible, but lookups of people
// who can decide skip them.
func Build(records []Record) *Catalog {
	c := &Catalog{people: map[string]*Person{}, groups: map[string]*Group{}, applications: map[string]*Entity{},
		resources: map[string]*Entity{}, names: map[string]*Entity{}, directLeaders: map[string]bool{}}
	memberOf := map[string][]string{}
	for _, r := range records {
		switch r.Kind {
		case KindPerson:
			if c.people[r.ID] == nil {
				c.people[r.ID] = &Person{ID: r.ID, DisplayName: r.Title, Title: r.JobTitle, Email: r.Email, Leader: r.Leader}
				memberOf[r.ID] = append(memberOf[r.ID], r.Groups...)
			}
		case KindGroup:
			if c.groups[r.ID] == nil {
				c.groups[r.ID] = &Group{ID: r.ID, Title: r.Title, Lead: r.Lead, Parent: r.Parent}
				for _, m := range r.Members {
					memberOf[m] = append(memberOf[m], r.ID)
				}
			}
		case KindApplication:
			c.addOwned(c.applications, r)
		case KindResource:
			c.addOwned(c.resources, r)
		}
	}
	for person, groups := range memberOf {
		p, ok := c.people[person]
		if !ok {
			continue
		}
		for _, id := range sortedSet(groups) {
			p.Groups = append(p.Groups, id)
			if g, ok := c.groups[id]; ok {
				g.Members = append(g.Members, person)
			}
		}
	}
	for _, g := range c.groups {
		slices.Sort(g.Members)
	}
	for id := range c.people {
		if l, ok := c.Leader(id); ok {
			c.directLeaders[l] = true
		}
	}
	c.sortedApplications, c.sortedResources = sorted(c.applications), sorted(c.resources)
	c.list()
	c.sortedNames = sync.OnceValue(c.sortNames)
	c.ownedBy = map[Owner]owned{}
	for i, e := range c.sortedApplications {
		for _, o := range e.Owners {
			x := c.ownedBy[o]
			x.applications = append(x.applications, i)
			c.ownedBy[o] = x
		}
	}
	for i, e := range c.sortedResources {
		for _, o := range e.Owners {
			x := c.ownedBy[o]
			x.resources = append(x.resources, i)
			c.ownedBy[o] = x
		}
	}
	return c
}

func (c *Catalog) addOwned(into map[string]*Entity, r Record) {
	if into[r.ID] != nil || c.names[r.Name] != nil {
		return
	}
	e := &Entity{ID: r.ID, Name: r.Name, Title: r.Title, Description: r.Description, Environment: r.Environment, Owners: r.Owners, Sensitivity: r.Sensitivity}
	if e.Sensitivity == "" {
		e.Sensitivity = SensitivityLow
	}
	into[r.ID], c.names[r.Name] = e, e
}
