package organization

import (
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
)

// Entity contains the fields of an entity of the catalog that decide about rights.
type Entity struct {
	Kind, Name, Environment, Sensitivity string
	// Teams are the ids of the groups that own the entity.
	Teams []string
	// People are the ids of the people who own the entity. They belong to no organization.
	People []string
}

// OwnerOf returns the organization to which the first team of an entity belongs that belongs to one; empty if there is none.
func (x *Index) OwnerOf(e *Entity) v1alpha1.OrganizationName {
	for _, team := range e.Teams {
		if naming := x.naming[v1alpha1.TeamName(team)]; len(naming) == 1 {
			return v1alpha1.OrganizationName(naming[0])
		}
	}
	return ""
}

// EntityViolations returns the bounds of an organization that an entity of the catalog exceeds; none if its administrators may have it.
func (x *Index) EntityViolations(name v1alpha1.OrganizationName, e *Entity) []message.Message {
	o := x.Get(name)
	if o == nil {
		return []message.Message{message.OrganizationUnknown(string(name))}
	}
	b := o.Spec.Bounds.Catalog
	if b == nil {
		return []message.Message{message.OrganizationNoCatalog()}
	}
	if !slices.Contains(b.Kinds, v1alpha1.EntityKind(e.Kind)) {
		return []message.Message{message.OrganizationBoundEntityKind(e.Kind, texts(b.Kinds))}
	}
	var out []message.Message
	exceeds := func(yes bool, m message.Message) {
		if yes {
			out = append(out, m)
		}
	}
	for _, team := range e.Teams {
		exceeds(!x.Has(name, team), message.OrganizationBoundEntityOwner("group:"+team))
	}
	for _, person := range e.People {
		exceeds(true, message.OrganizationBoundEntityOwner("user:"+person))
	}
	exceeds(len(e.Teams)+len(e.People) == 0, message.OrganizationBoundEntityNoOwner())
	exceeds(!slices.ContainsFunc(b.Patterns, func(p v1alpha1.NamePattern) bool { return coversName(p, e.Name) }),
		message.OrganizationBoundEntityName(e.Name, texts(b.Patterns)))
	exceeds(e.Kind == "resource" && !slices.Contains(b.Sensitivities, v1alpha1.Sensitivity(e.Sensitivity)),
		message.OrganizationBoundEntitySensitivity(e.Sensitivity, texts(b.Sensitivities)))
	switch {
	case len(b.Environments) == 0:
		exceeds(e.Environment != "", message.OrganizationBoundNoEnvironment())
	default:
		exceeds(!slices.Contains(b.Environments, v1alpha1.EnvironmentName(e.Environment)),
			message.OrganizationBoundEnvironment(texts(b.Environments)))
	}
	return out[:min(len(out), mostListed)]
}

// coversName reports whether a pattern covers a name. The name must be exact.
func coversName(pattern v1alpha1.NamePattern, name string) bool {
	p, errP := policy.ParseName(string(pattern))
	n, errN := policy.ParseName(name)
	return errP == nil && errN == nil && !n.Wildcard && p.Covers(n)
}
