package portal

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/internal/portal/openapi"
)

// ListTickets implements openapi.StrictServerInterface. The cursor is the number of the last ticket of the page before.
func (a *api) ListTickets(ctx context.Context, r openapi.ListTicketsRequestObject) (openapi.ListTicketsResponseObject, error) {
	c := a.Catalog()
	n, err := pageSize(r.Params.Limit)
	if err != nil {
		return nil, err
	}
	who, err := a.Tickets.Actor(plain(ctx), actor(ctx))
	if err != nil {
		return nil, err
	}
	f := approval.Filter{Limit: n + 1, VisibleTo: approval.VisibleTo(c, who)}
	view := openapi.ListTicketsParamsViewMine
	if r.Params.View != nil {
		view = *r.Params.View
	}
	switch view {
	case openapi.ListTicketsParamsViewMine:
		f.Requester = who.ID
	case openapi.ListTicketsParamsViewApprovals:
		f.WaitsFor = &approval.Waits{Person: who.ID, StandsFor: who.StandsFor}
	case openapi.ListTicketsParamsViewDecided:
		f.DecidedBy = who.ID
	case openapi.ListTicketsParamsViewAll:
	default:
		return nil, problemf(http.StatusBadRequest, "invalid", "view must be one of mine, approvals, decided, all.")
	}
	if r.Params.State != nil {
		for _, s := range *r.Params.State {
			if !s.Valid() {
				return nil, problemf(http.StatusBadRequest, "invalid", "There is no ticket state %q.", string(s))
			}
			f.States = append(f.States, approval.State(s))
		}
	}
	if r.Params.Application != nil {
		f.Application = *r.Params.Application
	}
	if r.Params.Resource != nil {
		f.Resource = *r.Params.Resource
	}
	if r.Params.Cursor != nil {
		if f.After.Number, err = strconv.ParseInt(*r.Params.Cursor, 10, 64); err != nil || f.After.Number < 1 {
			return nil, problemf(http.StatusBadRequest, "invalid", "cursor is not one that a page before returned.")
		}
	}
	list, err := a.Tickets.Store.List(plain(ctx), f)
	if err != nil {
		return nil, err
	}
	out := openapi.ListTickets200JSONResponse{Items: make([]openapi.Ticket, 0, len(list))}
	if len(list) > n {
		list = list[:n]
		out.NextCursor = new(strconv.FormatInt(list[n-1].Number, 10))
	}
	for _, t := range list {
		v := a.ticketOf(c, who, t)
		v.Events = []openapi.Event{}
		out.Items = append(out.Items, v)
	}
	return out, nil
}

// CreateTicket implements openapi.StrictServerInterface.
func (a *api) CreateTicket(ctx context.Context, r openapi.CreateTicketRequestObject) (openapi.CreateTicketResponseObject, error) {
	req, err := request(r.Body)
	if err != nil {
		return nil, err
	}
	if k := r.Params.IdempotencyKey; k != nil {
		if len(*k) < 8 || len(*k) > 128 {
			return nil, problemf(http.StatusBadRequest, "invalid", "Idempotency-Key must have 8 to 128 characters.")
		}
		req.IdempotencyKey = *k
	}
	t, err := a.Tickets.Submit(plain(ctx), actor(ctx), req)
	if err != nil {
		return nil, a.hideDuplicate(ctx, err)
	}
	return openapi.CreateTicket201JSONResponse(a.ticketOf(a.Catalog(), actor(ctx), t)), nil
}

// hideDuplicate names the other ticket only to those who may see it.
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
	_, err := a.Tickets.Get(plain(ctx), actor(ctx), number)
	return err == nil
}

// PreviewTicket implements openapi.StrictServerInterface.
func (a *api) PreviewTicket(ctx context.Context, r openapi.PreviewTicketRequestObject) (openapi.PreviewTicketResponseObject, error) {
	req, err := request(r.Body)
	if err != nil {
		return nil, err
	}
	plan, err := a.Tickets.Plan(plain(ctx), actor(ctx), req)
	if err != nil {
		return nil, err
	}
	p := plan.Items[0]
	if p.Err != nil {
		return nil, p.Err
	}
	c := a.Catalog()
	snap, err := a.snapshot()
	if err != nil {
		return nil, err
	}
	var existing []policy.Grant
	for _, g := range snap.WhoCanReach(p.ResourceName, a.Now()) {
		if g.Subject == p.ApplicationName || g.Subject == "*" {
			existing = append(existing, g)
		}
	}
	access, err := a.accessOf(ctx, existing)
	if err != nil {
		return nil, err
	}
	out := openapi.TicketPreview{Steps: stepsOf(c, p.Steps), Existing: &access, Protection: protectionOf(a.Host.Protection(p.ResourceName)),
		Statement: statementYAML(previewTicket(p, a.Now()))}
	if p.Duplicate != 0 && a.visible(ctx, p.Duplicate) {
		out.Duplicate = new(approval.FormatID(p.Duplicate))
	}
	out.Denied24h = count(a.denials(ctx, audit.DeniedQuery{By: audit.BySubject, Subject: p.ApplicationName, Resource: p.ResourceName}), p.ApplicationName)
	return openapi.PreviewTicket200JSONResponse(out), nil
}

