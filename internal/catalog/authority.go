package catalog

import (
	"cmp"
	"slices"
)

// orphans returns the applications and resources whose owners include no person who can decide.
func orphans(c *Catalog) []Ref {
	var out []Ref
	for kind, list := range map[Kind][]Entity{KindApplication: c.sortedApplications, KindResource: c.sortedResources} {
		for _, e := range list {
			if len(c.OwnerPeople(e)) == 0 {
				out = append(out, Ref{kind, e.ID})
			}
		}
	}
	slices.SortFunc(out, compareRefs)
	return out
}

// gainedPowers describes what a person may decide in one catalog and not in another.
func gainedPowers(before, after *Catalog, person string) []string {
	had := powers(before, person)
	var out []string
	for power := range powers(after, person) {
		if !had[power] {
			out = append(out, power)
		}
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}

func powers(c *Catalog, person string) map[string]bool {
	out := map[string]bool{}
	mine := c.identities(person)
	for kind, list := range map[Kind][]Entity{KindApplication: c.sortedApplications, KindResource: c.sortedResources} {
		for _, e := range list {
			if mine.owns(e) {
				// The name is included because decisions depend on it: two entities may swap their names.
				out["owner of "+Ref{kind, e.ID}.String()+" ("+e.Name+")"] = true
			}
		}
	}
	for o := range mine {
		if o.Kind == OwnerGroup {
			out["member of group/"+o.ID] = true
		}
	}
	for id := range c.people {
		if slices.Contains(c.Leaders(id), person) {
			out["leader of person/"+id] = true
		}
	}
	return out
}
