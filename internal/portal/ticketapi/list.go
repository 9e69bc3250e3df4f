package ticketapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
	"github.com/acp-io/acp/internal/portal/views"
)

const listTickets = "tickets"

// granting contains the states in which an item gives access, or is about to.
var granting = []approval.State{approval.StateApproved, approval.StateApplying, approval.StateEffective, approval.StateFailed}

// ListTickets implements openapi.StrictServerInterface.
func (a *API) ListTickets(ctx context.Context, r openapi.ListTicketsRequestObject) (openapi.ListTicketsResponseObject, error) {
	n, err := core.PageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	who, err := a.Tickets.Actor(core.RequestContext(ctx), core.Caller(ctx))
	if err != nil {
		return nil, err
	}
	c := a.Catalog()
	f, err := a.ticketFilter(r.Params, who)
	if err != nil {
		return nil, err
	}
	if core.Value(r.Params.View) == openapi.ListTicketsParamsViewOwned {
		owned, _ := c.Owned(who.ID)
		if len(owned) == 0 { // no names would mean all
			return openapi.ListTickets200JSONResponse{Items: []openapi.Ticket{}}, nil
		}
		f.Applications = views.Names(owned)
	}
	sort, err := core.ParseSort(r.Params.Sort, ticketOrders...)
	if err != nil {
		return nil, err
	}
	f.ByUpdate, f.Oldest = sort.Column == "updated", !sort.Descending
	if f.After, err = decodeTicketCursor(sort, r.Params.Cursor); err != nil {
		return nil, err
	}
	if f.VisibleTo, err = a.Tickets.VisibleTo(core.RequestContext(ctx), who); err != nil {
		return nil, err
	}
	f.Limit, f.OmitEvents = n+1, true
	list, err := a.Tickets.Store.List(core.RequestContext(ctx), f)
	if err != nil {
		return nil, err
	}
	var next *string
	if len(list) > n {
		list = list[:n]
		next = encodeTicketCursor(sort, list[n-1])
	}
	out := openapi.ListTickets200JSONResponse{Items: make([]openapi.Ticket, 0, len(list)), NextCursor: next}
	for _, t := range list {
		out.Items = append(out.Items, a.ticketRow(c, who, t))
	}
	return out, nil
}

func (a *API) ticketFilter(p openapi.ListTicketsParams, who approval.Actor) (f approval.Filter, err error) {
	view := openapi.ListTicketsParamsViewMine
	if p.View != nil {
		view = *p.View
	}
	switch view {
	case openapi.ListTicketsParamsViewMine:
		f.Requester = who.ID
	case openapi.ListTicketsParamsViewApprovals:
		f = waiting(who)
	case openapi.ListTicketsParamsViewReview:
		f = reviewing(who)
	case openapi.ListTicketsParamsViewDecided:
		f.DecidedBy = who.ID
	case openapi.ListTicketsParamsViewOwned, openapi.ListTicketsParamsViewAll: // ListTickets adds the applications
	default:
		return f, core.NewProblem(
			http.StatusBadRequest,
			"invalid",
			message.CallParameterOneOf("view", []string{"mine", "approvals", "decided", "review", "owned", "all"}),
		)
	}
	for _, s := range core.Value(p.State) {
		if !s.Valid() {
			return f, core.NewProblem(http.StatusBadRequest, "invalid", message.ListUnknownTicketState())
		}
		f.States = append(f.States, approval.State(s))
	}
	for _, k := range core.Value(p.Kind) {
		if !k.Valid() {
			return f, core.NewProblem(http.StatusBadRequest, "invalid", message.ListUnknownTicketKind())
		}
		f.Kinds = append(f.Kinds, approval.Kind(k))
	}
	if p.Requester != nil {
		if f.Requester != "" && f.Requester != *p.Requester {
			return f, core.NewProblem(http.StatusBadRequest, "invalid", message.ListMineIsYours())
		}
		f.Requester = *p.Requester
	}
	if s := p.ExpiringWithinSeconds; s != nil {
		if *s < 1 || *s > int64(approval.MaxDuration/time.Second) {
			return f, core.NewProblem(http.StatusBadRequest, "invalid", message.CallParameterRange("expiringWithinSeconds", 1, 366*24*60*60))
		}
		f.ExpiresBy, f.ItemStates = a.Now().Add(time.Duration(*s)*time.Second), granting
	}
	f.Application, f.Resource = core.Value(p.Application), core.Value(p.Resource)
	if q := core.Value(p.Q); q != "" {
		if n, ok := approval.ParseID(q); ok {
			f.Numbers = []int64{n}
		} else {
			f.Text = q
		}
	}
	return f, nil
}

// ticketOrders are the orders of a list of tickets. Other columns have no index that would give a page in their order.
var ticketOrders = []string{"-created", "created", "-updated", "updated"}

// encodeTicketCursor returns the cursor after a ticket. In lists by update it begins with the last change in microseconds.
func encodeTicketCursor(sort core.Sort, t *approval.Ticket) *string {
	if sort.Column == "updated" {
		return core.EncodeCursor(sort.List(listTickets), fmt.Sprintf("%d %d", t.UpdatedAt.UnixMicro(), t.Number))
	}
	return core.EncodeNumberCursor(sort.List(listTickets), t.Number)
}

// decodeTicketCursor returns the position in a cursor of encodeTicketCursor.
func decodeTicketCursor(sort core.Sort, cursor *string) (at approval.Cursor, err error) {
	if sort.Column != "updated" {
		at.Number, err = core.DecodeNumberCursor(sort.List(listTickets), cursor)
		return at, err
	}
	place, err := core.DecodeCursor(sort.List(listTickets), cursor)
	if place == "" || err != nil {
		return at, err
	}
	var updated int64
	if n, err := fmt.Sscanf(place, "%d %d", &updated, &at.Number); err != nil || n != 2 || place != fmt.Sprintf("%d %d", updated, at.Number) || at.Number < 1 {
		return at, core.InvalidCursor()
	}
	at.UpdatedAt = time.UnixMicro(updated).UTC()
	return at, nil
}

// waiting is the filter of items that a person has to decide, and reviewing that of items that they have to review afterwards.
func waiting(who approval.Actor) approval.Filter {
	return approval.Filter{WaitsFor: &approval.Waits{Person: who.ID, StandsFor: who.StandsFor}, ItemStates: []approval.State{approval.StatePending}}
}

func reviewing(who approval.Actor) approval.Filter {
	return approval.Filter{WaitsFor: &approval.Waits{Person: who.ID, StandsFor: who.StandsFor}, ItemStates: granting}
}
