package catalog

import (
	"fmt"
	"slices"
)

// Unique leaves out, as problems, the records that cannot stand beside an earlier one: two of one kind and id, or two
// with one resource name.
func (r *Reading) Unique() {
	seen, names := map[Ref]string{}, map[string]Ref{}
	kept := make([]Record, 0, len(r.Records))
	for _, rec := range r.Records {
		ref := rec.Ref()
		if where, dup := seen[ref]; dup {
			r.Problems = append(r.Problems, Problem{Where: rec.Where, Ref: ref, Message: fmt.Sprintf("%s was already defined in %s: remove one of the two", ref, where)})
			continue
		}
		seen[ref] = first(rec.Where, "the same source")
		if rec.Name != "" {
			if other, dup := names[rec.Name]; dup {
				r.Problems = append(r.Problems, Problem{Where: rec.Where, Ref: ref,
					Message: fmt.Sprintf("%s has the resource name of %s (%s): two entities cannot be one", ref, other, rec.Name)})
				continue
			}
			names[rec.Name] = ref
		}
		kept = append(kept, rec)
	}
	r.Records = kept
}

// Build makes the view of records in their normal form; of two that cannot stand together the first counts. References
// to people or groups that do not exist are kept: an owner who left must be seen, not dropped, and lookups leave him
// out of those who can act.
func Build(records []Record) *Catalog {
	c := &Catalog{people: map[string]*Person{}, groups: map[string]*Group{}, applications: map[string]*Entity{},
		resources: map[string]*Entity{}, names: map[string]*Entity{}, led: map[string]bool{}}
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
			c.own(c.applications, r)
		case KindResource:
			c.own(c.resources, r)
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
			c.led[l] = true
		}
	}
	c.sortedApplications, c.sortedResources = sorted(c.applications), sorted(c.resources)
	c.list()
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

func (c *Catalog) own(into map[string]*Entity, r Record) {
	if into[r.ID] != nil || c.names[r.Name] != nil {
		return
	}
	e := &Entity{ID: r.ID, Name: r.Name, Title: r.Title, Description: r.Description, Environment: r.Environment, Owners: r.Owners, Sensitivity: r.Sensitivity}
	if e.Sensitivity == "" {
		e.Sensitivity = SensitivityLow
	}
	into[r.ID], c.names[r.Name] = e, e
}