// previewTicket is what the request would be if it were approved now.
func previewTicket(p approval.PlanItem, now time.Time) *approval.Ticket {
	p.SID = "t-new-1"
	if p.Duration > 0 {
		p.ExpiresAt = now.Add(p.Duration).Truncate(time.Second)
	}
	return &approval.Ticket{Items: []approval.Item{p.Item}}
}

func request(b *openapi.NewTicket) (approval.Request, error) {
	if b == nil || len(b.Items) != 1 {
		return approval.Request{}, &problem{status: http.StatusUnprocessableEntity, code: "invalid", detail: "A ticket has one item.",
			fields: []approval.Field{{Path: "items", Code: "count", Message: "must have exactly one item"}}}
	}
	it := b.Items[0]
	if len(it.Actions) > 32 {
		return approval.Request{}, &problem{status: http.StatusUnprocessableEntity, code: "invalid", detail: "An item has at most 32 actions.",
			fields: []approval.Field{{Path: "items[0].actions", Code: "count", Message: "must have at most 32"}}}
	}
	r := approval.Request{Reason: b.Reason, Items: []approval.RequestItem{{Application: it.Application, Resource: it.Resource, Actions: it.Actions}}}
	if b.DurationSeconds != nil {
		const least, most = int64(approval.MinDuration / time.Second), int64(approval.MaxDuration / time.Second)
		// Looked at before it becomes a duration, which it may overflow.
		s := *b.DurationSeconds
		if s < least || s > most {
			return r, &problem{status: http.StatusUnprocessableEntity, code: "invalid", detail: "The duration must be between 5 minutes and 366 days.",
				fields: []approval.Field{{Path: "durationSeconds", Code: "range", Message: fmt.Sprintf("must be between %d and %d, or absent", least, most)}}}
		}
		r.Items[0].Duration = time.Duration(s) * time.Second
	}
	return r, nil
}

// GetTicket implements openapi.StrictServerInterface.
func (a *api) GetTicket(ctx context.Context, r openapi.GetTicketRequestObject) (openapi.GetTicketResponseObject, error) {
	n, ok := approval.ParseID(r.Id)
	if !ok {
		return nil, approval.NotFound()
	}
	t, err := a.Tickets.Get(plain(ctx), actor(ctx), n)
	if err != nil {
		return nil, err
	}
	return openapi.GetTicket200JSONResponse(a.ticketOf(a.Catalog(), actor(ctx), t)), nil
}

// DecideTicket implements openapi.StrictServerInterface.
func (a *api) DecideTicket(ctx context.Context, r openapi.DecideTicketRequestObject) (openapi.DecideTicketResponseObject, error) {
	n, ok := approval.ParseID(r.Id)
	if !ok {
		return nil, approval.NotFound()
	}
	if !r.Body.Decision.Valid() {
		return nil, problemf(http.StatusUnprocessableEntity, "invalid", "decision must be approve or reject.")
	}
	comment := ""
	if r.Body.Comment != nil {
		comment = *r.Body.Comment
	}
	if err := tooLong("comment", comment); err != nil {
		return nil, err
	}
	t, err := a.Tickets.Decide(plain(ctx), actor(ctx), n, approval.EveryItem, r.Body.Version, r.Body.Decision == openapi.NewDecisionDecisionApprove, comment)
	if err != nil {
		return nil, err
	}
	return openapi.DecideTicket200JSONResponse(a.ticketOf(a.Catalog(), actor(ctx), t)), nil
}

// WithdrawTicket implements openapi.StrictServerInterface.
func (a *api) WithdrawTicket(ctx context.Context, r openapi.WithdrawTicketRequestObject) (openapi.WithdrawTicketResponseObject, error) {
	t, err := a.withReason(ctx, r.Id, r.Body, a.Tickets.Withdraw)
	if err != nil {
		return nil, err
	}
	return openapi.WithdrawTicket200JSONResponse(a.ticketOf(a.Catalog(), actor(ctx), t)), nil
}

// RevokeTicket implements openapi.StrictServerInterface.
func (a *api) RevokeTicket(ctx context.Context, r openapi.RevokeTicketRequestObject) (openapi.RevokeTicketResponseObject, error) {
	t, err := a.withReason(ctx, r.Id, r.Body, func(ctx context.Context, who approval.Actor, n int64, reason string) (*approval.Ticket, error) {
		return a.Tickets.Revoke(ctx, who, n, approval.EveryItem, reason)
	})
	if err != nil {
		return nil, err
	}
	return openapi.RevokeTicket200JSONResponse(a.ticketOf(a.Catalog(), actor(ctx), t)), nil
}

func (a *api) withReason(ctx context.Context, id string, b *openapi.ReasonBody, do func(context.Context, approval.Actor, int64, string) (*approval.Ticket, error)) (*approval.Ticket, error) {
	n, ok := approval.ParseID(id)
	if !ok {
		return nil, approval.NotFound()
	}
	if err := tooLong("reason", b.Reason); err != nil {
		return nil, err
	}
	return do(plain(ctx), actor(ctx), n, b.Reason)
}

func tooLong(field, text string) error {
	if utf8.RuneCountInString(text) <= approval.MaxText {
		return nil
	}
	return &problem{status: http.StatusUnprocessableEntity, code: "invalid", detail: "The " + field + " is too long.",
		fields: []approval.Field{{Path: field, Code: "length", Message: fmt.Sprintf("must have at most %d characters", approval.MaxText)}}}
}
