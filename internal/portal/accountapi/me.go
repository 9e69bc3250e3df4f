package accountapi

import (
	"context"
	"slices"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// GetMe implements openapi.StrictServerInterface.
func (a *API) GetMe(ctx context.Context, _ openapi.GetMeRequestObject) (openapi.GetMeResponseObject, error) {
	c := a.Catalog()
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	counts, err := a.Tickets.Store.Count(core.RequestContext(ctx), approval.Filter{WaitsFor: &approval.Waits{Person: who.ID, StandsFor: who.StandsFor}})
	if err != nil {
		return nil, err
	}
	p, _ := c.Person(who.ID)
	me := openapi.Me{Person: views.Person(c, who.ID), Roles: roles(c, who), Groups: append([]string{}, p.Groups...), PendingApprovals: counts[0],
		SessionExpiresAt: a.Server.SessionDeadline(core.RequestContext(ctx)).UTC(), Demo: new(a.Demo)}
	if who.Auditor {
		me.PendingApprovals = 0
	}
	if t := core.Token(core.GinContext(ctx)); t != nil {
		me.Token = new(true)
		me.SessionExpiresAt = t.ExpiresAt.UTC()
	} else if end := a.Now().Add(a.SessionIdle); end.Before(me.SessionExpiresAt) {
		me.SessionExpiresAt = end.UTC()
	}
	unread, err := a.Inbox.Unread(core.RequestContext(ctx), who.ID)
	if err != nil {
		return nil, err
	}
	preferences, err := a.Inbox.Preferences(core.RequestContext(ctx), who.ID)
	if err != nil {
		return nil, err
	}
	chosen := preferences[who.ID]
	me.Unread = &unread
	if chosen.Language != "" {
		me.Language = new(openapi.MeLanguage(chosen.Language))
	}
	me.TimeZone = core.Optional(chosen.TimeZone)
	if all, err := a.ApprovalPolicies(); err == nil && !who.Auditor {
		me.BreakGlass = new(mayBreakGlass(all, who.ID))
	}
	if all, err := a.Tickets.Organizations(); err == nil {
		var administered []string
		for _, o := range all.All() {
			if approval.Administers(c, who.ID, o) {
				administered = append(administered, o.Name)
			}
		}
		if len(administered) > 0 {
			me.Organizations = &administered
		}
	}
	if since := a.Host.AwaySince(); !since.IsZero() {
		me.HostUnavailableSince = new(since.UTC())
	}
	if l, ok := c.Leader(who.ID); ok {
		me.Leader = new(views.Person(c, l))
	}
	return openapi.GetMe200JSONResponse(me), nil
}

// roles returns the roles of a person by the catalog and by the claims of their login.
func roles(c *catalog.Catalog, who approval.Actor) []openapi.Role {
	out := []openapi.Role{}
	add := func(yes bool, r openapi.Role) {
		if yes {
			out = append(out, r)
		}
	}
	applications, resources := c.Owned(who.ID)
	add(!who.Auditor, openapi.RoleRequester)
	add(len(applications) > 0, openapi.RoleApplicationOwner)
	add(len(resources) > 0, openapi.RoleResourceOwner)
	add(c.Leads(who.ID), openapi.RoleLeader)
	add(who.Security, openapi.RoleSecurity)
	add(who.Auditor, openapi.RoleAuditor)
	return out
}

// mayBreakGlass reports whether some policy names the person.
func mayBreakGlass(all []*v1alpha1.ApprovalPolicy, person string) bool {
	return slices.ContainsFunc(all, func(p *v1alpha1.ApprovalPolicy) bool { return views.MayBreakGlass(p, person) })
}
