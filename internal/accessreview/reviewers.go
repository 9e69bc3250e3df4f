package accessreview

import (
	"iter"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
)

// Rule names the reviewers of an access.
type Rule string

const (
	// RuleResourceOwner selects the owners of the resource; of a statement, see responsible.
	RuleResourceOwner Rule = "resource-owner"
	// RuleApplicationLeader selects the leader of the team that owns the application; of a statement, see responsible.
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

// access is what the reviewers of a line depend on, as the catalog has it now: an application and a resource, or the scope of a statement.
type access struct {
	c                     *catalog.Catalog
	application, resource catalog.Entity
	statement             *approval.StatementScope
	requesters            []string
}

// accessOf returns the access of a line.
func accessOf(c *catalog.Catalog, l *Line) access {
	a := access{c: c, statement: l.Scope, requesters: l.Requesters}
	if a.statement == nil {
		a.application, _ = c.ByName(l.ApplicationName)
		a.resource, _ = c.ByName(l.ResourceName)
	}
	return a
}

// resources returns the resource, or those that the statement covers.
func (a access) resources() iter.Seq[catalog.Entity] {
	if a.statement != nil {
		return a.statement.CoveredResources(a.c)
	}
	return slices.Values([]catalog.Entity{a.resource})
}

// applications returns the application, or those that the statement covers.
func (a access) applications() iter.Seq[catalog.Entity] {
	if a.statement != nil {
		return a.statement.CoveredApplications(a.c)
	}
	return slices.Values([]catalog.Entity{a.application})
}

// own reports whether the access is a person's own: they requested it, or they own the application, or one that the statement covers. The leader
// of the application's team reviews what others requested.
func (a access) own(r Rule, person string) bool {
	switch {
	case slices.Contains(a.requesters, person):
		return true
	case r == RuleApplicationLeader:
		return false
	case a.statement != nil:
		return a.statement.CoversApplicationOf(a.c, person)
	}
	return a.c.Owns(person, a.application)
}

// mayReview reports whether a person may be a reviewer by a rule. Nobody reviews their own access, and auditors change nothing.
func (a access) mayReview(r Rule, person string) bool {
	return !a.c.InGroup(person, catalog.GroupAuditors) && !a.own(r, person)
}

// eligible returns the people who may review the access by a rule, sorted.
func (a access) eligible(r Rule) []string {
	may := func(people []string) []string {
		return slices.DeleteFunc(people, func(p string) bool { return !a.mayReview(r, p) })
	}
	if g, ok := r.group(); ok {
		return may(a.c.Members(g))
	}
	if r == RuleResourceOwner {
		return responsible(a.resources(), func(e catalog.Entity) []string { return may(a.c.OwnerPeople(e)) })
	}
	if a.statement != nil && !a.statement.NamesSubjects() {
		return nil // nobody leads those who are not named
	}
	return responsible(a.applications(), func(e catalog.Entity) []string { return may(leadersOf(a.c, e)) })
}

// responsible returns the people who are responsible for each of some entities, because a reviewer keeps or ends all of an access.
func responsible(of iter.Seq[catalog.Entity], people func(catalog.Entity) []string) (out []string) {
	first := true
	for e := range of {
		found := people(e)
		if first {
			out, first = slices.Clone(found), false
		}
		if out = slices.DeleteFunc(out, func(p string) bool { return !slices.Contains(found, p) }); len(out) == 0 {
			return nil
		}
	}
	return out
}

// leadersOf returns the leaders of the teams that own an application, or of the next groups above them that have one, and the leaders of its other
// owners, sorted.
func leadersOf(c *catalog.Catalog, application catalog.Entity) []string {
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

// reviewers returns the reviewers of the access: those of the first rule that finds any, or the security team. If there is none at all, the silence
// decides.
func (a access) reviewers(rules []Rule) (Rule, []string) {
	for _, r := range rules {
		if people := a.eligible(r); len(people) > 0 {
			return r, people
		}
	}
	return RuleFallback, a.eligible(RuleFallback)
}

// capacity returns in which capacity an actor may decide a line: own, or for the first person whom they represent. Members
// of the security team may decide every line except their own, so that none is stuck.
func capacity(c *catalog.Catalog, a approval.Actor, l *Line) (onBehalfOf string, ok bool) {
	x := accessOf(c, l)
	if a.Auditor || c.InGroup(a.ID, catalog.GroupAuditors) {
		return "", false
	}
	reviews := func(p string) bool { return slices.Contains(l.Reviewers, p) && slices.Contains(x.eligible(l.Rule), p) }
	own := x.own(RuleFallback, a.ID)
	switch {
	case reviews(a.ID) || a.Security && !own:
		return "", true
	case own:
		return "", false
	}
	for _, p := range a.StandsFor {
		if reviews(p) {
			return p, true
		}
	}
	return "", false
}
