package rolloutapi

import (
	"context"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
	"github.com/acp-io/acp/internal/rollout"
)

// maxVersion is the maximum length of a resource version, in bytes.
const maxVersion = 64

// PutTemporaryAudit implements openapi.StrictServerInterface.
func (a *API) PutTemporaryAudit(ctx context.Context, r openapi.PutTemporaryAuditRequestObject) (openapi.PutTemporaryAuditResponseObject, error) {
	e, err := views.EntityOrNotFound(a.Catalog().Resource(r.Id))
	if err != nil {
		return nil, err
	}
	version := core.Value(r.Body.ResourceVersion)
	if len(version) > maxVersion {
		return nil, core.InvalidField("resourceVersion", message.FieldMaxCharacters(64))
	}
	p, err := a.Rollout.BeginTemporaryAudit(
		core.RequestContext(ctx),
		core.Caller(ctx),
		e,
		rollout.TemporaryAuditRequest{Until: r.Body.Until, Reason: r.Body.Reason, Version: version},
	)
	if err != nil {
		return nil, err
	}
	return openapi.PutTemporaryAudit200JSONResponse(a.resourceAfter(ctx, e, p)), nil
}

// EndTemporaryAudit implements openapi.StrictServerInterface.
func (a *API) EndTemporaryAudit(ctx context.Context, r openapi.EndTemporaryAuditRequestObject) (openapi.EndTemporaryAuditResponseObject, error) {
	e, err := views.EntityOrNotFound(a.Catalog().Resource(r.Id))
	if err != nil {
		return nil, err
	}
	version := core.Value(r.Body.ResourceVersion)
	if len(version) > maxVersion {
		return nil, core.InvalidField("resourceVersion", message.FieldMaxCharacters(64))
	}
	p, err := a.Rollout.EndTemporaryAudit(core.RequestContext(ctx), core.Caller(ctx), e, r.Body.Reason, version)
	if err != nil {
		return nil, err
	}
	return openapi.EndTemporaryAudit200JSONResponse(a.resourceAfter(ctx, e, p)), nil
}

// resourceAfter returns the resource with its object as it was written, which the cache may not contain yet.
func (a *API) resourceAfter(ctx context.Context, e catalog.Entity, p *v1alpha1.ProtectedResource) openapi.Resource {
	c, who := a.Catalog(), core.Caller(ctx)
	out := a.Resource(c, who, e, nil)
	out.Protection = a.ProtectionFor(c, who, e, p)
	return out
}
