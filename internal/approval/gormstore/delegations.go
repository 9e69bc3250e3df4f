package gormstore

import (
	"context"
	"time"

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
	if err := ledgerstore.Append(tx, d.LedgerEntry()); err != nil {
		return err
	}
	return recordDelegationChange(tx)
}

// Delegations implements approval.DelegationStore. The active delegations to a person are cached, because each request to the
// portal reads those of its caller.
func (s *Store) Delegations(ctx context.Context, f approval.DelegationFilter) ([]approval.Delegation, error) {
	if f.To != "" && !f.ActiveAt.IsZero() && f == (approval.DelegationFilter{To: f.To, ActiveAt: f.ActiveAt}) {
		return s.activeDelegations(ctx, f.To, f.ActiveAt)
	}
	return s.delegations(ctx, f)
}

func (s *Store) delegations(ctx context.Context, f approval.DelegationFilter) ([]approval.Delegation, error) {
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

// given contains all delegations to a person, with the position of the changes at which they were read.
type given struct {
	all  []approval.Delegation
	mark mark
	till time.Time
}

// activeDelegations returns the delegations to a person that are active at an instant.
func (s *Store) activeDelegations(ctx context.Context, person string, at time.Time) ([]approval.Delegation, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	head := s.changes.now()
	v, _ := s.given.Get(person)
	g, ok := v.(*given)
	if now := time.Now(); !ok || s.changes.delegated(g.mark) || now.After(g.till) {
		all, err := s.delegations(ctx, approval.DelegationFilter{To: person})
		if err != nil {
			return nil, err
		}
		g = &given{all, head, now.Add(maxCacheAge)}
		s.given.Add(person, g)
	}
	var out []approval.Delegation
	for _, d := range g.all {
		if d.Active(instant(micros(at))) {
			out = append(out, d)
		}
	}
	return out, nil
}
