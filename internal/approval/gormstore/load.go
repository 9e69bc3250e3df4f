package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
)

// Get implements approval.TicketStore.
func (s *Store) Get(ctx context.Context, number int64) (t *approval.Ticket, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		rows, err := ticketRows(tx, "number = ?", number)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return gorm.ErrRecordNotFound
		}
		filled, err := fill(tx, rows)
		if err != nil {
			return err
		}
		t = filled[0]
		return nil
	})
	return t, err
}

const ticketColumns = "number, kind, state, version, requester, reason, idempotency_key, break_glass, created_at, updated_at, trace_parent"

func (r *ticketRow) scan(rows *sql.Rows) error {
	return rows.Scan(&r.Number, &r.Kind, &r.State, &r.Version, &r.Requester, &r.Reason, &r.IdempotencyKey, &r.BreakGlass, &r.CreatedAt, &r.UpdatedAt, &r.TraceParent)
}

func ticketRows(tx *gorm.DB, which string, args ...any) (out []ticketRow, err error) {
	err = database.Rows(tx, func(rows *sql.Rows) error {
		var r ticketRow
		err := r.scan(rows)
		out = append(out, r)
		return err
	}, "SELECT "+ticketColumns+" FROM tickets WHERE "+which, args...)
	return out, err
}

// fill reads the items and events of tickets, with one query for each table.
func fill(tx *gorm.DB, rows []ticketRow) ([]*approval.Ticket, error) {
	out := make([]*approval.Ticket, len(rows))
	byNumber := make(map[int64]*approval.Ticket, len(rows))
	numbers := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.ticket()
		byNumber[r.Number], numbers[i] = out[i], r.Number
	}
	if len(rows) == 0 {
		return out, nil
	}
	in, args := inValues(numbers)
	if err := database.Rows(tx, func(rows *sql.Rows) error {
		var number int64
		var body []byte
		if err := rows.Scan(&number, &body); err != nil {
			return err
		}
		t := byNumber[number]
		it, err := decodeItem(body)
		if err != nil {
			return fmt.Errorf("read an item of ticket %s: %w", t.ID(), err)
		}
		t.Items = append(t.Items, it)
		return nil
	}, "SELECT ticket, body FROM items WHERE ticket IN ("+in+") ORDER BY ticket, position", args...); err != nil {
		return nil, err
	}
	if err := database.Rows(tx, func(rows *sql.Rows) error {
		var number, at int64
		var comment string
		e := approval.Event{Saved: true}
		if err := rows.Scan(&number, &e.Item, &at, &e.Kind, &e.Actor, &e.OnBehalfOf, &e.Step, &e.Cluster, &e.Revision, &comment); err != nil {
			return err
		}
		e.At = instant(at)
		setComment(&e, comment)
		t := byNumber[number]
		t.Events = append(t.Events, e)
		return nil
	}, "SELECT ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment FROM ticket_events WHERE ticket IN ("+in+") ORDER BY seq", args...); err != nil {
		return nil, err
	}
	return out, nil
}

// inValues returns the placeholders and values of an IN condition. It repeats the last value up to the next power of two, so
// that the database has to prepare few different statements.
func inValues(numbers []int64) (marks string, args []any) {
	for _, n := range padToPowerOfTwo(numbers) {
		args = append(args, n)
	}
	return database.Placeholders(len(args)), args
}

// listed returns the rows of a list.
func listed(tx *gorm.DB, f approval.Filter) (out []ticketRow, err error) {
	rare, err := rarestWord(tx, f)
	if err != nil {
		return nil, err
	}
	rows, err := list(tx, f, rare).Select(ticketColumns).Rows()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r ticketRow
		if err := r.scan(rows); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// List implements approval.TicketStore.
func (s *Store) List(ctx context.Context, f approval.Filter) (out []*approval.Ticket, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		rows, err := listed(tx, f)
		if err != nil {
			return err
		}
		out = make([]*approval.Ticket, 0, len(rows))
		for some := range slices.Chunk(rows, maxQueryValues) {
			filled, err := fill(tx, some)
			if err != nil {
				return err
			}
			out = append(out, filled...)
		}
		return nil
	})
	return out, err
}

func count(tx *gorm.DB, f approval.Filter, rare string) *gorm.DB {
	f.After, f.ByUpdate = approval.Cursor{}, false
	numbers, args := union(tx, f, rare, approval.CountLimit)
	return tx.Table("("+numbers+" LIMIT ?) AS t", append(args, approval.CountLimit)...)
}

// Count implements approval.TicketStore.
func (s *Store) Count(ctx context.Context, filters ...approval.Filter) ([]int, error) {
	out := make([]int, len(filters))
	err := s.read(ctx, func(tx *gorm.DB) error {
		for i, f := range filters {
			rare, err := rarestWord(tx, f)
			if err != nil {
				return err
			}
			var n int64
			if err := count(tx, f, rare).Count(&n).Error; err != nil {
				return err
			}
			out[i] = int(n)
		}
		return nil
	})
	return out, err
}

// ChangedSince implements approval.TicketStore.
func (s *Store) ChangedSince(ctx context.Context, since time.Time) ([]approval.TicketChange, error) {
	var out []approval.TicketChange
	err := s.readOne(ctx, func(tx *gorm.DB) error {
		var rows []ticketRow
		if err := tx.Select("number", "state", "version", "updated_at").Where("updated_at >= ?", micros(since)).Order("updated_at").Find(&rows).Error; err != nil {
			return err
		}
		for _, r := range rows {
			out = append(out, approval.TicketChange{Number: r.Number, State: r.State, Version: r.Version, UpdatedAt: instant(r.UpdatedAt)})
		}
		return nil
	})
	return out, err
}
