package catalog

import (
	"cmp"
	"slices"
	"strings"
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
	out := gainedAddresses(before, after, person)
	for power := range powers(after, person) {
		if !had[power] {
			out = append(out, power)
		}
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}

// gainedAddresses describes the people whose mail address changes to one that a person has or had, or that is their own and changes. Slack, the
// receivers of webhooks and on-call schedules name people by their addresses, so such a change lets the person decide in the place of others.
func gainedAddresses(before, after *Catalog, person string) []string {
	address := func(c *Catalog, id string) string {
		p, _ := c.Person(id)
		return strings.ToLower(strings.TrimSpace(p.Email))
	}
	was, is := address(before, person), address(after, person)
	var out []string
	for id := range after.people {
		now := address(after, id)
		if now == "" || now == address(before, id) {
			continue
		}
		_, known := before.people[id]
		if id == person && known || id != person && (now == was || now == is) {
			out = append(out, "mail address of person/"+id)
		}
	}
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
