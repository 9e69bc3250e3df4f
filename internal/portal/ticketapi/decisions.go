package ticketapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// DecideMany implements openapi.StrictServerInterface.
func (a *API) DecideMany(ctx context.Context, r openapi.DecideManyRequestObject) (openapi.DecideManyResponseObject, error) {
	if !r.Body.Decision.Valid() {
		return nil, core.NewProblem(http.StatusUnprocessableEntity, "invalid", message.CallParameterOneOf("decision", []string{"approve", "reject"}))
	}
	comment := core.Value(r.Body.Comment)
	if err := core.CheckTextLength("comment", comment); err != nil {
		return nil, err
	}
	if n := len(r.Body.Items); n < 1 || n > approval.MaxChoices {
		return nil, core.InvalidField("items", message.FieldCount(approval.MaxChoices))
	}
	choices := make([]approval.Choice, 0, len(r.Body.Items))
	for i, it := range r.Body.Items {
		n, ok := approval.ParseID(it.Ticket)
		if !ok {
			return nil, core.InvalidField(fmt.Sprintf("items[%d].ticket", i), message.FieldTicketID())
		}
		item, err := itemOf(fmt.Sprintf("items[%d].item", i), it.Item)
		if err != nil {
			return nil, err
		}
		choices = append(choices, approval.Choice{Ticket: n, Item: item, Version: it.Version})
	}
	// If the response came too late for the connection, a browser would send the request again, and get the error that every ticket has changed.
	if err := core.ExtendWriteDeadline(ctx, core.BulkTimeout); err != nil {
		return nil, err
	}
	results, err := a.Tickets.DecideMany(core.RequestContext(ctx), core.Caller(ctx), choices, r.Body.Decision == openapi.BulkDecisionDecisionApprove, comment)
	if err != nil {
		return nil, err
	}
	var out openapi.DecideMany200JSONResponse
	out.Items = make([]struct {
		Item    *int                 `json:"item,omitempty"`
		Ok      bool                 `json:"ok"`
		Problem *openapi.Problem     `json:"problem,omitempty"`
		State   *openapi.TicketState `json:"state,omitempty"`
		Ticket  string               `json:"ticket"`
	}, len(results))
	for i, x := range results {
		o := &out.Items[i]
		o.Ticket, o.Item, o.Ok = approval.FormatID(x.Ticket), r.Body.Items[i].Item, x.Err == nil
		if x.Err != nil {
			o.Problem = new(a.Server.ProblemOf(core.GinContext(ctx), x.Err))
		} else {
			o.State = new(openapi.TicketState(x.State.State()))
		}
	}
	return out, nil
}

// ReviewTicket implements openapi.StrictServerInterface.
func (a *API) ReviewTicket(ctx context.Context, r openapi.ReviewTicketRequestObject) (openapi.ReviewTicketResponseObject, error) {
	t, err := a.Ticket(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	comment := core.Value(r.Body.Comment)
	if err := core.CheckTextLength("comment", comment); err != nil {
		return nil, err
	}
	items := []int{core.Value(r.Body.Item)}
	if r.Body.Item == nil {
		items = items[:0]
		for i := range t.Items {
			if t.Items[i].Reviewing() {
				items = append(items, i)
			}
		}
	}
	if len(items) == 0 {
		return nil, &approval.Error{Code: approval.CodeConflict, Message: message.ReviewNothing()}
	}
	for _, i := range items {
		if t, err = a.Tickets.Review(core.RequestContext(ctx), core.Caller(ctx), t.Number, i, r.Body.Confirm, comment); err != nil {
			return nil, err
		}
	}
	v, err := a.ticketView(ctx, t)
	return openapi.ReviewTicket200JSONResponse(v), err
}

// WhatIf implements openapi.StrictServerInterface.
func (a *API) WhatIf(ctx context.Context, r openapi.WhatIfRequestObject) (openapi.WhatIfResponseObject, error) {
	req, err := a.request(core.Caller(ctx), &r.Body.Request)
	if err != nil {
		return nil, err
	}
	who, as := core.Caller(ctx), core.Value(r.Body.As)
	var plan approval.Plan
	if as == "" || as == who.ID {
		as = who.ID
		plan, err = a.Tickets.Plan(core.RequestContext(ctx), who, req)
	} else {
		plan, err = a.Tickets.WhatIf(core.RequestContext(ctx), who, req, as)
	}
	if err != nil {
		return nil, err
	}
	out, err := a.preview(ctx, plan, as)
	return openapi.WhatIf200JSONResponse(out), err
}
