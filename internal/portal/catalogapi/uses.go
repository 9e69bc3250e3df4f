package catalogapi

import (
	"context"
	"errors"
	"slices"
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
	e, err := a.InspectableApplication(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	// A statement may also be about other applications, whose connections are no use of this one.
	grants := snap.WhatCanReach(e.Name, a.Now())
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
	who, c := core.Caller(ctx), a.Catalog()
	e, err := views.EntityOrNotFound(c.Resource(r.Id))
	if err != nil {
		return nil, err
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	grants, filter := snap.WhoCanReach(e.Name, a.Now()), audit.Filter{Resources: []string{e.Name}}
	if !views.MayInspect(c, who, e) {
		grants = slices.DeleteFunc(grants, func(g policy.Grant) bool { return !views.OwnsApplication(c, who, g.Subject) })
		filter.Within = a.FlowScope(who)
	}
	ranges := map[string]bool{} // the sources of connections from addresses have no name
	for i := range grants {
		ranges[grants[i].Subject] = governance.KindOfSubject(snap, grants[i].Subject) == governance.CIDR
	}
	out, err := a.accessUses(ctx, grants, filter, func(g *policy.Grant, t *audit.Total) bool {
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
