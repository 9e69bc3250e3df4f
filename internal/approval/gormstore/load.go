package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
)

// Get implements approval.TicketStore.
func (s *Store) Get(ctx context.Context, number int64) (t *approval.Ticket, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		rows, err := ticketRows(tx, "number = ?", number)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return approval.NotFound()
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

// ticketRows returns the tickets that meet a condition.
func ticketRows(tx *gorm.DB, condition string, args ...any) ([]ticketRow, error) {
	return selectTickets(tx, sqlquery.Statement{Text: "SELECT " + ticketColumns + " FROM tickets WHERE " + condition, Args: args})
}

// selectTickets returns the rows of a query that selects ticketColumns.
func selectTickets(tx *gorm.DB, s sqlquery.Statement) (out []ticketRow, err error) {
	err = database.Rows(tx, func(rows *sql.Rows) error {
		var r ticketRow
		err := rows.Scan(
			&r.Number,
			&r.Kind,
			&r.State,
			&r.Version,
			&r.Requester,
			&r.Reason,
			&r.IdempotencyKey,
			&r.BreakGlass,
			&r.CreatedAt,
			&r.UpdatedAt,
			&r.TraceParent,
		)
		out = append(out, r)
		return err
	}, s.Text, s.Args...)
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
	numbers = padToPowerOfTwo(numbers) // so that the database has to prepare few different statements
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
	}, "SELECT ticket, body FROM items WHERE ticket IN ? ORDER BY ticket, position", numbers); err != nil {
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
	}, "SELECT ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment FROM ticket_events WHERE ticket IN ? ORDER BY seq", numbers); err != nil {
		return nil, err
	}
	return out, nil
}

// listed returns the rows of a list.
func listed(tx *gorm.DB, f approval.Filter) (out []ticketRow, err error) {
	rare, err := rarestWord(tx, f)
	if err != nil {
		return nil, err
	}
	return selectTickets(tx, list(tx, ticketColumns, f, rare))
}

// List implements approval.TicketStore.
func (s *Store) List(ctx context.Context, f approval.Filter) (out []*approval.Ticket, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		rows, err := listed(tx, f)
		if err != nil {
			return err
		}
		out = make([]*approval.Ticket, 0, len(rows))
		for chunk := range slices.Chunk(rows, maxQueryValues) {
			filled, err := fill(tx, chunk)
			if err != nil {
				return err
			}
			out = append(out, filled...)
		}
		return nil
	})
	return out, err
}

// count returns the query of the number of tickets that a filter selects, at most approval.CountLimit.
func count(tx *gorm.DB, f approval.Filter, rare string) sqlquery.Statement {
	f.After, f.ByUpdate = approval.Cursor{}, false
	numbers := union(tx, f, rare, approval.CountLimit)
	return sqlquery.Statement{Text: "SELECT COUNT(*) FROM (" + numbers.Text + " LIMIT ?) AS t", Args: append(numbers.Args, approval.CountLimit)}
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
			s := count(tx, f, rare)
			n, err := database.Number(tx, s.Text, s.Args...)
			if err != nil {
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
		return database.Rows(tx, func(rows *sql.Rows) error {
			var c approval.TicketChange
			var at int64
			err := rows.Scan(&c.Number, &c.State, &c.Version, &at)
			c.UpdatedAt = instant(at)
			out = append(out, c)
			return err
		}, "SELECT number, state, version, updated_at FROM tickets WHERE updated_at >= ? ORDER BY updated_at", micros(since))
	})
	return out, err
}
