package portal

import (
	"context"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

const deniedWindow = 24 * time.Hour

// GetMe implements openapi.StrictServerInterface.
func (a *api) GetMe(ctx context.Context, _ openapi.GetMeRequestObject) (openapi.GetMeResponseObject, error) {
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
	me := openapi.Me{Person: personOf(c, who.ID), Roles: roles(c, who), Groups: append([]string{}, p.Groups...), PendingApprovals: counts[0],
		SessionExpiresAt: a.SessionDeadline(core.RequestContext(ctx)).UTC(), Demo: new(a.Demo)}
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
	chosen, err := a.preferences(ctx, who.ID)
	if err != nil {
		return nil, err
	}
	me.Unread = &unread
	if chosen.Language != "" {
		me.Language = new(openapi.MeLanguage(chosen.Language))
	}
	me.TimeZone = core.Optional(chosen.TimeZone)
	if all, err := a.policies(); err == nil && !who.Auditor {
		me.BreakGlass = new(mayBreakGlass(all, who.ID))
	}
	if since := a.Host.AwaySince(); !since.IsZero() {
		me.HostUnavailableSince = new(since.UTC())
	}
	if l, ok := c.Leader(who.ID); ok {
		me.Leader = new(personOf(c, l))
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

// mayInspect reports whether somebody may see the connections of an application or a resource.
func mayInspect(c *catalog.Catalog, who approval.Actor, e catalog.Entity) bool {
	return who.Security || who.Auditor || c.Owns(who.ID, e)
}

// denials returns the number of refused connections in the last day, or nil if the flow store cannot be read.
func (a *api) denials(ctx context.Context, q audit.DeniedQuery) map[string]int64 {
	q.Since = a.Now().Add(-deniedWindow)
	m, err := a.Flows.Denied(core.RequestContext(ctx), q)
	if err != nil {
		a.Log.Debug("denials are not known", "error", err)
		return nil
	}
	if m == nil {
		m = map[string]int64{}
	}
	return m
}

func count(m map[string]int64, name string) *int64 {
	if m == nil {
		return nil
	}
	return new(m[name])
}

// connections returns the connections of an application or a resource.
func (a *api) connections(ctx context.Context, q audit.ConnectionQuery, decisions *openapi.DecisionFilter, since *time.Time, keep func(audit.Connection) bool) (openapi.ConnectionList, error) {
	var err error
	if q.Since, q.Until, err = a.window(since, nil, deniedWindow); err != nil {
		return openapi.ConnectionList{}, err
	}
	if decisions != nil {
		for _, d := range *decisions {
			if !d.Valid() {
				return openapi.ConnectionList{}, core.NewProblem(http.StatusBadRequest, "invalid", message.CallParameterOneOf("decision", []string{"allowed", "denied", "default-denied", "audited", "unmanaged"}))
			}
			q.Decisions = append(q.Decisions, policy.Verdict(d))
		}
	}
	q.Limit = audit.MaxPage
	out := openapi.ConnectionList{Items: []openapi.Connection{}, Since: q.Since.UTC()}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), flowPatience)
	defer cancel()
	found, err := a.Flows.Connections(limited, q)
	if err != nil {
		a.Log.Debug("connections are not known", "error", err)
		return out, nil
	}
	out.Available = true
	c := a.Catalog()
	for _, f := range found.Items {
		if keep(f) {
			out.Items = append(out.Items, connectionOf(c, f))
		}
	}
	last, err := a.Flows.LastFlow(limited)
	if err != nil {
		a.Log.Debug("the newest flow is not known", "error", err)
		return out, nil
	}
	for _, at := range last {
		if out.LastFlow == nil || at.After(*out.LastFlow) {
			out.LastFlow = new(at.UTC())
		}
	}
	return out, nil
}

func everyConnection(audit.Connection) bool { return true }
