package portal

import (
	"context"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// origins contains the tickets that statements may have come from, by number, and the caller.
type origins struct {
	who     approval.Actor
	tickets map[int64]*approval.Ticket
}

// originsOf reads the tickets of all statements in as few queries as possible.
func (a *api) originsOf(ctx context.Context, grants []policy.Grant) (origins, error) {
	var numbers []int64
	for _, g := range grants {
		if n, ok := ticketOf(g.Ref, g.Resource); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return origins{}, err
	}
	out := origins{who: who, tickets: map[int64]*approval.Ticket{}}
	for some := range slices.Chunk(slices.Compact(numbers), numbersAtOnce) {
		list, err := a.Tickets.Store.List(core.RequestContext(ctx), approval.Filter{Numbers: some})
		if err != nil {
			return origins{}, err
		}
		for _, t := range list {
			out.tickets[t.Number] = t
		}
	}
	return out, nil
}

// numbersAtOnce bounds the number of parameters of a query, as databases do.
const numbersAtOnce = 500

// accessOf returns the views of grants, each with its ticket and what the caller may do with it.
func (a *api) accessOf(grants []policy.Grant, from origins) []openapi.Access {
	c := a.Catalog()
	policies := map[string]*v1alpha1.AccessControlPolicy{} // many grants are in few policies
	out := make([]openapi.Access, 0, len(grants))
	for _, g := range grants {
		x := openapi.Access{Effect: openapi.AccessEffect(g.Effect), Subject: catalogRef(c, g.Subject), Resource: catalogRef(c, g.Resource),
			Actions: append([]string{}, g.Actions...), Policy: g.Ref.Policy, Sid: g.Ref.SID, Counting: g.Counting,
			Since: when(g.NotBefore), NotBefore: when(g.NotBefore), NotAfter: when(g.NotAfter)}
		p, looked := policies[g.Ref.Policy]
		if !looked {
			p, _ = a.Host.Cached(g.Ref.Policy)
			policies[g.Ref.Policy] = p
		}
		if p != nil {
			if u, ok := approval.Unit(p, g.Resource); ok {
				states := a.statesOf(&u)
				x.Clusters, x.Members = new(clustersOf(states)), countsOf(u.Counts(), len(states))
			}
		}
		n, _ := ticketOf(g.Ref, g.Resource)
		// Without a ticket, the policy is not the portal's and only has such a name. If the ticket did not ask for it, the statement has
		// another ticket's name, and to revoke that ticket would not end it.
		if t := from.tickets[n]; t != nil {
			if i := askedFor(t, g); i >= 0 {
				may := approval.MayDoItem(c, from.who, t, i)
				x.Ticket, x.TicketItem, x.TicketVisible, x.CanRevoke = new(t.ID()), &i, new(may.See), new(may.Revoke)
				if at := grantedAt(t, i); at.After(g.NotBefore) {
					x.Since = when(at)
				}
			}
		}
		out = append(out, x)
	}
	return out
}

// grantedAt returns when an item's access became effective, or was approved if it is not effective yet. It returns zero before both.
func grantedAt(t *approval.Ticket, item int) time.Time {
	var at time.Time
	for _, e := range t.Events {
		if e.Item != item {
			continue
		}
		switch e.Kind {
		case approval.EventApproved, approval.EventEffective:
			at = e.At
		}
	}
	return at
}

// askedFor returns the position of the item of a ticket that requested a grant, or -1 if there is none.
func askedFor(t *approval.Ticket, g policy.Grant) int {
	return slices.IndexFunc(t.Items, func(it approval.Item) bool {
		return it.SID == g.Ref.SID && it.ResourceName == g.Resource && it.ApplicationName == g.Subject
	})
}

// ticketOf returns the number of the ticket from the sid of a statement that the portal wrote.
func ticketOf(ref policy.Ref, resource string) (int64, bool) {
	if ref.Policy == "" || !policyOf(ref.Policy, resource) {
		return 0, false
	}
	return approval.TicketOfSID(ref.SID)
}

// policyOf reports whether a policy has the name of one of those that hold the portal's grants on a resource.
func policyOf(name, resource string) bool {
	base, _ := policy.SplitPolicyShard(name)
	return base == policy.PolicyNameFor(resource)
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}
