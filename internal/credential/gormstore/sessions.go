package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/alexedwards/scs/v2"
	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/credential"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/ledger"
)

type sessionRow struct {
	Token     string `gorm:"primaryKey"`
	Data      []byte
	ExpiresAt int64
	Person    string
	UserAgent string
	CreatedAt int64
}

func (sessionRow) TableName() string { return "sessions" }

// Sessions implements the session manager's store interface. The manager hashes tokens before it calls it.
type Sessions struct{ s *Store }

var _ scs.CtxStore = (*Sessions)(nil)

// Manager returns the store that the session manager uses.
func (s *Store) Manager() *Sessions { return &Sessions{s} }

// FindCtx returns the data of a session that has not expired.
func (s *Sessions) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = s.s.db.ReadOne(ctx, func(tx *gorm.DB) error {
		return database.Rows(tx, func(rows *sql.Rows) error {
			found = true
			return rows.Scan(&data)
		}, "SELECT data FROM sessions WHERE token = ? AND expires_at > ?", token, database.Micros(time.Now()))
	})
	return data, found && err == nil, err
}

// CommitCtx adds or replaces a session.
func (s *Sessions) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	_, values, err := scs.GobCodec{}.Decode(data)
	if err != nil {
		return fmt.Errorf("read session data: %w", err)
	}
	r := sessionRow{Token: token, Data: data, ExpiresAt: database.Micros(expiry)}
	r.Person, _ = values[credential.SessionPerson].(string)
	r.UserAgent, _ = values[credential.SessionAgent].(string)
	created, _ := values[credential.SessionCreated].(int64)
	r.CreatedAt = created * 1e6
	return s.s.db.Write(ctx, func(tx *gorm.DB) error {
		if credential.IsUpdateOnly(ctx) {
			_, err := database.Exec(tx, "UPDATE sessions SET data = ?, expires_at = ? WHERE token = ?", r.Data, r.ExpiresAt, r.Token)
			return err
		}
		return tx.Save(&r).Error
	})
}

// DeleteCtx ends a session.
func (s *Sessions) DeleteCtx(ctx context.Context, token string) error {
	return s.s.db.Write(ctx, func(tx *gorm.DB) error {
		_, err := database.Exec(tx, "DELETE FROM sessions WHERE token = ?", token)
		return err
	})
}

// Find is FindCtx without a context.
func (s *Sessions) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit is CommitCtx without a context.
func (s *Sessions) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

// Delete is DeleteCtx without a context.
func (s *Sessions) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// Sessions implements credential.Store.
func (s *Store) Sessions(ctx context.Context, person string, now time.Time) ([]credential.Session, error) {
	var rows []sessionRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[sessionRow](
			tx,
			"SELECT * FROM sessions WHERE person = ? AND expires_at > ? ORDER BY created_at DESC, token",
			person,
			database.Micros(now),
		)
		return err
	})
	out := make([]credential.Session, 0, len(rows))
	for _, r := range rows {
		out = append(
			out,
			credential.Session{
				ID:        r.Token,
				Person:    r.Person,
				UserAgent: r.UserAgent,
				CreatedAt: database.Instant(r.CreatedAt),
				ExpiresAt: database.Instant(r.ExpiresAt),
			},
		)
	}
	return out, err
}

// EndSessions implements credential.Store.
func (s *Store) EndSessions(ctx context.Context, person, but string, line ledger.Entry) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		n, err := database.Exec(tx, "DELETE FROM sessions WHERE person = ? AND token <> ?", person, but)
		if err != nil || n == 0 {
			return err
		}
		return s.ledger(tx, line)
	})
}
