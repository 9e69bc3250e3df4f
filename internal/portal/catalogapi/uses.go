package catalogapi

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
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
	// A statement may also be about other applications, so only the connections of this one are read.
	out, err := a.accessUses(ctx, grants, audit.Filter{Subjects: []string{e.Name}}, func(g *policy.Grant, t *audit.Total) bool {
		return governance.Covers(g.Resource, t.Resource)
	})
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
	ranges := map[string]bool{} // the sources of connections from addresses have no name
	for _, g := range x.grants {
		ranges[g.Subject] = governance.KindOfSubject(x.snapshot, g.Subject) == governance.CIDR
	}
	out, err := a.accessUses(ctx, x.grants, audit.Filter{Resources: []string{x.resource.Name}, Within: x.within}, func(g *policy.Grant, t *audit.Total) bool {
		if ranges[g.Subject] {
			return t.Subject == ""
		}
		return governance.Covers(g.Subject, t.Subject)
	})
	return openapi.ListResourceAccessUses200JSONResponse(out), err
}

// accessUses returns when the statements of grants last decided about a connection of a filter that `uses` assigns to the grant.
func (a *API) accessUses(
	ctx context.Context,
	grants []policy.Grant,
	filter audit.Filter,
	uses func(*policy.Grant, *audit.Total) bool,
) (openapi.AccessUseList, error) {
	now := a.Now()
	filter.Since, filter.Until = now.Add(-views.LastUseWindow), now
	out := openapi.AccessUseList{Items: []openapi.AccessUse{}, Since: filter.Since.UTC()}
	if len(grants) == 0 {
		out.Available = true
		return out, nil
	}
	by := map[policy.Ref][]int{}
	for i := range grants {
		by[grants[i].Ref] = append(by[grants[i].Ref], i)
	}
	last := make([]time.Time, len(grants))
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	err := a.Flows.Totals(limited, filter, func(t audit.Total) error {
		for _, i := range by[t.Statement] {
			if t.LastSeen.After(last[i]) && uses(&grants[i], &t) {
				last[i] = t.LastSeen
			}
		}
		return nil
	})
	if err != nil {
		if !errors.Is(err, audit.ErrUnavailable) {
			a.Log.Debug("the last uses of statements could not be read", "error", err)
		}
		return out, nil
	}
	out.Available = true
	for i := range grants {
		if g := &grants[i]; !last[i].IsZero() {
			out.Items = append(out.Items, openapi.AccessUse{Policy: g.Ref.Policy, Sid: g.Ref.SID, Subject: g.Subject, Resource: g.Resource,
				LastUsed: last[i].UTC()})
		}
	}
	return out, nil
}
