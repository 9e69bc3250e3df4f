package catalogapi

import (
	"context"
	"slices"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// ListResources implements openapi.StrictServerInterface.
func (a *API) ListResources(ctx context.Context, r openapi.ListResourcesRequestObject) (openapi.ListResourcesResponseObject, error) {
	who, c := core.Caller(ctx), a.Catalog()
	q, err := a.entityQuery(catalog.KindResource, who, r.Params.Q, r.Params.Owner, r.Params.Environment, r.Params.Mine, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	sort, err := core.ParseSort(r.Params.Sort, entityOrders...)
	if err != nil {
		return nil, err
	}
	q.Sensitivity, q.Class, q.ClassOf = catalog.Sensitivity(core.Value(r.Params.Sensitivity)), core.Value(r.Params.Class), a.ClassOf
	if app := core.Value(r.Params.DeniedFor); app != "" {
		q.First = a.deniedFirst(ctx, who, c, app)
	}
	found, next, err := a.entities(q, sort, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	denied := a.Denials(ctx, audit.DeniedQuery{By: audit.ByResource})
	out := openapi.ListResources200JSONResponse{Items: make([]openapi.Resource, 0, len(found.Entities)), NextCursor: next}
	for _, e := range found.Entities {
		out.Items = append(out.Items, a.Resource(c, who, e, denied))
	}
	return out, nil
}

// deniedFirst returns the resources that refused an application lately, in descending order of refusals; none if the person may not
// see the connections of the application.
func (a *API) deniedFirst(ctx context.Context, who approval.Actor, c *catalog.Catalog, application string) map[string]int {
	e, ok := c.Application(application)
	if !ok || !views.MayInspect(c, who, e) {
		return nil
	}
	const most = 1 << 20 // more would not help a person
	first := map[string]int{}
	for name, n := range a.Denials(ctx, audit.DeniedQuery{By: audit.ByResource, Subject: e.Name}) {
		if x, ok := c.ByName(name); ok && n > 0 {
			first[x.ID] = int(min(n, most))
		}
	}
	return first
}

// GetResource implements openapi.StrictServerInterface.
func (a *API) GetResource(ctx context.Context, r openapi.GetResourceRequestObject) (openapi.GetResourceResponseObject, error) {
	c := a.Catalog()
	e, err := views.EntityOrNotFound(c.Resource(r.Id))
	if err != nil {
		return nil, err
	}
	denied := a.Denials(ctx, audit.DeniedQuery{By: audit.ByResource, Resource: e.Name})
	return openapi.GetResource200JSONResponse(a.Resource(c, core.Caller(ctx), e, denied)), nil
}

// ListResourceAccess implements openapi.StrictServerInterface.
func (a *API) ListResourceAccess(ctx context.Context, r openapi.ListResourceAccessRequestObject) (openapi.ListResourceAccessResponseObject, error) {
	x, err := a.resourceGrants(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	from, err := a.OriginsOf(ctx, x.grants)
	if err != nil {
		return nil, err
	}
	return openapi.ListResourceAccess200JSONResponse{Items: a.AccessOf(x.grants, from)}, nil
}

// visibleGrants are the statements about a resource that a caller may see.
type visibleGrants struct {
	resource catalog.Entity
	grants   []policy.Grant
	snapshot *policy.Snapshot
	// within limits the connections to those that the caller may see; nil means all of the resource.
	within *audit.Scope
}

// resourceGrants returns the statements about a resource: all of them for those who may inspect it, otherwise those about the caller's own
// applications.
func (a *API) resourceGrants(ctx context.Context, id string) (visibleGrants, error) {
	who, c := core.Caller(ctx), a.Catalog()
	e, err := views.EntityOrNotFound(c.Resource(id))
	if err != nil {
		return visibleGrants{}, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return visibleGrants{}, err
	}
	out := visibleGrants{resource: e, grants: snap.WhoCanReach(e.Name, a.Now()), snapshot: snap}
	if !views.MayInspect(c, who, e) {
		out.grants = slices.DeleteFunc(out.grants, func(g policy.Grant) bool { return !views.OwnsApplication(c, who, g.Subject) })
		out.within = a.FlowScope(who)
	}
	return out, nil
}

// ListResourceConnections implements openapi.StrictServerInterface.
func (a *API) ListResourceConnections(
	ctx context.Context,
	r openapi.ListResourceConnectionsRequestObject,
) (openapi.ListResourceConnectionsResponseObject, error) {
	who, c := core.Caller(ctx), a.Catalog()
	e, err := views.EntityOrNotFound(c.Resource(r.Id))
	if err != nil {
		return nil, err
	}
	visible, within := everyConnection, (*audit.Scope)(nil)
	if !views.MayInspect(c, who, e) {
		// Not read at all, instead of read and then hidden.
		visible, within = func(f audit.Connection) bool { return views.OwnsApplication(c, who, f.Subject) }, a.FlowScope(who)
	}
	list, err := a.connections(
		ctx,
		audit.ConnectionQuery{Filter: audit.Filter{Resources: []string{e.Name}, Within: within}},
		r.Params.Decision,
		r.Params.Since,
		visible,
	)
	if err != nil {
		return nil, err
	}
	return openapi.ListResourceConnections200JSONResponse(list), nil
}
