package gormstore

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/message"
)

// Update implements approval.TicketStore.
func (s *Store) Update(ctx context.Context, number int64, change func(*approval.Ticket) error) (t *approval.Ticket, err error) {
	if err := s.write(ctx, func(tx *gorm.DB) (err error) {
		t, err = update(tx, number, change)
		return err
	}); err != nil {
		return nil, err
	}
	t.Stored()
	return t, nil
}

// update changes a ticket. It locks the ticket where the database has concurrent writers, and writes only if its version is the
// one that it has read.
func update(tx *gorm.DB, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	t, err := lockTicket(tx, number)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, approval.NotFound()
	}
	before, concerns, claimed := t.Version, t.Concerns(), t.Claims()
	if err := change(t); err != nil {
		return nil, err
	}
	if !t.Dirty() {
		return t, nil
	}
	// The columns of the request never change.
	n, err := database.Exec(
		tx,
		"UPDATE tickets SET state = ?, version = ?, updated_at = ? WHERE number = ? AND version = ?",
		t.State(),
		t.Version,
		database.Micros(t.UpdatedAt),
		number,
		before,
	)
	if err != nil {
		return nil, err
	}
	if n != 1 {
		return nil, &approval.Error{Code: approval.CodeStale, Message: message.DecideTicketChangedMeanwhile()}
	}
	if !slices.Equal(claimed, t.Claims()) {
		if err := replaceClaims(tx, t); err != nil {
			return nil, err
		}
	}
	return t, save(tx, t, concerns)
}

// replaceClaims replaces the claims of a ticket. A failed ticket that is retried does not get a claim that another ticket has taken
// meanwhile.
func replaceClaims(tx *gorm.DB, t *approval.Ticket) error {
	if _, err := database.Exec(tx, "DELETE FROM claims WHERE ticket = ?", t.Number); err != nil {
		return err
	}
	_, err := insertClaims(tx, t)
	return err
}
