package portal

import (
	"context"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/rollout"
)

// maxVersion is the maximum length of a resource version, in bytes.
const maxVersion = 64

// PutTemporaryAudit implements openapi.StrictServerInterface.
func (a *api) PutTemporaryAudit(ctx context.Context, r openapi.PutTemporaryAuditRequestObject) (openapi.PutTemporaryAuditResponseObject, error) {
	e, err := found(a.Catalog().Resource(r.Id))
	if err != nil {
		return nil, err
	}
	version := core.Value(r.Body.ResourceVersion)
	if len(version) > maxVersion {
		return nil, core.InvalidField("resourceVersion", message.FieldMaxCharacters(64))
	}
	p, err := a.Rollout.TemporaryAudit(core.RequestContext(ctx), core.Caller(ctx), e, rollout.Audit{Until: r.Body.Until, Reason: r.Body.Reason, Version: version})
	if err != nil {
		return nil, err
	}
	return openapi.PutTemporaryAudit200JSONResponse(a.toggled(ctx, e, p)), nil
}

// EndTemporaryAudit implements openapi.StrictServerInterface.
func (a *api) EndTemporaryAudit(ctx context.Context, r openapi.EndTemporaryAuditRequestObject) (openapi.EndTemporaryAuditResponseObject, error) {
	e, err := found(a.Catalog().Resource(r.Id))
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
	return openapi.EndTemporaryAudit200JSONResponse(a.toggled(ctx, e, p)), nil
}

// toggled returns the resource with its object as it was written, which the cache may not contain yet.
func (a *api) toggled(ctx context.Context, e catalog.Entity, p *v1alpha1.ProtectedResource) openapi.Resource {
	c, who := a.Catalog(), core.Caller(ctx)
	out := a.resourceOf(c, who, e, nil)
	out.Protection = a.protection(c, who, e, p)
	return out
}

// protection returns the protection of a resource with what the caller may do, or nil if it is not onboarded.
func (a *api) protection(c *catalog.Catalog, who approval.Actor, e catalog.Entity, p *v1alpha1.ProtectedResource) *openapi.Protection {
	out := protectionOf(p)
	if out == nil {
		return nil
	}
	out.CanToggle = new(rollout.May(c, who, e))
	out.ResourceVersion = core.Optional(p.ResourceVersion)
	out.TemporaryAudit = a.temporaryAudit(c, p)
	return out
}

func (a *api) temporaryAudit(c *catalog.Catalog, p *v1alpha1.ProtectedResource) *openapi.TemporaryAudit {
	t := p.Spec.TemporaryAudit
	if t == nil {
		return nil
	}
	return &openapi.TemporaryAudit{Until: t.Until.UTC(), Reason: t.Reason, By: personOf(c, t.By), Active: rollout.Active(p.Spec, a.Now()), Guard: new(t.By == rollout.GuardName)}
}
