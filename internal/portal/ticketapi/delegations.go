package ticketapi

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const listDelegations = "delegations"

// ListDelegations implements openapi.StrictServerInterface.
func (a *API) ListDelegations(ctx context.Context, r openapi.ListDelegationsRequestObject) (openapi.ListDelegationsResponseObject, error) {
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	who := core.Caller(ctx)
	if core.Value(r.Params.All) {
		if err := core.RequireGovernor(who); err != nil {
			return nil, err
		}
	}
	f := approval.DelegationFilter{Limit: n + 1}
	if f.Before, err = core.DecodeNumberCursor(listDelegations, r.Params.Cursor); err != nil {
		return nil, err
	}
	list, err := a.Tickets.Delegations(core.RequestContext(ctx), who, core.Value(r.Params.All), f)
	if err != nil {
		return nil, err
	}
	// The delegations that the person made come first, then those to the person, each newest first.
	slices.SortFunc(list, func(x, y approval.Delegation) int { return cmp.Compare(y.ID, x.ID) })
	out := openapi.ListDelegations200JSONResponse{Items: []openapi.Delegation{}}
	if len(list) > n {
		list = list[:n]
		out.NextCursor = core.EncodeNumberCursor(listDelegations, list[n-1].ID)
	}
	c := a.Catalog()
	for _, d := range list {
		out.Items = append(out.Items, a.delegationView(c, who, d))
	}
	return out, nil
}

func (a *API) delegationView(c *catalog.Catalog, who approval.Actor, d approval.Delegation) openapi.Delegation {
	now := a.Now()
	over := !d.EndedAt.IsZero() || !now.Before(d.End)
	return openapi.Delegation{Id: strconv.FormatInt(d.ID, 10), From: views.Person(c, d.From), To: views.Person(c, d.To), Start: d.Start.UTC(), End: d.End.UTC(),
		EndedAt: views.Time(d.EndedAt), Reason: core.Optional(d.Reason), Active: d.Active(now),
		CanEnd: !over && !who.Auditor && (who.Security || who.ID == d.From || who.ID == d.To)}
}

// CreateDelegation implements openapi.StrictServerInterface.
func (a *API) CreateDelegation(ctx context.Context, r openapi.CreateDelegationRequestObject) (openapi.CreateDelegationResponseObject, error) {
	d, err := a.Tickets.Delegate(core.RequestContext(ctx), core.Caller(ctx), r.Body.To, r.Body.Start, r.Body.End, core.Value(r.Body.Reason))
	if err != nil {
		return nil, err
	}
	return openapi.CreateDelegation201JSONResponse(a.delegationView(a.Catalog(), core.Caller(ctx), d)), nil
}

// EndDelegation implements openapi.StrictServerInterface.
func (a *API) EndDelegation(ctx context.Context, r openapi.EndDelegationRequestObject) (openapi.EndDelegationResponseObject, error) {
	id, err := strconv.ParseInt(r.Id, 10, 64)
	if err != nil || id < 1 {
		return nil, noDelegation()
	}
	_, err = a.Tickets.EndDelegation(core.RequestContext(ctx), core.Caller(ctx), id)
	if approval.CodeOf(err) == approval.CodeNotFound {
		return nil, noDelegation() // the same answer whether it exists or not
	}
	return openapi.EndDelegation204Response{}, err
}

func noDelegation() error {
	return &approval.Error{Code: approval.CodeNotFound, Message: message.DelegationNotFound()}
}
