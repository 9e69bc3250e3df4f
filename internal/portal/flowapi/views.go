package flowapi

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// connectionViews returns the views of connections, each with its statement, ticket and approvers.
func (a *API) connectionViews(ctx context.Context, found []audit.Connection) ([]openapi.Connection, error) {
	grants := make([]policy.Grant, 0, len(found))
	for _, f := range found {
		grants = append(grants, grantOf(f.Edge))
	}
	from, err := a.OriginsOf(ctx, grants)
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	out := make([]openapi.Connection, 0, len(found))
	for _, f := range found {
		x := views.Connection(c, f)
		x.Ticket = nil
		if t, i := from.Item(grantOf(f.Edge)); t != nil {
			x.Ticket = new(t.ID())
			may := approval.MayDoItem(c, from.Who, t, i).See
			x.TicketVisible = &may
			if people := approvers(t.Items[i]); may && len(people) > 0 {
				list := make([]openapi.Person, 0, len(people))
				for _, p := range people {
					list = append(list, views.Person(c, p))
				}
				x.Approvers = &list
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// grantOf returns the fields of an edge that identify the ticket of its statement.
func grantOf(e audit.Edge) policy.Grant {
	return policy.Grant{Ref: e.Statement, Subject: e.Subject, Resource: e.Resource}
}

// approvers returns the approvers of an item in the order of their votes, each once.
func approvers(it approval.Item) []string {
	var out []string
	for _, s := range it.Steps {
		for _, v := range s.Votes {
			if v.Approve && !slices.Contains(out, v.Person) {
				out = append(out, v.Person)
			}
		}
	}
	return out
}

// newestFlow returns the time of the newest flow of any member, or nil if there is none.
func (a *API) newestFlow(ctx context.Context) (*time.Time, error) {
	last, err := a.Flows.LastFlow(ctx)
	var newest *time.Time
	for _, at := range last {
		if newest == nil || at.After(*newest) {
			newest = new(at.UTC())
		}
	}
	return newest, err
}

func (a *API) rawFlowOf(f audit.Flow) openapi.RawFlow {
	x := views.Connection(a.Catalog(), audit.Connection{Edge: f.Edge, Count: f.Count})
	out := openapi.RawFlow{
		Time:               f.Time.UTC(),
		Node:               core.Optional(f.Node),
		Cluster:            x.Cluster,
		SourceCluster:      x.SourceCluster,
		Subject:            x.Subject,
		Resource:           x.Resource,
		SourceAddress:      address(f.SourceAddress),
		DestinationAddress: address(f.DestinationAddress),
		Port:               x.Port,
		Protocol:           x.Protocol,
		Action:             x.Action,
		Decision:           x.Decision,
		Verdict:            openapi.Verdict(f.Verdict),
		Disagrees:          x.Disagrees,
		Policy:             x.Policy,
		Sid:                x.Sid,
		Ticket:             x.Ticket,
		Reason:             core.OptionalMessage(message.Decode(f.Reason)),
		Count:              f.Count,
	}
	if f.SourcePort != 0 {
		out.SourcePort = new(int(f.SourcePort))
	}
	return out
}

func address(a netip.Addr) *string {
	if !a.IsValid() {
		return nil
	}
	return new(a.String())
}
