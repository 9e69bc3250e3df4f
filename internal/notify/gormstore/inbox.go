package gormstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/notify"
)

// Changes implements notify.Store.
func (s *Store) Changes(ctx context.Context, limit int) ([]notify.Change, error) {
	var rows []changeRow
	err := s.db.Read(ctx, func(tx *gorm.DB) error {
		rows = nil
		return tx.Order("id").Limit(limit).Find(&rows).Error
	})
	out := make([]notify.Change, 0, len(rows))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		c := notify.Change{ID: r.ID, Ticket: r.Ticket, First: r.FirstEvent, Last: r.LastEvent, Delegation: r.Delegation}
		if r.Bulletin != "" {
			c.Bulletin = &notify.Bulletin{}
			if err := json.Unmarshal([]byte(r.Bulletin), c.Bulletin); err != nil {
				return nil, fmt.Errorf("read bulletin %d: %w", r.ID, err)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// Route implements notify.Store.
func (s *Store) Route(ctx context.Context, some ...notify.Routed) error {
	ids, postings := make([]any, 0, len(some)), make(map[int64][][]any, len(some))
	for _, x := range some {
		ids = append(ids, x.Change.ID)
		for _, p := range x.Postings {
			facts, err := json.Marshal(p.Facts)
			if err != nil {
				return fmt.Errorf("write the facts of %s: %w", p.Event, err)
			}
			state := queued
			if p.Channel == notify.ChannelInbox {
				state = unread
			}
			postings[x.Change.ID] = append(postings[x.Change.ID], []any{p.Person, p.Event, p.Channel, p.Kind, p.Ticket, micros(p.At), string(facts), state, p.Digest,
				micros(p.RunAfter), 0, "", 0, "", 0})
		}
	}
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		var mine []int64 // IDs of the changes that no other replica has routed
		if err := database.Rows(tx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			mine = append(mine, id)
			return err
		}, "DELETE FROM notify_outbox WHERE id IN ("+database.Placeholders(len(ids))+") RETURNING id", ids...); err != nil {
			return err
		}
		var rows [][]any
		for _, id := range slices.Sorted(slices.Values(mine)) {
			rows = append(rows, postings[id]...)
		}
		_, err := database.Insert(tx, "notifications (person, event, channel, kind, ticket, at, facts, state, digest, run_after, attempts, worker, lease_until, problem, done_at)",
			" ON CONFLICT DO NOTHING", rows)
		return err
	})
}

// Preferences implements notify.Store.
func (s *Store) Preferences(ctx context.Context, people ...string) (map[string]notify.Preferences, error) {
	out := map[string]notify.Preferences{}
	var rows []preferencesRow
	err := s.db.Read(ctx, func(tx *gorm.DB) error {
		rows = nil
		return tx.Where("person IN ?", people).Find(&rows).Error
	})
	for _, r := range rows {
		out[r.Person] = r.Body
	}
	return out, err
}

// SetPreferences implements notify.Store.
func (s *Store) SetPreferences(ctx context.Context, person string, p notify.Preferences, at time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&preferencesRow{Person: person, Body: p, UpdatedAt: micros(at)}).Error
	})
}

// Inbox implements notify.Store.
func (s *Store) Inbox(ctx context.Context, f notify.InboxFilter) (notices []notify.Notice, next int64, err error) {
	limit := notify.DefaultPage
	if f.Limit > 0 {
		limit = min(f.Limit, notify.MaxPage)
	}
	var rows []row
	err = s.db.Read(ctx, func(tx *gorm.DB) error {
		rows = nil
		q := inbox(tx, f.Person)
		if f.Unread {
			q = q.Where("state = ?", unread)
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
		notices = append(notices, notify.Notice{ID: r.ID, Message: r.message(), Read: r.State == read})
	}
	return notices, next, err
}

// Unread implements notify.Store.
func (s *Store) Unread(ctx context.Context, person string) (int, error) {
	var n int64
	err := s.db.Read(ctx, func(tx *gorm.DB) error {
		return inbox(tx, person).Where("state = ?", unread).Count(&n).Error
	})
	return int(n), err
}

// Mark implements notify.Store.
func (s *Store) Mark(ctx context.Context, person string, ids []int64, isRead bool, at time.Time) error {
	from, change := unread, map[string]any{"state": read, "done_at": micros(at)}
	if !isRead {
		from, change = read, map[string]any{"state": unread, "done_at": 0}
	}
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		return inbox(tx, person).Where("state = ? AND id IN ?", from, ids).Updates(change).Error
	})
}

// MarkAllRead implements notify.Store.
func (s *Store) MarkAllRead(ctx context.Context, person string, upTo int64, at time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		q := inbox(tx, person).Where("state = ?", unread)
		if upTo > 0 {
			q = q.Where("id <= ?", upTo)
		}
		return q.Updates(map[string]any{"state": read, "done_at": micros(at)}).Error
	})
}

func inbox(tx *gorm.DB, person string) *gorm.DB {
	return tx.Model(&row{}).Where("person = ? AND channel = ?", person, notify.ChannelInbox)
}
