// Package gormstore stores credentials in SQL with gorm. It implements credential.Store and the session manager's
// store, and makes no decisions about credentials.
package gormstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
)

// Ledger appends lines to the ledger in a transaction.
type Ledger func(tx *gorm.DB, entries ...ledger.Entry) error

// Store implements credential.Store.
type Store struct {
	db     *database.DB
	ledger Ledger
}

var _ credential.Store = (*Store)(nil)

// New returns a store in a database.
func New(db *database.DB, l Ledger) *Store {
	return &Store{db: db, ledger: l}
}

type tokenRow struct {
	ID             string `gorm:"primaryKey"`
	Person         string
	Name           string
	Scopes         string
	Prefix         string
	Hash           string
	IdempotencyKey *string
	CreatedAt      int64
	ExpiresAt      int64
	LastUsedAt     int64
}

func (tokenRow) TableName() string { return "tokens" }

func (r tokenRow) token() credential.Token {
	t := credential.Token{
		ID:         r.ID,
		Person:     r.Person,
		Name:       r.Name,
		Prefix:     r.Prefix,
		CreatedAt:  database.Instant(r.CreatedAt),
		ExpiresAt:  database.Instant(r.ExpiresAt),
		LastUsedAt: database.Instant(r.LastUsedAt),
	}
	for _, s := range strings.Fields(r.Scopes) {
		t.Scopes = append(t.Scopes, credential.Scope(s))
	}
	return t
}

// AddToken implements credential.Store.
func (s *Store) AddToken(ctx context.Context, t credential.NewToken, line ledger.Entry) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		if err := addToken(tx, t); err != nil {
			return err
		}
		return s.ledger(tx, line)
	})
}

func addToken(tx *gorm.DB, t credential.NewToken) error {
	if err := database.Lock(tx, "tokens of "+t.Person); err != nil {
		return err
	}
	r := tokenRow{
		ID:         t.ID,
		Person:     t.Person,
		Name:       t.Name,
		Prefix:     t.Prefix,
		Hash:       t.Hash,
		CreatedAt:  database.Micros(t.CreatedAt),
		ExpiresAt:  database.Micros(t.ExpiresAt),
		LastUsedAt: database.Micros(t.LastUsedAt),
	}
	words := make([]string, len(t.Scopes))
	for i, x := range t.Scopes {
		words[i] = string(x)
	}
	r.Scopes = strings.Join(words, " ")
	if t.IdempotencyKey != "" {
		r.IdempotencyKey = &t.IdempotencyKey
		n, err := database.Number(tx, "SELECT COUNT(*) FROM tokens WHERE person = ? AND idempotency_key = ?", t.Person, t.IdempotencyKey)
		if err != nil {
			return err
		}
		if n > 0 {
			return credential.ErrRepeated
		}
	}
	n, err := database.Number(tx, "SELECT COUNT(*) FROM tokens WHERE person = ? AND expires_at > ?", t.Person, r.CreatedAt)
	if err != nil {
		return err
	}
	if n >= credential.MaxTokens {
		return credential.ErrTooMany
	}
	return tx.Create(&r).Error
}

// TokenByHash implements credential.Store.
func (s *Store) TokenByHash(ctx context.Context, hash string) (credential.Token, error) {
	var row *tokenRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		row, err = database.SelectOne[tokenRow](tx, "SELECT * FROM tokens WHERE hash = ?", hash)
		return err
	})
	if err != nil {
		return credential.Token{}, err
	}
	if row == nil {
		return credential.Token{}, credential.ErrUnknown
	}
	return row.token(), nil
}

// Tokens implements credential.Store.
func (s *Store) Tokens(ctx context.Context, person string, now time.Time) ([]credential.Token, error) {
	var rows []tokenRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[tokenRow](
			tx,
			"SELECT * FROM tokens WHERE person = ? AND expires_at > ? ORDER BY created_at DESC, id",
			person,
			database.Micros(now),
		)
		return err
	})
	out := make([]credential.Token, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.token())
	}
	return out, err
}

// TokenUsed implements credential.Store.
func (s *Store) TokenUsed(ctx context.Context, id string, at time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		_, err := database.Exec(tx, "UPDATE tokens SET last_used_at = ? WHERE id = ? AND last_used_at < ?", database.Micros(at), id, database.Micros(at))
		return err
	})
}

// RemoveToken implements credential.Store.
func (s *Store) RemoveToken(ctx context.Context, person, id string, line ledger.Entry) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		n, err := database.Exec(tx, "DELETE FROM tokens WHERE person = ? AND id = ?", person, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return credential.ErrUnknown
		}
		return s.ledger(tx, line)
	})
}

