// Package gormstore stores idempotency keys in SQL with gorm. It implements idempotency.Store.
package gormstore

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/idempotency"
)

// Store implements idempotency.Store.
type Store struct{ db *database.DB }

var _ idempotency.Store = (*Store)(nil)

// New returns a store in a database.
func New(db *database.DB) *Store { return &Store{db} }

type row struct {
	Person    string `gorm:"primaryKey"`
	Key       string `gorm:"primaryKey;column:idempotency_key"`
	Digest    string
	ClaimedAt int64
	Status    int // 0: in progress
	Kind      string
	Body      []byte
}

func (row) TableName() string { return "idempotency" }

// Begin implements idempotency.Store.
func (s *Store) Begin(ctx context.Context, c idempotency.Call) (answer *idempotency.Answer, err error) {
	err = s.db.Write(ctx, func(tx *gorm.DB) error {
		answer = nil
		claim := row{Person: c.Person, Key: c.Key, Digest: c.Digest, ClaimedAt: c.At.UnixMicro(), Body: []byte{}}
		made := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&claim)
		if made.Error != nil || made.RowsAffected == 1 {
			return made.Error
		}
		var r row
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).Take(&r, "person = ? AND idempotency_key = ?", c.Person, c.Key).Error; err != nil {
			return err
		}
		at := time.UnixMicro(r.ClaimedAt)
		switch {
		case c.At.Sub(at) > idempotency.AnswerRetention, r.Status == 0 && c.At.Sub(at) > idempotency.CallTimeout:
			return tx.Save(&claim).Error
		case r.Digest != c.Digest:
			return idempotency.ErrKeyReused
		case r.Status == 0:
			return idempotency.ErrInProgress
		}
		answer = &idempotency.Answer{Status: r.Status, MediaType: r.Kind, Body: r.Body}
		return nil
	})
	return answer, err
}

// Finish implements idempotency.Store.
func (s *Store) Finish(ctx context.Context, c idempotency.Call, a idempotency.Answer) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		return s.claim(tx, c).Updates(map[string]any{"status": a.Status, "kind": a.MediaType, "body": a.Body}).Error
	})
}

// Release implements idempotency.Store.
func (s *Store) Release(ctx context.Context, c idempotency.Call) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error { return s.claim(tx, c).Delete(&row{}).Error })
}

// claim selects the claim of exactly this call, because another call may have taken over meanwhile.
func (s *Store) claim(tx *gorm.DB, c idempotency.Call) *gorm.DB {
	return tx.Model(&row{}).Where("person = ? AND idempotency_key = ? AND claimed_at = ? AND status = 0", c.Person, c.Key, c.At.UnixMicro())
}

// Prune implements idempotency.Store.
func (s *Store) Prune(ctx context.Context, before time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		return tx.Where("claimed_at < ?", before.UnixMicro()).Delete(&row{}).Error
	})
}
