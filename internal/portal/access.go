package portal

import (
	"context"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// accessOf maps grants, with the ticket that each came from and what the caller may do with it.
func (a *api) accessOf(ctx context.Context, grants []policy.Grant) ([]openapi.Access, error) {
	who, c := actor(ctx), a.Catalog()
	out := make([]openapi.Access, 0, len(grants))
	for _, g := range grants {
		x := openapi.Access{Effect: openapi.AccessEffect(g.Effect), Subject: catalogRef(c, g.Subject), Resource: catalogRef(c, g.Resource),
			Actions: append([]string{}, g.Actions...), Policy: g.Ref.Policy, Sid: g.Ref.SID, Counting: g.Counting,
			Since: when(g.NotBefore), NotBefore: when(g.NotBefore), NotAfter: when(g.NotAfter)}
		if p, ok := a.Host.Cached(g.Ref.Policy); ok {
			if u, ok := approval.Unit(p, g.Resource); ok {
				x.Clusters = new(clustersOf(u.Clusters))
			}
		}
		if n, ok := ticketOf(g.Ref, g.Resource); ok {
			t, err := a.Tickets.Store.Get(plain(ctx), n)
			switch {
			case approval.CodeOf(err) == approval.CodeNotFound: // somebody else's policy that only looks like ours
			case err != nil:
				return nil, err
			case !askedFor(t, g): // a statement under another ticket's name: to revoke that ticket would not end it
			default:
				may := approval.MayDo(c, who, t)
				x.Ticket, x.TicketVisible, x.CanRevoke = new(t.ID()), new(may.See), new(may.Revoke)
				if at := grantedAt(t); at.After(g.NotBefore) {
					x.Since = when(at)
				}
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// grantedAt is when a ticket's access became effective, or was approved if it is not effective yet; zero before both.
func grantedAt(t *approval.Ticket) time.Time {
	var at time.Time
	for _, e := range t.Events {
		switch e.Kind {
		case approval.EventApproved, approval.EventEffective:
			at = e.At
		}
	}
	return at
}

// askedFor tells whether a grant is what a ticket asked for.
func askedFor(t *approval.Ticket, g policy.Grant) bool {
	return slices.ContainsFunc(t.Items, func(it approval.Item) bool {
		return it.SID == g.Ref.SID && it.ResourceName == g.Resource && it.ApplicationName == g.Subject
	})
}

// ticketOf reads the ticket from a statement that the portal wrote.
func ticketOf(ref policy.Ref, resource string) (int64, bool) {
	if ref.Policy == "" || ref.Policy != policy.PolicyNameFor(resource) {
		return 0, false
	}
	return approval.TicketOfSID(ref.SID)
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}
