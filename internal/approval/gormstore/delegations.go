package gormstore

import (
	"context"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/message"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
	"github.com/acp-io/acp/internal/sqlquery"
)

// Delegate implements approval.DelegationStore.
func (s *Store) Delegate(ctx context.Context, d approval.Delegation) (approval.Delegation, error) {
	row := rowOfDelegation(d)
	row.ID = 0
	err := s.write(ctx, func(tx *gorm.DB) error {
		if err := checkDelegation(tx, d); err != nil {
			return err
		}
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		if err := notifystore.EnqueueDelegation(tx, row.ID); err != nil {
			return err
		}
		return delegated(tx, row.delegation())
	})
	return row.delegation(), err
}

// checkDelegation checks a new delegation with those that have not ended. Transactions that add delegations of the same person, or to the same
// person, wait for each other. Each takes its locks in the same order, so that none of them wait in a circle.
func checkDelegation(tx *gorm.DB, d approval.Delegation) error {
	for _, name := range []string{"delegations made by " + d.From, "delegations to " + d.To} {
		if err := database.Lock(tx, name); err != nil {
			return err
		}
	}
	at := database.Micros(d.CreatedAt)
	var open []approval.Delegation
	for _, column := range []struct{ name, person string }{{"from_person", d.From}, {"to_person", d.To}} {
		rows, err := database.Select[delegationRow](tx, "SELECT * FROM delegations WHERE "+column.name+" = ? AND end_at > ? AND (ended_at = 0 OR ended_at > ?)",
			column.person, at, at)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if made := r.delegation(); column.name == "from_person" || made.From != d.From { // those of both are in the first answer
				open = append(open, made)
			}
		}
	}
	return approval.CheckDelegation(d, open)
}

// EndDelegation implements approval.DelegationStore.
func (s *Store) EndDelegation(ctx context.Context, id int64, change func(*approval.Delegation) error) (approval.Delegation, error) {
	var d approval.Delegation
	err := s.write(ctx, func(tx *gorm.DB) error {
		row, err := database.SelectOne[delegationRow](tx, "SELECT * FROM delegations WHERE id = ?", id)
		if err != nil {
			return err
		}
		if row == nil {
			return approval.NotFound()
		}
		d = row.delegation()
		if err := change(&d); err != nil {
			return err
		}
		n, err := database.Exec(
			tx,
			"UPDATE delegations SET ended_at = ?, ended_by = ? WHERE id = ? AND ended_at = ?",
			database.Micros(d.EndedAt),
			d.EndedBy,
			id,
			row.EndedAt,
		)
		if err != nil {
			return err
		}
		if n != 1 {
			return &approval.Error{Code: approval.CodeStale, Message: message.DelegationChangedMeanwhile()}
		}
		if err := notifystore.EnqueueDelegation(tx, id); err != nil {
			return err
		}
		return delegated(tx, d)
	})
	return d, err
}

func delegated(tx *gorm.DB, d approval.Delegation) error {
	return ledgerstore.Append(tx, d.LedgerEntry())
}

// Delegations implements approval.DelegationStore.
func (s *Store) Delegations(ctx context.Context, f approval.DelegationFilter) ([]approval.Delegation, error) {
	var out []approval.Delegation
	var c sqlquery.Conditions
	if f.From != "" {
		c.Add("from_person = ?", f.From)
	}
	if f.To != "" {
		c.Add("to_person = ?", f.To)
	}
	if !f.ActiveAt.IsZero() {
		at := database.Micros(f.ActiveAt)
		c.Add("start_at <= ? AND end_at > ? AND (ended_at = 0 OR ended_at > ?)", at, at, at)
	}
	if f.Before > 0 {
		c.Add("id < ?", f.Before)
	}
	text, args := "SELECT * FROM delegations"+c.Where()+" ORDER BY id DESC", c.Args()
	if f.Limit > 0 {
		text, args = text+" LIMIT ?", append(args, f.Limit)
	}
	err := s.readOne(ctx, func(tx *gorm.DB) error {
		rows, err := database.Select[delegationRow](tx, text, args...)
		for _, r := range rows {
			out = append(out, r.delegation())
		}
		return err
	})
	return out, err
}
