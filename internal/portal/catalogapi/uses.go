package catalogapi

import (
	"context"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// ListApplicationAccessUses implements openapi.StrictServerInterface.
func (a *API) ListApplicationAccessUses(
	ctx context.Context,
	r openapi.ListApplicationAccessUsesRequestObject,
) (openapi.ListApplicationAccessUsesResponseObject, error) {
	e, grants, err := a.applicationGrants(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	// A statement may also be about other applications, so only the connections of this one are read.
	out, err := a.accessUses(ctx, grants, views.UsesQuery{Snapshot: snap, Filter: &audit.Filter{Subjects: []string{e.Name}}})
	return openapi.ListApplicationAccessUses200JSONResponse(out), err
}

// ListResourceAccessUses implements openapi.StrictServerInterface.
func (a *API) ListResourceAccessUses(
	ctx context.Context,
	r openapi.ListResourceAccessUsesRequestObject,
) (openapi.ListResourceAccessUsesResponseObject, error) {
	x, err := a.resourceGrants(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	out, err := a.accessUses(ctx, x.grants, views.UsesQuery{Snapshot: x.snapshot, Resource: x.resource.Name,
		Filter: &audit.Filter{Resources: []string{x.resource.Name}, Within: x.within}})
	return openapi.ListResourceAccessUses200JSONResponse(out), err
}

// accessUses returns when the statements of grants were last used.
func (a *API) accessUses(ctx context.Context, grants []policy.Grant, q views.UsesQuery) (openapi.AccessUseList, error) {
	q.Window = views.LastUseWindow
	out := openapi.AccessUseList{Items: []openapi.AccessUse{}, Since: a.Now().Add(-q.Window).UTC()}
	var err error
	if q.Origins, err = a.OriginsOf(ctx, grants); err != nil {
		return out, err
	}
	for _, g := range grants {
		q.Edges = append(q.Edges, governance.UseEdge(q.Snapshot, g))
	}
	uses := a.LastUses(ctx, q)
	if out.Available = uses != nil; !out.Available {
		return out, nil
	}
	for i := range q.Edges {
		e := &q.Edges[i]
		x := openapi.AccessUse{Policy: e.Ref.Policy, Sid: e.Ref.SID, Subject: e.Subject, Resource: e.Resource}
		x.State, x.LastUsed = uses.Of(e)
		out.Items = append(out.Items, x)
	}
	return out, nil
}
