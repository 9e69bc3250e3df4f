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

// UseEdge returns a grant as an edge of which only the kind of the subject is known, which is what Uses need.
func UseEdge(s *policy.Snapshot, g policy.Grant) Edge {
	return Edge{Grant: g, SubjectKind: KindOfSubject(s, g.Subject)}
}

// Uses collects when edges were last used.
type Uses struct {
	by   map[policy.Ref][]*Edge
	last map[Use]time.Time
	// beyond are the statements that Filters left out.
	beyond map[policy.Ref]bool
}

// NewUses returns the uses of some edges.
func NewUses(edges []Edge) *Uses {
	u := &Uses{by: map[policy.Ref][]*Edge{}, last: map[Use]time.Time{}}
	for i := range edges {
		u.by[edges[i].Ref] = append(u.by[edges[i].Ref], &edges[i])
	}
	return u
}

const (
	// mostStatements bounds the queries about single statements to the flow store for one page.
	mostStatements = 20
	// namesPerFilter bounds the names of one query, as databases do.
	namesPerFilter = 500
)

// Filters returns the connections to query: those to exact resources, and those of exact subjects to wildcards. An edge
// with wildcards on both sides is found by its statement. See Complete for the uses that these connections do not contain.
func (u *Uses) Filters() []audit.Filter {
	resources, subjects, statements := map[string]bool{}, map[string]bool{}, map[policy.Ref]bool{}
	for ref, edges := range u.by {
		for _, e := range edges {
			switch {
			case !e.Wildcard:
				resources[e.Resource] = true
			case !e.byStatement():
				subjects[e.Subject] = true
			default:
				statements[ref] = true
			}
		}
	}
	var out []audit.Filter
	for names := range slices.Chunk(slices.Sorted(maps.Keys(resources)), namesPerFilter) {
		out = append(out, audit.Filter{Resources: names})
	}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(subjects)), namesPerFilter) {
		out = append(out, audit.Filter{Subjects: names})
	}
	u.beyond = map[policy.Ref]bool{}
	for i, ref := range slices.SortedFunc(maps.Keys(statements), policy.Ref.Compare) {
		if i >= mostStatements {
			u.beyond[ref] = true
			continue
		}
		out = append(out, audit.Filter{Policy: ref.Policy, SID: ref.SID})
	}
	return out
}

// byStatement reports whether only the statement of an edge selects its connections.
func (e *Edge) byStatement() bool {
	return e.Wildcard && e.SubjectKind != Application && e.SubjectKind != Other
}

// Complete reports whether the connections that Filters selects contain every use of an edge. They do not if there are too many edges of
// its kind, or if it is an allow that is found by its statement, because no statement decides about a resource in Observe.
func (u *Uses) Complete(e *Edge) bool {
	return !e.byStatement() || !u.beyond[e.Ref] && e.Effect == policy.Deny
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
