package gormstore

import (
	"context"
	"time"

	"gorm.io/gorm"
)

type sessionRow struct {
	Token     string `gorm:"primaryKey"`
	Data      []byte
	ExpiresAt int64
}

func (sessionRow) TableName() string { return "sessions" }

// Sessions keeps browser sessions beside the tickets; it fits the session manager's store interface.
type Sessions struct{ s *Store }

// Sessions of this store.
func (s *Store) Sessions() *Sessions { return &Sessions{s} }

// FindCtx returns a session that has not expired.
func (x *Sessions) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	var rows []sessionRow
	err := x.s.read(ctx, func(tx *gorm.DB) error {
		return tx.Where("token = ? AND expires_at > ?", token, micros(time.Now())).Find(&rows).Error
	})
	if err != nil || len(rows) == 0 {
		return nil, false, err
	}
	return rows[0].Data, true, nil
}

// CommitCtx adds or replaces a session.
func (x *Sessions) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	return x.s.write(ctx, func(tx *gorm.DB) error {
		return tx.Save(&sessionRow{Token: token, Data: data, ExpiresAt: micros(expiry)}).Error
	})
}

// DeleteCtx ends a session.
func (x *Sessions) DeleteCtx(ctx context.Context, token string) error {
	return x.s.write(ctx, func(tx *gorm.DB) error { return tx.Where("token = ?", token).Delete(&sessionRow{}).Error })
}

// Find is FindCtx without a context.
func (x *Sessions) Find(token string) ([]byte, bool, error) {
	return x.FindCtx(context.Background(), token)
}

// Commit is CommitCtx without a context.
func (x *Sessions) Commit(token string, data []byte, expiry time.Time) error {
	return x.CommitCtx(context.Background(), token, data, expiry)
}

// Delete is DeleteCtx without a context.
func (x *Sessions) Delete(token string) error { return x.DeleteCtx(context.Background(), token) }

// Prune removes expired sessions.
func (x *Sessions) Prune(ctx context.Context) error {
	return x.s.write(ctx, func(tx *gorm.DB) error {
		return tx.Where("expires_at <= ?", micros(time.Now())).Delete(&sessionRow{}).Error
	})
}
