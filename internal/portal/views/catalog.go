package views

import (
	"slices"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// EntityOrNotFound returns an entity of the catalog, or an error if it was not found.
func EntityOrNotFound(e catalog.Entity, ok bool) (catalog.Entity, error) {
	if !ok {
		return e, NotInCatalog()
	}
	return e, nil
}

// NotInCatalog returns the error about something that the catalog does not have, or that the caller may not see.
func NotInCatalog() error {
	return &approval.Error{Code: approval.CodeNotFound, Message: message.CatalogUnknown()}
}

// Names returns the resource names of entities.
func Names(es []catalog.Entity) []string {
	out := make([]string, 0, len(es))
	for _, e := range es {
		out = append(out, e.Name)
	}
	return out
}

// ApplicationNamed returns the application with a resource name.
func ApplicationNamed(c *catalog.Catalog, name string) (catalog.Entity, bool) {
	e, ok := c.ByName(name)
	if !ok {
		return e, false
	}
	app, ok := c.Application(e.ID)
	return app, ok && app.Name == name
}

// ResourceMatches reports whether a resource matches the filters of a list.
func (d *Data) ResourceMatches(e catalog.Entity, class, owner *string) bool {
	return (class == nil || *class == "" || d.ClassOf(e.Name) == *class) &&
		(owner == nil || *owner == "" || slices.ContainsFunc(e.Owners, func(o catalog.Owner) bool { return o.ID == *owner }))
}

// Person returns the view of a person. If the person has left the catalog, only their id is known.
func Person(c *catalog.Catalog, id string) openapi.Person {
	p, ok := c.Person(id)
	if !ok { // the person left; the record stays
		return openapi.Person{Id: id, DisplayName: id}
	}
	return openapi.Person{Id: id, DisplayName: p.DisplayName, Title: core.Optional(p.Title), Email: core.Optional(p.Email)}
}

// Owners returns the owners of an entity.
func Owners(c *catalog.Catalog, e catalog.Entity) []openapi.OwnerRef { return OwnerRefs(c, e.Owners) }

// OwnerRefs returns the views of owners.
func OwnerRefs(c *catalog.Catalog, owners []catalog.Owner) []openapi.OwnerRef {
	out := make([]openapi.OwnerRef, 0, len(owners))
	for _, o := range owners {
		out = append(out, openapi.OwnerRef{Kind: openapi.OwnerRefKind(o.Kind), Id: o.ID, DisplayName: c.OwnerName(o)})
	}
	return out
}

// Ref returns the reference to the entity with a resource name, which has no id if the catalog does not contain it.
func Ref(c *catalog.Catalog, name string) openapi.CatalogRef {
	if e, ok := c.ByName(name); ok {
		return openapi.CatalogRef{Id: new(e.ID), Name: name, Title: e.Title} // not &e.ID, which would keep a copy of e in memory
	}
	return openapi.CatalogRef{Name: name, Title: name}
}

// refs returns references to the entities with some resource names, in their order.
func refs(c *catalog.Catalog, names []string) *[]openapi.CatalogRef {
	out := make([]openapi.CatalogRef, len(names))
	for i, name := range names {
		out[i] = Ref(c, name)
	}
	return &out
}

// StatementScope returns the view of the scope of a statement, with the titles of its names.
func StatementScope(c *catalog.Catalog, s *approval.StatementScope) *openapi.StatementScope {
	return &openapi.StatementScope{
		Effect:       openapi.StatementScopeEffect(s.Effect),
		Subjects:     s.Subjects,
		Resources:    s.Resources,
		SubjectRefs:  refs(c, s.Subjects),
		ResourceRefs: refs(c, s.Resources),
	}
}
