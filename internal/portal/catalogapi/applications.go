package catalogapi

import (
	"context"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// ListApplications implements openapi.StrictServerInterface.
func (a *API) ListApplications(ctx context.Context, r openapi.ListApplicationsRequestObject) (openapi.ListApplicationsResponseObject, error) {
	who, c := core.Caller(ctx), a.Catalog()
	q, err := a.entityQuery(catalog.KindApplication, who, r.Params.Q, r.Params.Owner, r.Params.Environment, r.Params.Mine, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	sort, err := core.ParseSort(r.Params.Sort, entityOrders...)
	if err != nil {
		return nil, err
	}
	found, next, err := a.entities(q, sort, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	denied := a.Denials(ctx, audit.DeniedQuery{By: audit.BySubject})
	out := openapi.ListApplications200JSONResponse{Items: make([]openapi.Application, 0, len(found.Entities)), NextCursor: next}
	for _, e := range found.Entities {
		out.Items = append(out.Items, applicationOf(c, who, e, denied))
	}
	return out, nil
}

// GetApplication implements openapi.StrictServerInterface.
func (a *API) GetApplication(ctx context.Context, r openapi.GetApplicationRequestObject) (openapi.GetApplicationResponseObject, error) {
	c := a.Catalog()
	e, err := views.EntityOrNotFound(c.Application(r.Id))
	if err != nil {
		return nil, err
	}
	denied := a.Denials(ctx, audit.DeniedQuery{By: audit.BySubject, Subject: e.Name})
	return openapi.GetApplication200JSONResponse(applicationOf(c, core.Caller(ctx), e, denied)), nil
}

// ListApplicationAccess implements openapi.StrictServerInterface.
func (a *API) ListApplicationAccess(ctx context.Context, r openapi.ListApplicationAccessRequestObject) (openapi.ListApplicationAccessResponseObject, error) {
	_, grants, err := a.applicationGrants(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	from, err := a.OriginsOf(ctx, grants)
	if err != nil {
		return nil, err
	}
	return openapi.ListApplicationAccess200JSONResponse{Items: a.AccessOf(grants, from)}, nil
}

// applicationGrants returns the statements about an application that the caller may inspect.
func (a *API) applicationGrants(ctx context.Context, id string) (catalog.Entity, []policy.Grant, error) {
	e, err := a.InspectableApplication(ctx, id)
	if err != nil {
		return e, nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return e, nil, err
	}
	return e, snap.WhatCanReach(e.Name, a.Now()), nil
}

// ListApplicationConnections implements openapi.StrictServerInterface.
func (a *API) ListApplicationConnections(
	ctx context.Context,
	r openapi.ListApplicationConnectionsRequestObject,
) (openapi.ListApplicationConnectionsResponseObject, error) {
	e, err := a.InspectableApplication(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	list, err := a.connections(ctx, audit.ConnectionQuery{Filter: audit.Filter{Subjects: []string{e.Name}}}, r.Params.Decision, r.Params.Since, everyConnection)
	if err != nil {
		return nil, err
	}
	return openapi.ListApplicationConnections200JSONResponse(list), nil
}

func applicationOf(c *catalog.Catalog, who approval.Actor, e catalog.Entity, denied map[string]int64) openapi.Application {
	out := openapi.Application{Id: e.ID, Name: e.Name, Title: e.Title, Description: core.Optional(e.Description), Owners: views.Owners(c, e),
		Environment: core.Optional(e.Environment), Mine: c.Owns(who.ID, e)}
	if views.MayInspect(c, who, e) {
		out.Denied24h = views.DenialCount(denied, e.Name)
	}
	return out
}
