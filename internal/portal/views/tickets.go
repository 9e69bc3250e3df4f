package views

import (
	"context"
	"errors"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/portal/core"
)

// HideDuplicate removes the other ticket from an error for callers who may not see it.
func (d *Data) HideDuplicate(ctx context.Context, err error) error {
	if approval.CodeOf(err) != approval.CodeDuplicate {
		return err
	}
	e := *asApproval(err)
	if !d.TicketVisible(ctx, e.Ticket) {
		e.Ticket = 0
	}
	return &e
}

// TicketVisible reports whether the caller may see a ticket.
func (d *Data) TicketVisible(ctx context.Context, number int64) bool {
	_, err := d.Tickets.Get(core.RequestContext(ctx), core.Caller(ctx), number)
	return err == nil
}

// Ticket returns a ticket that the caller may see, or an error.
func (d *Data) Ticket(ctx context.Context, id string) (*approval.Ticket, error) {
	n, ok := approval.ParseID(id)
	if !ok {
		return nil, approval.NotFound()
	}
	return d.Tickets.Get(core.RequestContext(ctx), core.Caller(ctx), n)
}

func asApproval(err error) *approval.Error {
	var e *approval.Error
	errors.As(err, &e)
	return e
}
