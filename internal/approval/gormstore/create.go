package gormstore

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/message"
)

// Create implements approval.TicketStore.
func (s *Store) Create(ctx context.Context, t *approval.Ticket) (stored *approval.Ticket, err error) {
	for range 2 {
		// Another replica may have used the idempotency key since it was searched for. The second attempt finds its ticket.
		if err = s.db.Write(ctx, func(tx *gorm.DB) (err error) {
			stored, err = create(tx, t)
			return err
		}); !errors.Is(err, database.ErrConflict) {
			break
		}
	}
	if err != nil {
		return nil, storeError(err)
	}
	stored.Stored()
	return stored, nil
}

// create inserts a ticket and returns it, or the ticket that an earlier attempt of the same request created.
func create(tx *gorm.DB, t *approval.Ticket) (*approval.Ticket, error) {
	if earlier, err := earlierTicket(tx, t); err != nil || earlier != nil {
		return earlier, err
	}
	number, err := nextNumber(tx)
	if err != nil {
		return nil, err
	}
	t.Numbered(number)
	r := rowOf(t)
	if err := tx.Create(&r).Error; err != nil {
		return nil, err
	}
	// The insertion of a claim waits for other transactions that insert the same one.
	all, err := insertClaims(tx, t)
	if err != nil {
		return nil, err
	}
	if !all {
		other, err := claimedByOther(tx, t)
		if err != nil {
			return nil, err
		}
		return nil, &approval.Error{Code: approval.CodeDuplicate, Ticket: other, Message: message.RequestDuplicate()}
	}
	if err := saveWords(tx, t); err != nil {
		return nil, err
	}
	return t, save(tx, t, nil)
}

// earlierTicket returns the ticket with the requester and the idempotency key of t, or nil if there is none.
func earlierTicket(tx *gorm.DB, t *approval.Ticket) (*approval.Ticket, error) {
	if t.IdempotencyKey == "" {
		return nil, nil
	}
	same, err := readTickets(tx, ticketQuery("requester = ? AND idempotency_key = ?", t.Requester, t.IdempotencyKey), "number")
	if err != nil || len(same) == 0 {
		return nil, err
	}
	return same[0], addEvents(tx, same, false)
}

// nextNumber returns the number of a new ticket. SQLite has one writer at a time, so no other transaction uses it.
func nextNumber(tx *gorm.DB) (int64, error) {
	query := "SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'tickets'"
	if tx.Name() != "sqlite" {
		query = "SELECT nextval(pg_get_serial_sequence('tickets', 'number'))"
	}
	return database.Number(tx, query)
}
