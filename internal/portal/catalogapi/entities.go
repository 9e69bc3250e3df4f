package catalogapi

import (
	"context"
	"slices"
	"strings"

	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const listEntities = "entities"

// ListEntities implements openapi.StrictServerInterface.
func (a *API) ListEntities(ctx context.Context, r openapi.ListEntitiesRequestObject) (openapi.ListEntitiesResponseObject, error) {
	sort, err := core.ParseSort(r.Params.Sort, "id", "-id", "title", "-title", "source", "-source")
	if err != nil {
		return nil, err
	}
	part := strings.ToLower(core.Value(r.Params.Q))
	all := slices.DeleteFunc(a.Directory.Stored(), func(x catalog.Stored) bool {
		return r.Params.Kind != nil && string(x.Kind) != string(*r.Params.Kind) || r.Params.Source != nil && x.Source != *r.Params.Source ||
			core.Value(r.Params.Gone) && x.Gone.IsZero()
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
	leaves := map[catalog.Ref]*catalog.Dependents{}
	if slices.ContainsFunc(found, func(x catalog.Stored) bool { return !x.Gone.IsZero() }) {
		for _, d := range a.Directory.GoneEntities() {
			leaves[d.Ref()] = d.Dependents
		}
	}
	out := openapi.ListEntities200JSONResponse{Items: make([]openapi.Entity, 0, len(found)), NextCursor: next}
	for _, x := range found {
		out.Items = append(out.Items, entityView(x, leaves[x.Ref()]))
	}
	return out, nil
}

func entityView(x catalog.Stored, l *catalog.Dependents) openapi.Entity {
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
		out.Owners = &owners
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
	x, err := a.Directory.Put(core.RequestContext(ctx), editor(ctx), rec, core.Value(b.Version))
	if err != nil {
		return nil, catalogProblem(err)
	}
	return openapi.PutEntity200JSONResponse(entityView(x, nil)), nil
}

// DeleteEntity implements openapi.StrictServerInterface.
func (a *API) DeleteEntity(ctx context.Context, r openapi.DeleteEntityRequestObject) (openapi.DeleteEntityResponseObject, error) {
	if err := core.CheckTextLength("reason", r.Body.Reason); err != nil {
		return nil, err
	}
	ref := catalog.Ref{Kind: catalog.Kind(r.Kind), ID: r.Id}
	revision := a.Directory.Revision()
	x, ok := a.Directory.Entity(ref)
	if !ok {
		_, err := views.EntityOrNotFound(catalog.Entity{}, false)
		return nil, err
	}
	var err error
	if x.Gone.IsZero() {
		_, err = a.Directory.Retire(core.RequestContext(ctx), editor(ctx), ref, x.Version)
	} else {
		err = a.Directory.Remove(core.RequestContext(ctx), editor(ctx), []catalog.Ref{ref}, revision)
	}
	if err != nil {
		return nil, catalogProblem(err)
	}
	return openapi.DeleteEntity204Response{}, nil
}
