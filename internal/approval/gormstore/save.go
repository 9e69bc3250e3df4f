package gormstore

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/approval"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
)

// Create implements approval.Store.
func (s *Store) Create(ctx context.Context, t *approval.Ticket) (*approval.Ticket, error) {
	stored := t
	err := s.write(ctx, func(tx *gorm.DB) error {
		if t.IdempotencyKey != "" {
			var same []ticketRow
			if err := tx.Where("requester = ? AND idempotency_key = ?", t.Requester, t.IdempotencyKey).Find(&same).Error; err != nil {
				return err
			}
			if len(same) > 0 {
				var err error
				stored, err = load(tx, same[0].Number)
				return err
			}
		}
		other, err := claimedBy(tx, t.Claims())
		if err != nil {
			return err
		}
		if other != 0 {
			return &approval.Error{Code: approval.CodeDuplicate, Ticket: other, Detail: "A ticket under way already asks for this access."}
		}
		row := rowOf(t)
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		t.Numbered(row.Number)
		return saveParts(tx, t)
	})
	if err != nil {
		return nil, err
	}
	stored.Stored()
	return stored, nil
}

// Update implements approval.Store.
func (s *Store) Update(ctx context.Context, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	var t *approval.Ticket
	err := s.write(ctx, func(tx *gorm.DB) (err error) {
		t, err = update(tx, number, change)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.Stored()
	return t, nil
}

// update writes only onto the version that it read, so that it stays right on a database with many writers.
func update(tx *gorm.DB, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	t, err := load(tx, number)
	if err != nil {
		return nil, err
	}
	before := t.Version
	if err := change(t); err != nil {
		return nil, err
	}
	if !t.Dirty() {
		return t, nil
	}
	row := rowOf(t)
	res := tx.Model(&ticketRow{}).Where("number = ? AND version = ?", number, before).Select("*").Omit("number").Updates(&row)
	if res.Error != nil {
		return nil, res.Error
	}
	if res.RowsAffected != 1 {
		return nil, &approval.Error{Code: approval.CodeStale, Detail: "The ticket changed meanwhile: look again, then decide."}
	}
	return t, saveParts(tx, t)
}

// saveParts writes what may differ after any transition: items, new events and their ledger lines, concerns, claims, jobs.
func saveParts(tx *gorm.DB, t *approval.Ticket) error {
	for i := range t.Items {
		r := itemOf(t, i)
		// Not Save: for gorm a position of zero is a row that is not stored yet.
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&r).Error; err != nil {
			return err
		}
	}
	if err := saveConcerns(tx, t); err != nil {
		return err
	}
	for _, e := range t.Events {
		if e.Saved {
			continue
		}
		r := eventRow{Ticket: t.Number, Item: e.Item, At: micros(e.At), Kind: e.Kind, Actor: e.Actor, OnBehalfOf: e.OnBehalfOf, Step: e.Step, Cluster: e.Cluster,
			Revision: e.Revision, Comment: e.Comment}
		if err := tx.Create(&r).Error; err != nil {
			return err
		}
	}
	if err := ledgerstore.Append(tx, approval.LedgerEntries(t)...); err != nil {
		return err
	}
	if err := tx.Where("ticket = ?", t.Number).Delete(&claimRow{}).Error; err != nil {
		return err
	}
	for _, c := range t.Claims() {
		// A failed ticket that comes back finds its claim taken by the one that was made meanwhile, which keeps it. That
		// a new ticket takes nobody's claim was checked by Create.
		if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&claimRow{Application: c.Application, Resource: c.Resource, Action: c.Action, Ticket: t.Number}).Error; err != nil {
			return err
		}
	}
	return addJobs(tx, t)
}

func saveConcerns(tx *gorm.DB, t *approval.Ticket) error {
	if err := tx.Where("ticket = ?", t.Number).Delete(&concernRow{}).Error; err != nil {
		return err
	}
	var rows []concernRow
	for _, c := range t.Concerns() {
		rows = append(rows, concernRow{Ticket: t.Number, Item: c.Item, Person: c.Person, Role: c.Role})
	}
	if len(rows) == 0 {
		return nil
	}
	return tx.CreateInBatches(rows, fillAtOnce).Error
}

func addJobs(tx *gorm.DB, t *approval.Ticket) error {
	for _, j := range t.Jobs() {
		if err := tx.Create(&jobRow{Ticket: t.Number, Item: j.Item, Kind: j.Kind, Key: t.JobKey(j.Item)}).Error; err != nil {
			return err
		}
	}
	return nil
}