type deviceRow struct {
	DeviceHash      string `gorm:"primaryKey"`
	UserHash        string
	Client          string
	Address         string
	State           credential.DeviceState
	Person          string
	CreatedAt       int64
	ExpiresAt       int64
	PolledAt        int64
	IntervalSeconds int64
}

func (deviceRow) TableName() string { return "device_logins" }

func deviceRowOf(d credential.Device) deviceRow {
	return deviceRow{
		DeviceHash:      d.DeviceHash,
		UserHash:        d.UserHash,
		Client:          d.Client,
		Address:         d.Address,
		State:           d.State,
		Person:          d.Person,
		CreatedAt:       database.Micros(d.CreatedAt),
		ExpiresAt:       database.Micros(d.ExpiresAt),
		PolledAt:        database.Micros(d.PolledAt),
		IntervalSeconds: int64(d.Interval / time.Second),
	}
}

func (r deviceRow) device() credential.Device {
	return credential.Device{
		DeviceHash: r.DeviceHash,
		UserHash:   r.UserHash,
		Client:     r.Client,
		Address:    r.Address,
		State:      r.State,
		Person:     r.Person,
		CreatedAt: database.Instant(
			r.CreatedAt,
		),
		ExpiresAt: database.Instant(r.ExpiresAt),
		PolledAt:  database.Instant(r.PolledAt),
		Interval:  time.Duration(r.IntervalSeconds) * time.Second,
	}
}

// AddDevice implements credential.Store.
func (s *Store) AddDevice(ctx context.Context, d credential.Device) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		n, err := database.Number(tx, "SELECT COUNT(*) FROM device_logins WHERE expires_at > ?", database.Micros(d.CreatedAt))
		if err != nil {
			return err
		}
		if n >= credential.MaxPendingDevices {
			return credential.ErrTooMany
		}
		r := deviceRowOf(d)
		return tx.Create(&r).Error
	})
}

// DeviceByUserCode implements credential.Store.
func (s *Store) DeviceByUserCode(ctx context.Context, hash string) (credential.Device, error) {
	var row *deviceRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		row, err = database.SelectOne[deviceRow](tx, "SELECT * FROM device_logins WHERE user_hash = ?", hash)
		return err
	})
	if err != nil {
		return credential.Device{}, err
	}
	if row == nil {
		return credential.Device{}, credential.ErrUnknown
	}
	return row.device(), nil
}

// UpdateDeviceByDeviceCode implements credential.Store.
func (s *Store) UpdateDeviceByDeviceCode(ctx context.Context, hash string, change credential.DeviceChange) error {
	return s.updateDevice(ctx, "SELECT * FROM device_logins WHERE device_hash = ?", hash, change)
}

// UpdateDeviceByUserCode implements credential.Store.
func (s *Store) UpdateDeviceByUserCode(ctx context.Context, hash string, change credential.DeviceChange) error {
	return s.updateDevice(ctx, "SELECT * FROM device_logins WHERE user_hash = ?", hash, change)
}

// updateDevice changes the device login that a query with the hash of a code returns.
func (s *Store) updateDevice(ctx context.Context, query, hash string, change credential.DeviceChange) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		// The row is locked until the transaction ends, so that a token is returned only once.
		row, err := database.SelectOne[deviceRow](tx, query+database.ForUpdate(tx), hash)
		if err != nil {
			return err
		}
		if row == nil {
			return credential.ErrUnknown
		}
		d := row.device()
		t, line, err := change(&d)
		if err != nil {
			return err
		}
		if t != nil {
			if err := addToken(tx, *t); err != nil {
				return err
			}
		}
		if line != nil {
			if err := s.ledger(tx, *line); err != nil {
				return err
			}
		}
		r := deviceRowOf(d)
		return tx.Save(&r).Error
	})
}

// Prune implements credential.Store.
func (s *Store) Prune(ctx context.Context, before time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		var errs []error
		for _, table := range []string{"tokens", "device_logins", "sessions"} {
			_, err := database.Exec(tx, "DELETE FROM "+table+" WHERE expires_at <= ?", database.Micros(before))
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// Count returns the number of sessions of logged-in people and of tokens that have not expired at an instant.
func (s *Store) Count(ctx context.Context, now time.Time) (sessions, tokens int64, err error) {
	err = s.db.Read(ctx, func(tx *gorm.DB) (err error) {
		if sessions, err = database.Number(tx, "SELECT COUNT(*) FROM sessions WHERE expires_at > ? AND person <> ''", database.Micros(now)); err != nil {
			return err
		}
		tokens, err = database.Number(tx, "SELECT COUNT(*) FROM tokens WHERE expires_at > ?", database.Micros(now))
		return err
	})
	return sessions, tokens, err
}
