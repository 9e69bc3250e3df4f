package ticketapi

import (
	"context"
	"errors"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/catalog"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

// factsReader reads the facts about the items of a ticket for one caller: storedFacts from the catalog, the policies and other tickets, and
// observedFacts from flows. It does not change while it reads, so that the facts of a page are about the same policies and the same time. What a
// caller may see of an item is decided by factRightsOf before its facts are read.
type factsReader struct {
	api    *API
	ticket *approval.Ticket
	caller approval.Actor
	// catalog and snap are the catalog and the policies at the time of the request.
	catalog *catalog.Catalog
	snap    *policy.Snapshot
	// since and until bound the window of the flows. until is the time of the request.
	since, until time.Time
}

// newFactsReader returns a reader for the caller of a request, or an error if the caller may see no facts of the ticket.
func (a *API) newFactsReader(ctx context.Context, t *approval.Ticket) (*factsReader, error) {
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	if !seesFacts(c, who, t) {
		return nil, &approval.Error{Code: approval.CodeForbidden, Message: message.AccessTicketFacts()}
	}
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	now := a.Now().UTC()
	return &factsReader{api: a, ticket: t, caller: who, catalog: c, snap: snap, since: now.Add(-a.EvidenceWindow), until: now}, nil
}

// facts returns the facts about the items from start up to, but not including, end. If the flows cannot be read, it returns the other facts, and
// says why.
func (fr *factsReader) facts(ctx context.Context, start, end int) (openapi.TicketFacts, error) {
	out := openapi.TicketFacts{Items: []openapi.ItemFacts{}, Since: fr.since, Until: fr.until}
	page := make([]*factItem, 0, end-start)
	for i := start; i < end; i++ {
		f := &factItem{Item: &fr.ticket.Items[i], kind: fr.ticket.Kind, rights: factRightsOf(fr.catalog, fr.caller, fr.ticket, i),
			out: openapi.ItemFacts{Position: i}}
		if err := fr.storedFacts(ctx, f); err != nil {
			return out, err
		}
		page = append(page, f)
	}
	limited, cancel := context.WithTimeout(core.RequestContext(ctx), views.FlowTimeout)
	defer cancel()
	err := fr.observedFacts(limited, page)
	out.FlowsAvailable = err == nil
	switch {
	case err == nil:
	case errors.Is(err, audit.ErrUnavailable):
		out.Message = new(message.FlowsUnavailable())
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		out.Message = new(message.ImpactReplayTooSlow())
	default:
		return out, err
	}
	for _, f := range page {
		if err != nil {
			f.dropObserved()
		}
		out.Items = append(out.Items, f.out)
	}
	return out, nil
}
