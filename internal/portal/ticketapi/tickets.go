package ticketapi

import (
	"context"
	"net/http"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// CreateTicket implements openapi.StrictServerInterface.
func (a *API) CreateTicket(ctx context.Context, r openapi.CreateTicketRequestObject) (openapi.CreateTicketResponseObject, error) {
	req, err := a.request(core.Caller(ctx), r.Body)
	if err != nil {
		return nil, err
	}
	if req.IdempotencyKey, err = core.IdempotencyKey(r.Params.IdempotencyKey); err != nil {
		return nil, err
	}
	t, err := a.Tickets.Submit(core.RequestContext(ctx), core.Caller(ctx), req)
	if err != nil {
		return nil, a.HideDuplicate(ctx, err)
	}
	v, err := a.ticketView(ctx, t)
	return openapi.CreateTicket201JSONResponse(v), err
}

// GetTicket implements openapi.StrictServerInterface.
func (a *API) GetTicket(ctx context.Context, r openapi.GetTicketRequestObject) (openapi.GetTicketResponseObject, error) {
	t, err := a.Ticket(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	v, err := a.ticketView(ctx, t)
	return openapi.GetTicket200JSONResponse(v), err
}

// DecideTicket implements openapi.StrictServerInterface.
func (a *API) DecideTicket(ctx context.Context, r openapi.DecideTicketRequestObject) (openapi.DecideTicketResponseObject, error) {
	n, ok := approval.ParseID(r.Id)
	if !ok {
		return nil, approval.NotFound()
	}
	if !r.Body.Decision.Valid() {
		return nil, core.NewProblem(http.StatusUnprocessableEntity, "invalid", message.CallParameterOneOf("decision", []string{"approve", "reject"}))
	}
	comment := core.Value(r.Body.Comment)
	if err := core.CheckTextLength("comment", comment); err != nil {
		return nil, err
	}
	item, err := itemOf("item", r.Body.Item)
	if err != nil {
		return nil, err
	}
	t, err := a.Tickets.Decide(
		core.RequestContext(ctx),
		core.Caller(ctx),
		n,
		item,
		r.Body.Version,
		r.Body.Decision == openapi.NewDecisionDecisionApprove,
		comment,
	)
	if err != nil {
		return nil, err
	}
	v, err := a.ticketView(ctx, t)
	return openapi.DecideTicket200JSONResponse(v), err
}

// itemOf returns the position of the item of a request. If it is absent, the request is about every item.
func itemOf(path string, p *int) (int, error) {
	switch {
	case p == nil:
		return approval.EveryItem, nil
	case *p < 0:
		return 0, core.InvalidField(path, message.FieldItemPosition())
	}
	return *p, nil
}

// WithdrawTicket implements openapi.StrictServerInterface.
func (a *API) WithdrawTicket(ctx context.Context, r openapi.WithdrawTicketRequestObject) (openapi.WithdrawTicketResponseObject, error) {
	n, err := a.parseReasoned(r.Id, r.Body)
	if err != nil {
		return nil, err
	}
	if r.Body.Item != nil {
		return nil, core.InvalidField("item", message.FieldWithdrawnTogether())
	}
	t, err := a.Tickets.Withdraw(core.RequestContext(ctx), core.Caller(ctx), n, r.Body.Reason)
	if err != nil {
		return nil, err
	}
	v, err := a.ticketView(ctx, t)
	return openapi.WithdrawTicket200JSONResponse(v), err
}

// RevokeTicket implements openapi.StrictServerInterface.
func (a *API) RevokeTicket(ctx context.Context, r openapi.RevokeTicketRequestObject) (openapi.RevokeTicketResponseObject, error) {
	n, err := a.parseReasoned(r.Id, r.Body)
	if err != nil {
		return nil, err
	}
	item, err := itemOf("item", r.Body.Item)
	if err != nil {
		return nil, err
	}
	t, err := a.Tickets.Revoke(core.RequestContext(ctx), core.Caller(ctx), n, item, r.Body.Reason)
	if err != nil {
		return nil, err
	}
	v, err := a.ticketView(ctx, t)
	return openapi.RevokeTicket200JSONResponse(v), err
}

func (a *API) parseReasoned(id string, b *openapi.ReasonBody) (int64, error) {
	n, ok := approval.ParseID(id)
	if !ok {
		return 0, approval.NotFound()
	}
	return n, core.CheckTextLength("reason", b.Reason)
}

// CommentTicket implements openapi.StrictServerInterface.
func (a *API) CommentTicket(ctx context.Context, r openapi.CommentTicketRequestObject) (openapi.CommentTicketResponseObject, error) {
	n, ok := approval.ParseID(r.Id)
	if !ok {
		return nil, approval.NotFound()
	}
	if err := core.CheckTextLength("comment", r.Body.Comment); err != nil {
		return nil, err
	}
	t, err := a.Tickets.Comment(core.RequestContext(ctx), core.Caller(ctx), n, r.Body.Comment)
	if err != nil {
		return nil, err
	}
	v, err := a.ticketView(ctx, t)
	return openapi.CommentTicket200JSONResponse(v), err
}
