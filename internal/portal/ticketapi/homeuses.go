package ticketapi

import (
	"context"
	"slices"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/insight"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// endingAccess is an access of the home page that ends soon.
type endingAccess struct {
	*approval.Item
	// since is when the access was granted, or the beginning of the window if that is later.
	since time.Time
	use   openapi.ItemUse
}

// endingAccesses returns the accesses of tickets that end until an instant.
func endingAccesses(tickets []*approval.Ticket, until, earliest time.Time) []*endingAccess {
	var out []*endingAccess
	for _, t := range tickets {
		for i := range t.Items {
			it := &t.Items[i]
			if it.ExpiresAt.IsZero() || it.ExpiresAt.After(until) || !slices.Contains(granting, it.State) || it.ResourceName == "" {
				continue
			}
			since := it.Earlier.Since
			if since.IsZero() {
				since = it.GrantedAt
			}
			if since.Before(earliest) {
				since = earliest
			}
			out = append(out, &endingAccess{Item: it, since: since, use: openapi.ItemUse{Ticket: t.ID(), Item: i, State: openapi.UseStateUnknown}})
		}
	}
	return out
}

// expiringUses returns the last uses of the accesses that end soon, as the facts of a ticket have them: connections of the application to the
// resource by one of the actions. It returns nil if there are none, or if the flows cannot be read.
func (a *API) expiringUses(ctx context.Context, tickets []*approval.Ticket, until time.Time) *[]openapi.ItemUse {
	now := a.Now()
	list := endingAccesses(tickets, until, now.Add(-views.MaxWindow))
	if len(list) == 0 {
		return nil
	}
	if err := a.readEndingUses(ctx, list, now); err != nil {
		a.Log.Debug("the last uses of accesses that end could not be read", "error", err)
		return nil
	}
	out := make([]openapi.ItemUse, 0, len(list))
	for _, x := range list {
		out = append(out, x.use)
	}
	return &out
}

func (a *API) readEndingUses(ctx context.Context, list []*endingAccess, now time.Time) error {
	snap, err := a.Snapshot()
	if err != nil {
		return err
	}
	watch, err := a.Watch(ctx)
	if err != nil {
		return err
	}
	by := map[string][]*endingAccess{}
	var resources []string
	for _, x := range list {
		if by[x.ResourceName] == nil {
			resources = append(resources, x.ResourceName)
		}
		by[x.ResourceName] = append(by[x.ResourceName], x)
	}
	err = a.Flows.Totals(ctx, audit.Filter{Resources: resources, Since: now.Add(-views.MaxWindow), Until: now}, func(t audit.Total) error {
		for _, x := range by[t.Resource] {
			if t.Decision.LetsThrough() && x.covers(&t) && (x.use.LastUsed == nil || t.LastSeen.After(*x.use.LastUsed)) {
				x.use.State, x.use.LastUsed = openapi.UseStateUsed, new(t.LastSeen.UTC())
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fleet := insight.FleetOf(a.Host.Members())
	for _, x := range list {
		since := x.since
		if since.Before(watch.Since) {
			since = watch.Since
		}
		if x.use.LastUsed == nil && watch.ReliabilityOf(fleet, snap, x.ResourceName, since).Enough {
			x.use.State = openapi.UseStateUnused
		}
	}
	return nil
}

// covers reports whether a connection is a use of the access.
func (x *endingAccess) covers(t *audit.Total) bool {
	return (t.Subject == x.ApplicationName || hasName(t.OtherSubjects, x.ApplicationName)) && gives(x.Actions, t.Action) && !t.LastSeen.Before(x.since)
}
