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
	"github.com/acp-io/acp/internal/sqlquery"
)

// Changes implements notify.Store.
func (s *Store) Changes(ctx context.Context, limit int) ([]notify.Change, error) {
	var rows []changeRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[changeRow](tx, "SELECT * FROM notify_outbox ORDER BY id LIMIT ?", limit)
		return err
	})
	out := make([]notify.Change, 0, len(rows))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		c := notify.Change{ID: r.ID, Ticket: r.Ticket, First: r.FirstEvent, Last: r.LastEvent, Delegation: r.Delegation}
		if r.ResourceEvent != "" {
			c.ResourceEvent = &notify.ResourceEvent{}
			if err := json.Unmarshal([]byte(r.ResourceEvent), c.ResourceEvent); err != nil {
				return nil, fmt.Errorf("read the event of a resource %d: %w", r.ID, err)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// Route implements notify.Store.
func (s *Store) Route(ctx context.Context, routed ...notify.Routed) error {
	ids, messages := make([]int64, 0, len(routed)), make(map[int64][][]any, len(routed))
	supersessions := map[int64]*notify.Supersession{}
	for _, x := range routed {
		ids = append(ids, x.Change.ID)
		if x.Supersession != nil {
			supersessions[x.Change.ID] = x.Supersession
		}
		for _, p := range x.Messages {
			facts, err := json.Marshal(p.Facts)
			if err != nil {
				return fmt.Errorf("write the facts of %s: %w", p.Event, err)
			}
			state, answers := queued, int64(0)
			switch {
			case p.Channel == notify.ChannelInbox:
				state = unread
			case p.Person != "" && !p.Digest && p.Facts.Answer != nil:
				answers = p.Facts.Answer.Version
			}
			messages[x.Change.ID] = append(
				messages[x.Change.ID],
				[]any{p.Person, p.Event, p.Channel, p.Kind, p.Ticket, database.Micros(p.At), string(facts), state, p.Digest,
					database.Micros(p.RunAfter), 0, "", 0, "", 0, answers},
			)
		}
	}
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		var mine []int64 // IDs of the changes that no other replica has routed
		if err := database.Rows(tx, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			mine = append(mine, id)
			return err
		}, "DELETE FROM notify_outbox WHERE id IN ? RETURNING id", ids); err != nil {
			return err
		}
		var rows [][]any
		var changed []*notify.Supersession
		for _, id := range slices.Sorted(slices.Values(mine)) {
			rows = append(rows, messages[id]...)
			if x := supersessions[id]; x != nil {
				changed = append(changed, x)
			}
		}
		if err := supersede(tx, changed); err != nil {
			return err
		}
		_, err := database.Insert(
			tx,
			"notifications (person, event, channel, kind, ticket, at, facts, state, digest, run_after, attempts, worker, lease_until, problem, done_at, "+
				"answer_version)",
			" ON CONFLICT DO NOTHING",
			rows,
		)
		return err
	})
}

// Preferences implements notify.Store.
func (s *Store) Preferences(ctx context.Context, people ...string) (map[string]notify.Preferences, error) {
	out := map[string]notify.Preferences{}
	var rows []preferencesRow
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = database.Select[preferencesRow](tx, "SELECT * FROM notify_preferences WHERE person IN ?", people)
		return err
	})
	for _, r := range rows {
		out[r.Person] = r.Body
	}
	return out, err
}

// SetPreferences implements notify.Store.
func (s *Store) SetPreferences(ctx context.Context, person string, p notify.Preferences, at time.Time) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&preferencesRow{Person: person, Body: p, UpdatedAt: database.Micros(at)}).Error
	})
}

// Inbox implements notify.Store.
func (s *Store) Inbox(ctx context.Context, f notify.InboxFilter) (notices []notify.Notice, next int64, err error) {
	limit := notify.DefaultPage
	if f.Limit > 0 {
		limit = min(f.Limit, notify.MaxPage)
	}
	c := inbox(f.Person)
	if f.Unread {
		c.Add("state = ?", unread)
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
		notices = append(notices, notify.Notice{ID: r.ID, Message: r.message(), Read: r.State == read})
	}
	return notices, next, err
}

// Unread implements notify.Store.
func (s *Store) Unread(ctx context.Context, person string) (int, error) {
	c := inbox(person)
	c.Add("state = ?", unread)
	var n int64
	err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		n, err = database.Number(tx, "SELECT COUNT(*) FROM notifications"+c.Where(), c.Args()...)
		return err
	})
	return int(n), err
}

// Mark implements notify.Store.
func (s *Store) Mark(ctx context.Context, person string, ids []int64, isRead bool, at time.Time) error {
	from, to, done := unread, read, database.Micros(at)
	if !isRead {
		from, to, done = read, unread, 0
	}
	c := inbox(person)
	c.Add("state = ? AND id IN ?", from, ids)
	return s.mark(ctx, c, to, done)
}

// MarkAllRead implements notify.Store.
func (s *Store) MarkAllRead(ctx context.Context, person string, upTo int64, at time.Time) error {
	c := inbox(person)
	c.Add("state = ?", unread)
	if upTo > 0 {
		c.Add("id <= ?", upTo)
	}
	return s.mark(ctx, c, read, database.Micros(at))
}

// mark changes the state of the rows that meet the conditions.
func (s *Store) mark(ctx context.Context, c sqlquery.Conditions, state string, doneAt int64) error {
	return s.db.Write(ctx, func(tx *gorm.DB) error {
		_, err := database.Exec(tx, "UPDATE notifications SET state = ?, done_at = ?"+c.Where(), append([]any{state, doneAt}, c.Args()...)...)
		return err
	})
}

// inbox returns the conditions for the rows of a person's inbox.
func inbox(person string) sqlquery.Conditions {
	return sqlquery.Condition("person = ? AND channel = ?", person, notify.ChannelInbox)
}

// newest returns the newest rows that meet the conditions, newest first.
func newest(tx *gorm.DB, c sqlquery.Conditions, limit int) ([]row, error) {
	return database.Select[row](tx, "SELECT * FROM notifications"+c.Where()+" ORDER BY id DESC LIMIT ?", append(c.Args(), limit)...)
}
