package portal

import (
	"context"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// ListApplications implements openapi.StrictServerInterface.
func (a *api) ListApplications(ctx context.Context, r openapi.ListApplicationsRequestObject) (openapi.ListApplicationsResponseObject, error) {
	who, c := core.Caller(ctx), a.Catalog()
	q, err := a.entityQuery(catalog.KindApplication, who, r.Params.Q, r.Params.Owner, r.Params.Environment, r.Params.Mine, r.Params.Cursor, r.Params.Limit)
	if err != nil {
		return nil, err
	}
	found, next, err := a.entities(q)
	if err != nil {
		return nil, err
	}
	denied := a.denials(ctx, audit.DeniedQuery{By: audit.BySubject})
	out := openapi.ListApplications200JSONResponse{Items: make([]openapi.Application, 0, len(found.Entities)), NextCursor: next}
	for _, e := range found.Entities {
		out.Items = append(out.Items, applicationOf(c, who, e, denied))
	}
	return out, nil
}

// GetApplication implements openapi.StrictServerInterface.
func (a *api) GetApplication(ctx context.Context, r openapi.GetApplicationRequestObject) (openapi.GetApplicationResponseObject, error) {
	c := a.Catalog()
	e, err := found(c.Application(r.Id))
	if err != nil {
		return nil, err
	}
	denied := a.denials(ctx, audit.DeniedQuery{By: audit.BySubject, Subject: e.Name})
	return openapi.GetApplication200JSONResponse(applicationOf(c, core.Caller(ctx), e, denied)), nil
}

// ListApplicationAccess implements openapi.StrictServerInterface.
func (a *api) ListApplicationAccess(ctx context.Context, r openapi.ListApplicationAccessRequestObject) (openapi.ListApplicationAccessResponseObject, error) {
	e, err := a.inspectable(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	snap, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	grants := snap.WhatCanReach(e.Name, a.Now())
	from, err := a.originsOf(ctx, grants)
	if err != nil {
		return nil, err
	}
	return openapi.ListApplicationAccess200JSONResponse{Items: a.accessOf(grants, from)}, nil
}

// ListApplicationConnections implements openapi.StrictServerInterface.
func (a *api) ListApplicationConnections(ctx context.Context, r openapi.ListApplicationConnectionsRequestObject) (openapi.ListApplicationConnectionsResponseObject, error) {
	e, err := a.inspectable(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	list, err := a.connections(ctx, audit.ConnectionQuery{Filter: audit.Filter{Subjects: []string{e.Name}}}, r.Params.Decision, r.Params.Since, everyConnection)
	if err != nil {
		return nil, err
	}
	return openapi.ListApplicationConnections200JSONResponse(list), nil
}

// inspectable returns an application whose connections the caller may see, or an error.
func (a *api) inspectable(ctx context.Context, id string) (catalog.Entity, error) {
	c := a.Catalog()
	e, err := found(c.Application(id))
	if err != nil {
		return e, err
	}
	if !mayInspect(c, core.Caller(ctx), e) {
		return e, &approval.Error{Code: approval.CodeForbidden, Message: message.AccessApplicationReach()}
	}
	return e, nil
}

func found(e catalog.Entity, ok bool) (catalog.Entity, error) {
	if !ok {
		return e, &approval.Error{Code: approval.CodeNotFound, Message: message.CatalogUnknown()}
	}
	return e, nil
}
