package gormstore

import (
	"context"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	"github.com/acp-io/acp/internal/message"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
)

// Delegate implements approval.DelegationStore.
func (s *Store) Delegate(ctx context.Context, d approval.Delegation) (approval.Delegation, error) {
	row := rowOfDelegation(d)
	row.ID = 0
	err := s.write(ctx, func(tx *gorm.DB) error {
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

// EndDelegation implements approval.DelegationStore.
func (s *Store) EndDelegation(ctx context.Context, id int64, change func(*approval.Delegation) error) (approval.Delegation, error) {
	var d approval.Delegation
	err := s.write(ctx, func(tx *gorm.DB) error {
		var row delegationRow
		if err := tx.First(&row, "id = ?", id).Error; err != nil {
			return err
		}
		d = row.delegation()
		if err := change(&d); err != nil {
			return err
		}
		res := tx.Model(&delegationRow{}).Where("id = ? AND ended_at = ?", id, row.EndedAt).
			Updates(map[string]any{"ended_at": micros(d.EndedAt), "ended_by": d.EndedBy})
		if res.Error != nil {
			return res.Error
		}
		if res.RowsAffected != 1 {
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
	err := s.readOne(ctx, func(tx *gorm.DB) error {
		q := tx.Order("id DESC")
		if f.From != "" {
			q = q.Where("from_person = ?", f.From)
		}
		if f.To != "" {
			q = q.Where("to_person = ?", f.To)
		}
		if !f.ActiveAt.IsZero() {
			at := micros(f.ActiveAt)
			q = q.Where("start_at <= ? AND end_at > ? AND (ended_at = 0 OR ended_at > ?)", at, at, at)
		}
		if f.Before > 0 {
			q = q.Where("id < ?", f.Before)
		}
		if f.Limit > 0 {
			q = q.Limit(f.Limit)
		}
		var rows []delegationRow
		if err := q.Find(&rows).Error; err != nil {
			return err
		}
		for _, r := range rows {
			out = append(out, r.delegation())
		}
		return nil
	})
	return out, err
}
