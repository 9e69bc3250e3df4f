// Package gormstore stores idempotency keys in SQL with gorm. It implements idempotency.Store.
package gormstore

import (
	"context"
	"errors"
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
	Status    int // 0 while in progress
	Kind      string
	Body      []byte
}

func (row) TableName() string { return "idempotency" }

// errReleased means that the claim of another call was removed while this call waited for it.
var errReleased = errors.New("another call with the same key has just failed")

// Begin implements idempotency.Store.
func (s *Store) Begin(ctx context.Context, c idempotency.Call) (answer *idempotency.Answer, err error) {
	err = s.db.Write(ctx, func(tx *gorm.DB) error {
		answer = nil
		claim := row{Person: c.Person, Key: c.Key, Digest: c.Digest, ClaimedAt: c.At.UnixMicro(), Body: []byte{}}
		made := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&claim)
		if made.Error != nil || made.RowsAffected == 1 {
			return made.Error
		}
		r, err := database.SelectOne[row](tx, "SELECT * FROM idempotency WHERE person = ? AND idempotency_key = ?"+database.ForUpdate(tx), c.Person, c.Key)
		if err != nil {
			return err
		}
		if r == nil {
			return errReleased
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
		_, err := database.Exec(
			tx,
			"UPDATE idempotency SET status = ?, kind = ?, body = ?"+ofCall,
			append([]any{a.Status, a.MediaType, a.Body}, valuesOfCall(c)...)...)
		return err
	})
}

// Release implements idempotency.Store.
func (s *Store) Release(ctx context.Context, c idempotency.Call) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		_, err := database.Exec(tx, "DELETE FROM idempotency"+ofCall, valuesOfCall(c)...)
		return err
	})
}

// ofCall selects the claim of exactly one call, because another call may have taken over meanwhile.
const ofCall = " WHERE person = ? AND idempotency_key = ? AND claimed_at = ? AND status = 0"

func valuesOfCall(c idempotency.Call) []any { return []any{c.Person, c.Key, c.At.UnixMicro()} }

// Prune implements idempotency.Store.
func (s *Store) Prune(ctx context.Context, before time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		_, err := database.Exec(tx, "DELETE FROM idempotency WHERE claimed_at < ?", before.UnixMicro())
		return err
	})
}
