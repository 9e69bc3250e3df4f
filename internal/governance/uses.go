package governance

import (
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
)

// Use identifies the statement by which a subject as written reached a resource as written.
type Use struct {
	Subject, Resource string
	Statement         policy.Ref
}

// UseOf returns the use of an edge.
func UseOf(e *Edge) Use { return Use{e.Subject, e.Resource, e.Ref} }

// Uses collects when edges were last used.
type Uses struct {
	by   map[policy.Ref][]*Edge
	last map[Use]time.Time
}

// NewUses returns the uses of some edges.
func NewUses(edges []Edge) *Uses {
	u := &Uses{by: map[policy.Ref][]*Edge{}, last: map[Use]time.Time{}}
	for i := range edges {
		u.by[edges[i].Ref] = append(u.by[edges[i].Ref], &edges[i])
	}
	return u
}

// mostFilters bounds the queries to the flow store for one page.
const mostFilters = 20

// Filters returns the connections to query: those to exact resources, and those of exact subjects to wildcards. An edge
// with wildcards on both sides is found by its statement.
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
			break // the last use of the remaining edges is not known
		}
		out = append(out, audit.Filter{Policy: ref.Policy, SID: ref.SID})
	}
	return out
}

// Add records a connection that a statement decided.
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

// Last returns the last use of each edge; edges without uses are left out.
func (u *Uses) Last() map[Use]time.Time { return u.last }
