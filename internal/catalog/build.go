package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// Backstage's own rule for names, which also keeps ids safe in URLs.
	idPattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,126}[A-Za-z0-9])?$`)
	// An exact name of 2-semantics "Names"; the policy package parses it again where access depends on it.
	namePattern = regexp.MustCompile(`^trnv1:rsc:[a-z0-9-]{1,63}:[a-z0-9-]{1,63}:[a-z0-9-]{1,63}:[^*\s]+$`)
)

type builder struct {
	c        *Catalog
	where    map[string]string // kind/id -> place, to name both places of a duplicate
	problems []error
	memberOf map[string][]string
}

func newBuilder() *builder {
	return &builder{
		c: &Catalog{people: map[string]*Person{}, groups: map[string]*Group{}, applications: map[string]*Entity{},
			resources: map[string]*Entity{}, names: map[string]*Entity{}},
		where: map[string]string{}, memberOf: map[string][]string{},
	}
}

func (b *builder) problem(where, format string, args ...any) {
	b.problems = append(b.problems, fmt.Errorf("%s: "+format, append([]any{where}, args...)...))
}

func (b *builder) add(where string, e entity) {
	switch e.Kind {
	case "Component", "Resource", "Group", "User":
	default: // other Backstage kinds (API, System, an empty document) are not ACP's business
		return
	}
	id := e.Metadata.Name
	if !idPattern.MatchString(id) {
		b.problem(where, "%s has metadata.name %q: use letters, digits, '-', '_' and '.', at most 128", e.Kind, id)
		return
	}
	key := e.Kind + "/" + id
	if first, dup := b.where[key]; dup {
		b.problem(where, "%s %s was already defined in %s: remove one of the two", e.Kind, id, first)
		return
	}
	b.where[key] = where
	switch e.Kind {
	case "User":
		b.user(where, id, e)
	case "Group":
		b.group(id, e)
	case "Component":
		b.owned(where, id, e, b.c.applications)
	case "Resource":
		b.owned(where, id, e, b.c.resources)
	}
}

func (b *builder) user(where, id string, e entity) {
	p := &Person{ID: id, DisplayName: first(e.Spec.Profile.DisplayName, e.Metadata.Title, id), Title: e.Spec.Profile.Title,
		Email: e.Spec.Profile.Email, Leader: refID(e.Metadata.Annotations[annotationLeader], "user:")}
	if p.Leader == id {
		b.problem(where, "User %s names himself in %s: name his leader or leave it out", id, annotationLeader)
	}
	b.c.people[id] = p
	for _, g := range e.Spec.MemberOf {
		b.memberOf[id] = append(b.memberOf[id], refID(g, "group:"))
	}
}

func (b *builder) group(id string, e entity) {
	b.c.groups[id] = &Group{ID: id, Title: first(e.Metadata.Title, id), Lead: refID(e.Metadata.Annotations[annotationLead], "user:"),
		Parent: refID(e.Spec.Parent, "group:")}
	for _, m := range e.Spec.Members {
		b.memberOf[refID(m, "user:")] = append(b.memberOf[refID(m, "user:")], id)
	}
}

func (b *builder) owned(where, id string, e entity, into map[string]*Entity) {
	name := e.Metadata.Annotations[annotationName]
	if name == "" {
		return // in the company's catalog, but not in ACP's
	}
	if !namePattern.MatchString(name) || len(name) > 512 {
		b.problem(where, "%s %s has annotation %s %q: it must be an exact name, trnv1:rsc:<org>:<service>:<type>:<id>", e.Kind, id, annotationName, name)
		return
	}
	if other, dup := b.c.names[name]; dup {
		b.problem(where, "%s %s has the resource name of %s (%s): two entities cannot be one", e.Kind, id, other.ID, name)
		return
	}
	owner, err := parseOwner(e.Spec.Owner)
	if err != nil {
		b.problem(where, "%s %s: %w", e.Kind, id, err)
		return
	}
	s := Sensitivity(first(e.Metadata.Annotations[annotationSensitivity], string(SensitivityLow)))
	if s != SensitivityLow && s != SensitivityMedium && s != SensitivityHigh {
		b.problem(where, "%s %s has %s %q: use low, medium or high", e.Kind, id, annotationSensitivity, s)
		return
	}
	ent := &Entity{ID: id, Name: name, Title: first(e.Metadata.Title, id), Description: e.Metadata.Description,
		Environment: e.Metadata.Annotations[annotationEnvironment], Owners: []Owner{owner}, Sensitivity: s}
	into[id] = ent
	b.c.names[name] = ent
}

// build joins both sides of the memberships. References to people or groups that do not exist are kept: an owner who
// left must be seen, not dropped, and lookups leave him out of those who can act.
func (b *builder) build() (*Catalog, error) {
	if len(b.problems) > 0 {
		return nil, fmt.Errorf("the catalog has %d problem(s): %w", len(b.problems), errors.Join(b.problems...))
	}
	for person, groups := range b.memberOf {
		p, ok := b.c.people[person]
		if !ok {
			continue
		}
		slices.Sort(groups)
		for _, id := range slices.Compact(groups) {
			p.Groups = append(p.Groups, id)
			if g, ok := b.c.groups[id]; ok {
				g.Members = append(g.Members, person)
			}
		}
	}
	for _, g := range b.c.groups {
		slices.Sort(g.Members)
	}
	return b.c, nil
}

func parseOwner(ref string) (Owner, error) {
	kind, rest, found := strings.Cut(ref, ":")
	if !found {
		kind, rest = "group", ref
	}
	id := refID(rest, "")
	if id == "" {
		return Owner{}, errors.New("spec.owner is empty: use user:<name> or group:<name>")
	}
	switch strings.ToLower(kind) {
	case "user":
		return Owner{Kind: OwnerPerson, ID: id}, nil
	case "group":
		return Owner{Kind: OwnerGroup, ID: id}, nil
	}
	return Owner{}, fmt.Errorf("spec.owner %q: use user:<name> or group:<name>", ref)
}

// refID strips the kind and Backstage's default namespace from a reference.
func refID(ref, prefix string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(ref), prefix), "default/")
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
