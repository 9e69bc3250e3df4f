package gormstore

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
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
	if err := appendLedger(tx, approval.LedgerEntries(t)); err != nil {
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

type ledgerRow struct {
	Seq  int64 `gorm:"primaryKey;autoIncrement:false"`
	Text string
	Hash string
}

func (ledgerRow) TableName() string { return "ledger" }

func appendLedger(tx *gorm.DB, entries []ledger.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	if err := database.Lock(tx, "ledger"); err != nil {
		return err
	}
	head := ledgerRow{Hash: ledger.Genesis}
	if err := tx.Order("seq DESC").Limit(1).Find(&head).Error; err != nil {
		return err
	}
	for _, e := range entries {
		l, err := ledger.Append(head.Seq, head.Hash, e)
		if err != nil {
			return err
		}
		head = ledgerRow{Seq: l.Seq, Text: l.Text, Hash: l.Hash}
		if err := tx.Create(&head).Error; err != nil {
			return err
		}
	}
	return nil
}

var errStopped = errors.New("the reader has had enough")

// Ledger yields all lines in order, as they are stored; for ledger.Verify.
func (s *Store) Ledger(ctx context.Context) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		err := s.read(ctx, func(tx *gorm.DB) error {
			rows, err := tx.Model(&ledgerRow{}).Order("seq").Rows()
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }() // reading is over, and its error is in rows.Err
			for rows.Next() {
				var l ledger.Line
				if err := rows.Scan(&l.Seq, &l.Text, &l.Hash); err != nil {
					return fmt.Errorf("read ledger: %w", err)
				}
				if !yield(l, nil) {
					return errStopped
				}
			}
			return rows.Err()
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(ledger.Line{}, err)
		}
	}
}
