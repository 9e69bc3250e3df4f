package portal

import (
	"context"
	"net/http"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/message"
	"github.com/acp-io/acp/internal/portal/core"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// CreateTicket implements openapi.StrictServerInterface.
func (a *api) CreateTicket(ctx context.Context, r openapi.CreateTicketRequestObject) (openapi.CreateTicketResponseObject, error) {
	req, err := request(core.Caller(ctx), r.Body)
	if err != nil {
		return nil, err
	}
	if req.IdempotencyKey, err = core.IdempotencyKey(r.Params.IdempotencyKey); err != nil {
		return nil, err
	}
	t, err := a.Tickets.Submit(core.RequestContext(ctx), core.Caller(ctx), req)
	if err != nil {
		return nil, a.hideDuplicate(ctx, err)
	}
	v, err := a.ticketView(ctx, t)
	return openapi.CreateTicket201JSONResponse(v), err
}

// hideDuplicate removes the other ticket from an error for callers who may not see it.
func (a *api) hideDuplicate(ctx context.Context, err error) error {
	if approval.CodeOf(err) != approval.CodeDuplicate {
		return err
	}
	e := *asApproval(err)
	if !a.visible(ctx, e.Ticket) {
		e.Ticket = 0
	}
	return &e
}

func (a *api) visible(ctx context.Context, number int64) bool {
	_, err := a.Tickets.Get(core.RequestContext(ctx), core.Caller(ctx), number)
	return err == nil
}

// GetTicket implements openapi.StrictServerInterface.
func (a *api) GetTicket(ctx context.Context, r openapi.GetTicketRequestObject) (openapi.GetTicketResponseObject, error) {
	t, err := a.ticket(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	v, err := a.ticketView(ctx, t)
	return openapi.GetTicket200JSONResponse(v), err
}

// ticket returns a ticket that the caller may see, or an error.
func (a *api) ticket(ctx context.Context, id string) (*approval.Ticket, error) {
	n, ok := approval.ParseID(id)
	if !ok {
		return nil, approval.NotFound()
	}
	return a.Tickets.Get(core.RequestContext(ctx), core.Caller(ctx), n)
}

// DecideTicket implements openapi.StrictServerInterface.
func (a *api) DecideTicket(ctx context.Context, r openapi.DecideTicketRequestObject) (openapi.DecideTicketResponseObject, error) {
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
	t, err := a.Tickets.Decide(core.RequestContext(ctx), core.Caller(ctx), n, item, r.Body.Version, r.Body.Decision == openapi.NewDecisionDecisionApprove, comment)
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
func (a *api) WithdrawTicket(ctx context.Context, r openapi.WithdrawTicketRequestObject) (openapi.WithdrawTicketResponseObject, error) {
	n, err := a.reasoned(r.Id, r.Body)
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
func (a *api) RevokeTicket(ctx context.Context, r openapi.RevokeTicketRequestObject) (openapi.RevokeTicketResponseObject, error) {
	n, err := a.reasoned(r.Id, r.Body)
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

func (a *api) reasoned(id string, b *openapi.ReasonBody) (int64, error) {
	n, ok := approval.ParseID(id)
	if !ok {
		return 0, approval.NotFound()
	}
	return n, core.CheckTextLength("reason", b.Reason)
}

// CommentTicket implements openapi.StrictServerInterface.
func (a *api) CommentTicket(ctx context.Context, r openapi.CommentTicketRequestObject) (openapi.CommentTicketResponseObject, error) {
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
