package gormstore

import (
	"context"
	"errors"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	ledgerstore "github.com/acp-io/acp/internal/ledger/gormstore"
	notifystore "github.com/acp-io/acp/internal/notify/gormstore"
)

// Create implements approval.Store.
func (s *Store) Create(ctx context.Context, t *approval.Ticket) (stored *approval.Ticket, err error) {
	for range 2 {
		stored = t
		err = s.db.Write(ctx, func(tx *gorm.DB) error {
			same, err := submitted(tx, t)
			if err != nil || same != nil {
				stored = same
				return err
			}
			return create(tx, t)
		})
		// Somebody has used the idempotency key since it was looked for: his ticket is found the second time.
		if !errors.Is(err, database.ErrConflict) {
			break
		}
	}
	if err != nil {
		return nil, storeError(err)
	}
	stored.Stored()
	return stored, nil
}

// submitted is the ticket that the same request has made before; nil: none.
func submitted(tx *gorm.DB, t *approval.Ticket) (*approval.Ticket, error) {
	if t.IdempotencyKey == "" {
		return nil, nil
	}
	var same []ticketRow
	if err := tx.Where("requester = ? AND idempotency_key = ?", t.Requester, t.IdempotencyKey).Find(&same).Error; err != nil || len(same) == 0 {
		return nil, err
	}
	return load(tx, same[0].Number)
}

func create(tx *gorm.DB, t *approval.Ticket) error {
	row := rowOf(t)
	if err := tx.Create(&row).Error; err != nil {
		return err
	}
	t.Numbered(row.Number)
	// A claim that somebody else is taking in this moment is waited for.
	taken, err := claim(tx, t)
	if err != nil {
		return err
	}
	if len(taken) > 0 {
		other, err := claimedBy(tx, taken)
		if err != nil {
			return err
		}
		return &approval.Error{Code: approval.CodeDuplicate, Ticket: other, Detail: "A ticket under way already asks for this access."}
	}
	return saveParts(tx, t, nil)
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

// update locks the ticket where a database has many writers, and writes only onto the version that it has read.
func update(tx *gorm.DB, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	t, err := load(tx, number, clause.Locking{Strength: clause.LockingStrengthUpdate})
	if err != nil {
		return nil, err
	}
	before, concerns, claims := t.Version, t.Concerns(), t.Claims()
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
	if !slices.Equal(claims, t.Claims()) {
		if err := tx.Where("ticket = ?", number).Delete(&claimRow{}).Error; err != nil {
			return nil, err
		}
		// A failed ticket that comes back finds its claim taken by the one that was made meanwhile, which keeps it.
		if _, err := claim(tx, t); err != nil {
			return nil, err
		}
	}
	return t, saveParts(tx, t, concerns)
}

// saveParts writes what may differ after any transition: items, new events with what they bring to others, concerns,
// jobs. The ledger's line is the last but the jobs and the change, because writers of lines wait for each other.
func saveParts(tx *gorm.DB, t *approval.Ticket, concerns []approval.Concern) error {
	items := make([]itemRow, len(t.Items))
	for i := range t.Items {
		items[i] = itemOf(t, i)
	}
	// Not Save: for gorm a position of zero is a row that is not stored yet.
	if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&items).Error; err != nil {
		return err
	}
	if err := saveConcerns(tx, t, concerns); err != nil {
		return err
	}
	var events []eventRow
	for _, e := range t.Events {
		if !e.Saved {
			events = append(events, eventRow{Ticket: t.Number, Item: e.Item, At: micros(e.At), Kind: e.Kind, Actor: e.Actor, OnBehalfOf: e.OnBehalfOf,
				Step: e.Step, Cluster: e.Cluster, Revision: e.Revision, Comment: e.Comment})
		}
	}
	if len(events) > 0 {
		if err := tx.Create(&events).Error; err != nil {
			return err
		}
	}
	if err := notifystore.Enqueue(tx, t); err != nil {
		return err
	}
	entries := approval.LedgerEntries(t)
	if len(entries) == 0 {
		if err := ledgerstore.Lock(tx); err != nil {
			return err
		}
	}
	if err := ledgerstore.Append(tx, entries...); err != nil {
		return err
	}
	if err := addJobs(tx, t); err != nil {
		return err
	}
	return changed(tx, t.Number)
}

func saveConcerns(tx *gorm.DB, t *approval.Ticket, before []approval.Concern) error {
	now := t.Concerns()
	if slices.Equal(before, now) {
		return nil
	}
	if len(before) > 0 {
		if err := tx.Where("ticket = ?", t.Number).Delete(&concernRow{}).Error; err != nil {
			return err
		}
	}
	rows := make([]concernRow, len(now))
	for i, c := range now {
		rows[i] = concernRow{Ticket: t.Number, Item: c.Item, Person: c.Person, Role: c.Role}
	}
	if len(rows) == 0 {
		return nil
	}
	return tx.CreateInBatches(rows, fillAtOnce).Error
}

// addJobs comes after the ledger's lines: their writers go one after the other, so jobs are numbered in the order in
// which they can be seen.
func addJobs(tx *gorm.DB, t *approval.Ticket) error {
	var rows []jobRow
	for _, j := range t.Jobs() {
		rows = append(rows, jobRow{Ticket: t.Number, Item: j.Item, Kind: j.Kind, Key: t.JobKey(j.Item)})
	}
	if len(rows) == 0 {
		return nil
	}
	return tx.Create(&rows).Error
}
