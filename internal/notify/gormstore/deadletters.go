package gormstore

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/notify"
)

// Arrived implements notify.Store.
func (s *Store) Arrived(ctx context.Context, after int64, limit int) ([]notify.Arrival, error) {
	var rows []row
	err := s.db.Read(ctx, func(tx *gorm.DB) error {
		rows = nil
		q := tx.Select("id, person").Where("id > ? AND channel = ?", after, notify.ChannelInbox)
		if after < 0 {
			return q.Order("id DESC").Limit(1).Find(&rows).Error
		}
		return q.Order("id").Limit(limit).Find(&rows).Error
	})
	out := make([]notify.Arrival, 0, len(rows))
	for _, r := range rows {
		out = append(out, notify.Arrival{ID: r.ID, Person: r.Person})
	}
	return out, err
}

// DeadLetters implements notify.Store.
func (s *Store) DeadLetters(ctx context.Context, f notify.DeadFilter) (letters []notify.DeadLetter, next int64, err error) {
	limit := notify.DefaultPage
	if f.Limit > 0 {
		limit = min(f.Limit, notify.MaxPage)
	}
	var rows []row
	err = s.db.Read(ctx, func(tx *gorm.DB) error {
		rows = nil
		q := tx.Where("state = ?", dead)
		if f.Channel != "" {
			q = q.Where("channel = ?", f.Channel)
		}
		if f.Before > 0 {
			q = q.Where("id < ?", f.Before)
		}
		return q.Order("id DESC").Limit(limit + 1).Find(&rows).Error
	})
	if len(rows) > limit {
		rows = rows[:limit]
		next = rows[limit-1].ID
	}
	for _, r := range rows {
		letters = append(letters, notify.DeadLetter{ID: r.ID, Attempts: r.Attempts, Problem: r.Problem, GivenUp: instant(r.DoneAt),
			Posting: notify.Posting{Message: r.message(), Channel: r.Channel, Digest: r.Digest, RunAfter: instant(r.RunAfter)}})
	}
	return letters, next, err
}

// Requeue implements notify.Store.
func (s *Store) Requeue(ctx context.Context, ids []int64, now time.Time) (n int64, err error) {
	err = s.db.Write(ctx, func(tx *gorm.DB) error {
		q := tx.Model(&row{}).Where("state = ?", dead)
		if ids != nil {
			q = q.Where("id IN ?", ids)
		}
		res := q.Updates(map[string]any{"state": queued, "run_after": micros(now), "attempts": 0, "done_at": 0})
		n = res.RowsAffected
		return res.Error
	})
	return n, err
}
