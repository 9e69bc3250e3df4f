package gormstore

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/notify"
	"github.com/acp-io/acp/internal/sqlquery"
)

// Arrived implements notify.Store.
func (s *Store) Arrived(ctx context.Context, after int64, limit int) ([]notify.Arrival, error) {
	order := "id"
	if after < 0 {
		order, limit = "id DESC", 1
	}
	out := []notify.Arrival{}
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) error {
		return database.Rows(tx, func(rows *sql.Rows) error {
			var a notify.Arrival
			err := rows.Scan(&a.ID, &a.Person)
			out = append(out, a)
			return err
		}, "SELECT id, person FROM notifications WHERE id > ? AND channel = ? ORDER BY "+order+" LIMIT ?", after, notify.ChannelInbox, limit)
	})
	return out, err
}

// DeadLetters implements notify.Store.
func (s *Store) DeadLetters(ctx context.Context, f notify.DeadFilter) (letters []notify.DeadLetter, next int64, err error) {
	limit := notify.DefaultPage
	if f.Limit > 0 {
		limit = min(f.Limit, notify.MaxPage)
	}
	c := sqlquery.Condition("state = ?", dead)
	if f.Channel != "" {
		c.Add("channel = ?", f.Channel)
	}
	if f.Before > 0 {
		c.Add("id < ?", f.Before)
	}
	var rows []row
	err = s.db.ReadOne(ctx, func(tx *gorm.DB) error {
		rows, err = newest(tx, c, limit+1)
		return err
	})
	if len(rows) > limit {
		rows = rows[:limit]
		next = rows[limit-1].ID
	}
	for _, r := range rows {
		letters = append(letters, notify.DeadLetter{ID: r.ID, Attempts: r.Attempts, Problem: r.Problem, GivenUp: database.Instant(r.DoneAt),
			QueuedMessage: notify.QueuedMessage{Message: r.message(), Channel: r.Channel, Digest: r.Digest, RunAfter: database.Instant(r.RunAfter)}})
	}
	return letters, next, err
}

// Requeue implements notify.Store.
func (s *Store) Requeue(ctx context.Context, ids []int64, now time.Time) (n int64, err error) {
	err = s.db.Write(ctx, func(tx *gorm.DB) error {
		c := sqlquery.Condition("state = ?", dead)
		if ids != nil {
			c.Add("id IN ?", ids)
		}
		n, err = database.Exec(
			tx,
			"UPDATE notifications SET state = ?, run_after = ?, attempts = 0, done_at = 0"+c.Where(),
			append([]any{queued, database.Micros(now)}, c.Args()...)...)
		return err
	})
	return n, err
}
