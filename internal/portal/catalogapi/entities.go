package catalogapi

import (
	"context"
	"slices"
	"strings"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/organization"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const listEntities = "entities"

// ListEntities implements openapi.StrictServerInterface. The security team and auditors see all entities, and administrators of an
// organization those that its teams own, because the sources and what depends on an entity are not for everybody.
func (a *API) ListEntities(ctx context.Context, r openapi.ListEntitiesRequestObject) (openapi.ListEntitiesResponseObject, error) {
	sort, err := core.ParseSort(r.Params.Sort, "id", "-id", "title", "-title", "source", "-source")
	if err != nil {
		return nil, err
	}
	scope, err := a.scopeOf(ctx, v1alpha1.OrganizationName(core.Value(r.Params.Organization)))
	if err != nil {
		return nil, err
	}
	part := strings.ToLower(core.Value(r.Params.Q))
	all := slices.DeleteFunc(a.Directory.Stored(), func(x catalog.Stored) bool {
		return r.Params.Kind != nil && string(x.Kind) != string(*r.Params.Kind) || r.Params.Source != nil && x.Source != *r.Params.Source ||
			core.Value(r.Params.Gone) && x.Gone.IsZero() || !scope.includes(&x)
	})
	found, next, err := core.SortedPage(
		listEntities,
		sort,
		core.Rows[catalog.Stored]{
			All: all,
			ID:  func(x catalog.Stored) string { return string(x.Kind) + "/" + x.ID },
			Keys: map[string]func(catalog.Stored) string{
				"title":  func(x catalog.Stored) string { return strings.ToLower(x.Title) },
				"source": func(x catalog.Stored) string { return x.Source },
			},
			Keep: func(x catalog.Stored) bool {
				return part == "" || strings.Contains(strings.ToLower(x.ID+"\n"+x.Title+"\n"+x.Name), part)
			},
		},
		r.Params.Cursor,
		r.Params.Limit,
	)
	if err != nil {
		return nil, err
	}
	c, leaves := a.Catalog(), map[catalog.Ref]*catalog.Dependents{}
	if slices.ContainsFunc(found, func(x catalog.Stored) bool { return !x.Gone.IsZero() }) {
		for _, d := range a.Directory.GoneEntities() {
			leaves[d.Ref()] = d.Dependents
		}
	}
	out := openapi.ListEntities200JSONResponse{Items: make([]openapi.Entity, 0, len(found)), NextCursor: next}
	for _, x := range found {
		view := entityView(c, x, leaves[x.Ref()])
		view.OutOfBounds = scope.violations(&x)
		out.Items = append(out.Items, view)
	}
	return out, nil
}

// entityScope limits a list to the entities that teams of an organization own. The zero value includes every entity.
type entityScope struct {
	all  *organization.Index
	name v1alpha1.OrganizationName
}

// scopeOf returns what the caller sees of the catalog with its sources.
func (a *API) scopeOf(ctx context.Context, name v1alpha1.OrganizationName) (entityScope, error) {
	who := core.Caller(ctx)
	governor := core.RequireGovernor(who)
	if name == "" {
		if governor != nil {
			return entityScope{}, core.Forbidden(message.CatalogListOfOrganization())
		}
		return entityScope{}, nil
	}
	all, err := a.Tickets.Organizations()
	if err != nil {
		return entityScope{}, err
	}
	// An organization that the caller may not see does not exist for them.
	if o := all.Get(name); o == nil || governor != nil && !approval.Administers(a.Catalog(), who.ID, o) {
		return entityScope{}, &approval.Error{Code: approval.CodeNotFound, Message: message.OrganizationNotFound()}
	}
	return entityScope{all: all, name: name}, nil
}

func (s entityScope) includes(x *catalog.Stored) bool {
	return s.all == nil || slices.ContainsFunc(x.Owners, func(o catalog.Owner) bool { return o.Kind == catalog.OwnerGroup && s.all.Has(s.name, o.ID) })
}

// violations returns why the administrators of the organization may not change an entity; nil if they may.
func (s entityScope) violations(x *catalog.Stored) *[]message.Message {
	if s.all == nil {
		return nil
	}
	e := approval.BoundedEntity(&x.Record)
	if out := s.all.EntityViolations(s.name, &e); len(out) > 0 {
		return &out
	}
	return nil
}

// entityEditor returns the caller as an actor who changes a single entity.
func (a *API) entityEditor(ctx context.Context) (catalog.Actor, error) {
	out := editor(ctx)
	if out.Security || core.Caller(ctx).Auditor {
		return out, nil
	}
	delegate, err := a.Tickets.CatalogDelegate(out.ID)
	out.Delegate = delegate
	return out, err
}

func entityView(c *catalog.Catalog, x catalog.Stored, l *catalog.Dependents) openapi.Entity {
	out := openapi.Entity{
		Kind:        openapi.EntityKind(x.Kind),
		Id:          x.ID,
		Title:       x.Title,
		Description: core.Optional(x.Description),
		Name:        core.Optional(x.Name),
		Environment: core.Optional(
			x.Environment,
		),
		Email:   core.Optional(x.Email),
		Leader:  core.Optional(x.Leader),
		Parent:  core.Optional(x.Parent),
		Source:  core.Optional(x.Source),
		Version: &x.Version,
	}
	if x.Kind == catalog.KindGroup {
		out.Leader = core.Optional(x.Lead)
	}
	if x.Kind == catalog.KindResource {
		out.Sensitivity = new(openapi.Sensitivity(x.Sensitivity))
	}
	if len(x.Owners) > 0 {
		owners := make([]string, len(x.Owners))
		for i, o := range x.Owners {
			owners[i] = ownerText(o)
		}
		out.Owners, out.OwnerRefs = &owners, new(views.OwnerRefs(c, x.Owners))
	}
	if len(x.Members) > 0 {
		out.Members = &x.Members
	}
	if !x.Gone.IsZero() {
		out.Gone = new(true)
		list := l.Consequences()
		out.Consequences = &list
	}
	return out
}

func ownerText(o catalog.Owner) string {
	if o.Kind == catalog.OwnerGroup {
		return "group:" + o.ID
	}
	return "user:" + o.ID
}

// PutEntity implements openapi.StrictServerInterface.
func (a *API) PutEntity(ctx context.Context, r openapi.PutEntityRequestObject) (openapi.PutEntityResponseObject, error) {
	b := r.Body
	if !b.Kind.Valid() {
		return nil, core.InvalidField("kind", message.FieldOneOf([]string{"application", "resource", "person", "group"}))
	}
	rec := catalog.Record{
		Kind:        catalog.Kind(b.Kind),
		ID:          b.Id,
		Title:       b.Title,
		Description: core.Value(b.Description),
		Name:        core.Value(b.Name),
		Environment: core.Value(b.Environment),
		Sensitivity: catalog.Sensitivity(core.Value(b.Sensitivity)),
		Email:       core.Value(b.Email),
		Parent:      core.Value(b.Parent),
		Members:     core.Value(b.Members),
	}
	if rec.Kind == catalog.KindGroup {
		rec.Lead = core.Value(b.Leader)
	} else {
		rec.Leader = core.Value(b.Leader)
	}
	for _, text := range core.Value(b.Owners) {
		kind, id, ok := strings.Cut(text, ":")
		o := catalog.Owner{ID: id}
		switch {
		case ok && kind == "user":
			o.Kind = catalog.OwnerPerson
		case ok && kind == "group":
			o.Kind = catalog.OwnerGroup
		default:
			return nil, core.InvalidField("owners", message.FieldOwnersForm())
		}
		rec.Owners = append(rec.Owners, o)
	}
	actor, err := a.entityEditor(ctx)
	if err != nil {
		return nil, err
	}
	x, err := a.Directory.Put(core.RequestContext(ctx), actor, rec, core.Value(b.Version))
	if err != nil {
		return nil, catalogProblem(err)
	}
	return openapi.PutEntity200JSONResponse(entityView(a.Catalog(), x, nil)), nil
}

// DeleteEntity implements openapi.StrictServerInterface.
func (a *API) DeleteEntity(ctx context.Context, r openapi.DeleteEntityRequestObject) (openapi.DeleteEntityResponseObject, error) {
	if err := core.CheckTextLength("reason", r.Body.Reason); err != nil {
		return nil, err
	}
	actor, err := a.entityEditor(ctx)
	if err != nil {
		return nil, err
	}
	ref := catalog.Ref{Kind: catalog.Kind(r.Kind), ID: r.Id}
	revision := a.Directory.Revision()
	x, ok := a.Directory.Entity(ref)
	if !ok {
		return nil, views.NotInCatalog()
	}
	switch {
	case x.Gone.IsZero():
		_, err = a.Directory.Retire(core.RequestContext(ctx), actor, ref, x.Version)
	case !actor.Security:
		// The deletion ends what the bounds compare a later entity with.
		return nil, core.Forbidden(message.CatalogRemovalSecurityOnly())
	default:
		err = a.Directory.Remove(core.RequestContext(ctx), actor, []catalog.Ref{ref}, revision)
	}
	if err != nil {
		return nil, catalogProblem(err)
	}
	return openapi.DeleteEntity204Response{}, nil
}
