package accessreview

import (
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

// Rule names the reviewers of an access.
type Rule string

const (
	// RuleResourceOwner selects the owners of the resource.
	RuleResourceOwner Rule = "resource-owner"
	// RuleApplicationLeader selects the leader of the team that owns the application.
	RuleApplicationLeader Rule = "application-leader"
	// RuleGroup is the prefix of a rule that selects the members of a group.
	RuleGroup = "group:"
	// RuleFallback selects the security team, if no other rule finds a reviewer.
	RuleFallback Rule = RuleGroup + catalog.GroupSecurity
)

// group returns the group of a rule.
func (r Rule) group() (string, bool) { return strings.CutPrefix(string(r), RuleGroup) }

// valid reports whether a rule can be evaluated with a catalog.
func (r Rule) valid(c *catalog.Catalog) bool {
	if g, ok := r.group(); ok {
		_, known := c.Group(g)
		return known
	}
	return r == RuleResourceOwner || r == RuleApplicationLeader
}

// candidates returns the people whom a rule selects for an access, without regard to their own part in it.
func (r Rule) candidates(c *catalog.Catalog, application, resource catalog.Entity) []string {
	if g, ok := r.group(); ok {
		return c.Members(g)
	}
	if r == RuleResourceOwner {
		return c.OwnerPeople(resource)
	}
	var out []string
	for _, o := range application.Owners {
		if o.Kind == catalog.OwnerPerson {
			if leader, ok := c.Leader(o.ID); ok {
				out = append(out, leader)
			}
			continue
		}
		seen := map[string]bool{}
		for id := o.ID; id != "" && !seen[id]; {
			seen[id] = true
			g, ok := c.Group(id)
			if !ok {
				break
			}
			if _, known := c.Person(g.Lead); known {
				out = append(out, g.Lead)
				break
			}
			id = g.Parent
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// own reports whether an access is a person's own: they requested it, or they own the application. The leader of the
// application's team reviews what others requested.
func own(c *catalog.Catalog, r Rule, person string, application catalog.Entity, requesters []string) bool {
	return slices.Contains(requesters, person) || r != RuleApplicationLeader && c.Owns(person, application)
}

// eligible returns the people who may review an access by a rule. Nobody reviews their own access, and auditors change
// nothing.
func eligible(c *catalog.Catalog, r Rule, application, resource catalog.Entity, requesters []string) []string {
	return slices.DeleteFunc(r.candidates(c, application, resource), func(p string) bool {
		return c.InGroup(p, catalog.GroupAuditors) || own(c, r, p, application, requesters)
	})
}

// reviewersOf returns the reviewers of an access: those of the first rule that finds any, or the security team. If there
// is none at all, the silence decides.
func reviewersOf(c *catalog.Catalog, rules []Rule, application, resource catalog.Entity, requesters []string) (Rule, []string) {
	for _, r := range rules {
		if people := eligible(c, r, application, resource, requesters); len(people) > 0 {
			return r, people
		}
	}
	return RuleFallback, eligible(c, RuleFallback, application, resource, requesters)
}

// entities returns the application and the resource of an access, as the catalog has them now.
func entities(c *catalog.Catalog, applicationName, resourceName string) (application, resource catalog.Entity) {
	application, _ = c.ByName(applicationName)
	resource, _ = c.ByName(resourceName)
	return application, resource
}

// capacity returns in which capacity an actor may decide a line: own, or for the first person whom they represent. Members
// of the security team may decide every line except their own, so that none is stuck.
func capacity(c *catalog.Catalog, a approval.Actor, l *Line) (onBehalfOf string, ok bool) {
	application, resource := entities(c, l.ApplicationName, l.ResourceName)
	if a.Auditor || c.InGroup(a.ID, catalog.GroupAuditors) {
		return "", false
	}
	reviews := func(p string) bool {
		return slices.Contains(l.Reviewers, p) && slices.Contains(eligible(c, l.Rule, application, resource, l.Requesters), p)
	}
	if reviews(a.ID) || a.Security && !own(c, RuleFallback, a.ID, application, l.Requesters) {
		return "", true
	}
	if own(c, RuleFallback, a.ID, application, l.Requesters) {
		return "", false
	}
	for _, p := range a.StandsFor {
		if reviews(p) {
			return p, true
		}
	}
	return "", false
}
