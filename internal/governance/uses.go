package governance

import (
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Use is by which statement a subject as written reached a resource as written.
type Use struct {
	Subject, Resource string
	Statement         policy.Ref
}

// UseOf an edge.
func UseOf(e *Edge) Use { return Use{e.Subject, e.Resource, e.Ref} }

// Uses gathers when edges were last used.
type Uses struct {
	by   map[policy.Ref][]*Edge
	last map[Use]time.Time
}

// NewUses of some edges.
func NewUses(edges []Edge) *Uses {
	u := &Uses{by: map[policy.Ref][]*Edge{}, last: map[Use]time.Time{}}
	for i := range edges {
		u.by[edges[i].Ref] = append(u.by[edges[i].Ref], &edges[i])
	}
	return u
}

// mostFilters bounds how often the flows are asked for one page.
const mostFilters = 20

// Filters select the connections to look at: those to exact resources, and those of exact subjects to wildcards. What has
// a wildcard on both sides is found by its statement.
func (u *Uses) Filters() []audit.Filter {
	resources, subjects, statements := map[string]bool{}, map[string]bool{}, map[policy.Ref]bool{}
	for ref, edges := range u.by {
		for _, e := range edges {
			switch {
			case !e.Wildcard:
				resources[e.Resource] = true
			case e.SubjectKind == Application || e.SubjectKind == Other:
				subjects[e.Subject] = true
			default:
				statements[ref] = true
			}
		}
	}
	var out []audit.Filter
	if len(resources) > 0 {
		out = append(out, audit.Filter{Resources: slices.Sorted(maps.Keys(resources))})
	}
	if len(subjects) > 0 {
		out = append(out, audit.Filter{Subjects: slices.Sorted(maps.Keys(subjects))})
	}
	for ref := range statements {
		if len(out) == mostFilters {
			break // the last use of the others is not known
		}
		out = append(out, audit.Filter{Policy: ref.Policy, SID: ref.SID})
	}
	return out
}

// Add a connection that a statement decided.
func (u *Uses) Add(subject, resource string, by policy.Ref, at time.Time) {
	for _, e := range u.by[by] {
		if !Covers(e.Resource, resource) || e.SubjectKind != CIDR && !Covers(e.Subject, subject) || e.SubjectKind == CIDR && subject != "" {
			continue
		}
		if k := UseOf(e); at.After(u.last[k]) {
			u.last[k] = at
		}
	}
}

// Last use of each edge; those without any are left out.
func (u *Uses) Last() map[Use]time.Time { return u.last }
