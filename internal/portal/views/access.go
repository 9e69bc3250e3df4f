package views

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/governance"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// Origins contains the tickets that statements may have come from, by number, and the caller.
type Origins struct {
	Who     approval.Actor
	tickets map[int64]*approval.Ticket
}

// OriginsOf reads the tickets of all statements in as few queries as possible.
func (d *Data) OriginsOf(ctx context.Context, grants []policy.Grant) (Origins, error) {
	var numbers []int64
	for _, g := range grants {
		if n, ok := ticketNumber(g.Ref, g.Resource); ok {
			numbers = append(numbers, n)
		}
	}
	who, err := d.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return Origins{}, err
	}
	tickets, err := d.ticketsByNumber(ctx, approval.Filter{OmitComments: true}, numbers)
	return Origins{Who: who, tickets: tickets}, err
}

// RevocationsOf returns the tickets under way that request the revocation of grants. A grant without such a ticket is missing.
func (d *Data) RevocationsOf(ctx context.Context, grants []approval.Target) (map[approval.Target]*approval.Ticket, error) {
	out := map[approval.Target]*approval.Ticket{}
	if len(grants) == 0 {
		return out, nil
	}
	claims := make([]approval.Claim, 0, len(grants))
	for _, g := range grants {
		claims = append(claims, approval.RevocationClaim(g))
	}
	holders, err := d.Tickets.Store.Claimants(core.RequestContext(ctx), claims)
	if err != nil {
		return nil, err
	}
	tickets, err := d.ticketsByNumber(ctx, approval.Filter{OmitEvents: true}, slices.Collect(maps.Values(holders)))
	if err != nil {
		return nil, err
	}
	for i, g := range grants {
		if t := tickets[holders[claims[i]]]; t != nil {
			out[g] = t
		}
	}
	return out, nil
}

// ticketsByNumber reads tickets in as few queries as possible. It sorts the numbers.
func (d *Data) ticketsByNumber(ctx context.Context, f approval.Filter, numbers []int64) (map[int64]*approval.Ticket, error) {
	out := map[int64]*approval.Ticket{}
	slices.Sort(numbers)
	for part := range slices.Chunk(slices.Compact(numbers), numbersPerQuery) {
		f.Numbers = part
		list, err := d.Tickets.Store.List(core.RequestContext(ctx), f)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			out[t.Number] = t
		}
	}
	return out, nil
}

// numbersPerQuery bounds the number of parameters of a query, as databases do.
const numbersPerQuery = 500

// AccessOf returns the views of grants, each with its ticket and what the caller may do with it.
func (d *Data) AccessOf(grants []policy.Grant, from Origins) []openapi.Access {
	c := d.Catalog()
	policies := map[string]*v1alpha1.AccessControlPolicy{} // many grants are in few policies
	out := make([]openapi.Access, 0, len(grants))
	for _, g := range grants {
		x := openapi.Access{Effect: openapi.AccessEffect(g.Effect), Subject: Ref(c, g.Subject), Resource: Ref(c, g.Resource),
			Actions: append([]string{}, g.Actions...), Policy: g.Ref.Policy, Sid: g.Ref.SID, Counting: g.Counting,
			Since: Time(g.NotBefore), NotBefore: Time(g.NotBefore), NotAfter: Time(g.NotAfter),
			Hours: Hours(g.Hours)}
		p, cached := policies[g.Ref.Policy]
		if !cached {
			p, _ = d.Host.Cached(g.Ref.Policy)
			policies[g.Ref.Policy] = p
		}
		if p != nil {
			if u, ok := approval.Unit(p, g.Resource); ok {
				states := d.MemberStates(&u)
				x.Clusters, x.Members = new(ClusterStates(states)), MemberCounts(u.Counts(), len(states))
			}
		}
		// Without a ticket, the policy is not the portal's and only has such a name. If the ticket did not ask for it, the statement has
		// another ticket's name, and to revoke that ticket would not end it.
		if t, i := from.Item(g); t != nil {
			may := approval.MayDoItem(c, from.Who, t, i)
			x.Ticket, x.TicketItem, x.TicketVisible, x.CanRevoke = new(t.ID()), &i, new(may.See), new(may.Revoke)
			if may.See {
				x.Reason = core.Optional(t.Reason)
			}
			if at := GrantedAt(t, i); at.After(g.NotBefore) {
				x.Since = Time(at)
			}
		}
		out = append(out, x)
	}
	return out
}

// Reason returns the ticket of a grant, whether the caller may see it, and its reason if they may; all are nil without a ticket.
func (o Origins) Reason(c *catalog.Catalog, g policy.Grant) (ticket *string, visible *bool, reason *string) {
	t, i := o.Item(g)
	if t == nil {
		return nil, nil, nil
	}
	sees := approval.MayDoItem(c, o.Who, t, i).See
	if sees {
		reason = core.Optional(t.Reason)
	}
	return new(t.ID()), &sees, reason
}

// GrantedAt returns when an item's access became effective, or was approved if it is not effective yet. It returns zero before both.
func GrantedAt(t *approval.Ticket, item int) time.Time {
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

// itemOf returns the position of the item of a ticket that requested a grant, or -1 if there is none.
func itemOf(t *approval.Ticket, g policy.Grant) int {
	return slices.IndexFunc(t.Items, func(it approval.Item) bool {
		switch {
		case it.SID != g.Ref.SID:
			return false
		case it.Scope != nil:
			return scopeCovers(it.Scope, g)
		}
		return it.ResourceName == g.Resource && it.ApplicationName == g.Subject
	})
}

// scopeCovers reports whether a ticket's statement is about a grant, whose names are as written or those of a connection. The source of a
// connection from outside the fleet has no name; only an address range, or anyone, covers it.
func scopeCovers(s *approval.StatementScope, g policy.Grant) bool {
	if base, _ := policy.SplitPolicyShard(g.Ref.Policy); base != policy.StatementsPolicy {
		return false
	}
	covers := func(written, name string) bool { return written == name || governance.Covers(written, name) }
	return slices.ContainsFunc(s.Resources, func(written string) bool { return covers(written, g.Resource) }) &&
		slices.ContainsFunc(s.Subjects, func(written string) bool {
			if n, err := policy.ParseName(written); err == nil && n.IsPrefix() && g.Subject == "" {
				return true
			}
			return covers(written, g.Subject)
		})
}

// ticketNumber returns the number of the ticket from the sid of a statement that the portal wrote.
func ticketNumber(ref policy.Ref, resource string) (int64, bool) {
	if ref.Policy == "" || !isPolicyOf(ref.Policy, resource) {
		return 0, false
	}
	return approval.TicketOfSID(ref.SID)
}

// isPolicyOf reports whether a policy has the name of one of those that hold the portal's grants on a resource.
func isPolicyOf(name, resource string) bool {
	base, _ := policy.SplitPolicyShard(name)
	return base == policy.PolicyNameFor(resource) || base == policy.StatementsPolicy
}

// Time returns a pointer to a time in UTC, or nil if it is zero.
func Time(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// Item returns the item of the ticket of a grant, or nil if there is none.
func (o Origins) Item(g policy.Grant) (*approval.Ticket, int) {
	n, _ := ticketNumber(g.Ref, g.Resource)
	t := o.tickets[n]
	if t == nil {
		return nil, 0
	}
	i := itemOf(t, g)
	if i < 0 {
		return nil, 0
	}
	return t, i
}
