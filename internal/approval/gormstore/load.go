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
		found, err := readTickets(tx, ticketQuery("number = ?", number), "number")
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return approval.NotFound()
		}
		t = found[0]
		return addEvents(tx, found, false)
	})
	return t, err
}

const ticketColumns = "number, kind, state, version, requester, reason, idempotency_key, break_glass, created_at, updated_at, trace_parent"

// ticketQuery returns the query of the tickets that meet a condition.
func ticketQuery(condition string, args ...any) sqlquery.Statement {
	return sqlquery.Statement{Text: "SELECT " + ticketColumns + " FROM tickets WHERE " + condition, Args: args}
}

// columns returns where the values of ticketColumns are scanned to.
func (r *ticketRow) columns() []any {
	return []any{&r.Number, &r.Kind, &r.State, &r.Version, &r.Requester, &r.Reason, &r.IdempotencyKey, &r.BreakGlass, &r.CreatedAt, &r.UpdatedAt,
		&r.TraceParent}
}

// readTickets returns the tickets of a query that selects ticketColumns, with their items and without their events, in one
// statement. order is the order of the tickets, by columns of the query.
func readTickets(tx *gorm.DB, query sqlquery.Statement, order string) (out []*approval.Ticket, err error) {
	err = database.Rows(tx, func(rows *sql.Rows) error {
		var r ticketRow
		var body []byte
		if err := rows.Scan(append(r.columns(), &body)...); err != nil {
			return err
		}
		if len(out) == 0 || out[len(out)-1].Number != r.Number {
			out = append(out, r.ticket())
		}
		if body == nil {
			return nil
		}
		return addItem(out[len(out)-1], body)
	}, "SELECT t.*, i.body FROM ("+query.Text+") AS t LEFT JOIN items i ON i.ticket = t.number ORDER BY "+order+", i.position", query.Args...)
	return out, err
}

// lockTicket returns a ticket with its items and events, or nil if there is none, and locks it where the database has concurrent
// writers. The items and events are read after the lock was obtained, because a statement that waits for a lock reads the other
// tables as they were before it waited.
func lockTicket(tx *gorm.DB, number int64) (t *approval.Ticket, err error) {
	query := ticketQuery("number = ?", number)
	if err := database.Rows(tx, func(rows *sql.Rows) error {
		var r ticketRow
		err := rows.Scan(r.columns()...)
		t = r.ticket()
		return err
	}, query.Text+database.ForUpdate(tx), query.Args...); err != nil || t == nil {
		return nil, err
	}
	if err := database.Rows(tx, func(rows *sql.Rows) error {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return err
		}
		return addItem(t, body)
	}, "SELECT body FROM items WHERE ticket = ? ORDER BY position", number); err != nil {
		return nil, err
	}
	return t, addEvents(tx, []*approval.Ticket{t}, false)
}

// addItem adds the next item of a ticket from its column body.
func addItem(t *approval.Ticket, body []byte) error {
	it, err := decodeItem(body)
	if err != nil {
		return fmt.Errorf("read an item of ticket %s: %w", t.ID(), err)
	}
	t.Items = append(t.Items, it)
	return nil
}

// addEvents reads the events of tickets, without comments if omitComments is set.
func addEvents(tx *gorm.DB, tickets []*approval.Ticket, omitComments bool) error {
	query, kinds := "SELECT ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment, through FROM ticket_events "+
		"WHERE ticket IN ?", []any{}
	if omitComments {
		query, kinds = query+" AND kind <> ?", append(kinds, approval.EventComment)
	}
	byNumber := make(map[int64]*approval.Ticket, len(tickets))
	numbers := make([]int64, len(tickets))
	for i, t := range tickets {
		byNumber[t.Number], numbers[i] = t, t.Number
	}
	for chunk := range slices.Chunk(numbers, maxQueryValues) {
		// Padded, so that the database has to prepare few different statements.
		if err := database.Rows(tx, func(rows *sql.Rows) error {
			var number, at int64
			var comment string
			e := approval.Event{Saved: true}
			if err := rows.Scan(
				&number, &e.Item, &at, &e.Kind, &e.Actor, &e.OnBehalfOf, &e.Step, &e.Cluster, &e.Revision, &comment, &e.Through,
			); err != nil {
				return err
			}
			e.At = database.Instant(at)
			setComment(&e, comment)
			t := byNumber[number]
			t.Events = append(t.Events, e)
			return nil
		}, query+" ORDER BY seq", append([]any{padToPowerOfTwo(chunk)}, kinds...)...); err != nil {
			return err
		}
	}
	return nil
}

// List implements approval.TicketStore.
func (s *Store) List(ctx context.Context, f approval.Filter) ([]*approval.Ticket, error) {
	return s.listWith(ctx, f, limitsOfPages)
}

// listWith is List with other limits.
func (s *Store) listWith(ctx context.Context, f approval.Filter, limits pageLimits) (out []*approval.Ticket, err error) {
	var word textWord
	if f.Text != "" {
		if err := s.readOne(ctx, func(tx *gorm.DB) (err error) {
			word, err = rarestWord(tx, f, limits)
			return err
		}); err != nil || word.none {
			return nil, err
		}
	}
	byCandidates := usesCandidates(f, word.rare)
	read := s.read
	if f.OmitEvents && !byCandidates && !f.ByUpdate && !f.ByEnd {
		read = s.readOne
	}
	err = read(ctx, func(tx *gorm.DB) (err error) {
		switch {
		case f.ByEnd:
			out, err = readByEnd(tx, f)
		case byCandidates:
			out, err = readByCandidates(tx, f, word.selective, limits)
		default:
			var query sqlquery.Statement
			if query, err = listQuery(tx, f, word.rare, limits); err != nil {
				return err
			}
			out, err = readTickets(tx, query, listOrder(f))
		}
		if err != nil || f.OmitEvents {
			return err
		}
		return addEvents(tx, out, f.OmitComments)
	})
	return out, err
}

// listQuery returns the query of the tickets of a list that is not read by candidates. rare is a word of its text that few tickets have,
// or empty.
func listQuery(tx *gorm.DB, f approval.Filter, rare string, limits pageLimits) (sqlquery.Statement, error) {
	scan, err := scansUpdates(tx, f, rare, limits)
	if scan {
		return byUpdate(tx, ticketColumns, f), err
	}
	return list(tx, ticketColumns, f, rare), err
}

// count returns the query of the number of tickets that a filter selects, at most approval.CountLimit.
func count(tx *gorm.DB, f approval.Filter, rare string) sqlquery.Statement {
	f.After, f.ByUpdate, f.ByEnd, f.Oldest = approval.Cursor{}, false, false, false
	numbers := union(tx, f, rare, approval.CountLimit)
	return sqlquery.Statement{
		Text: "SELECT COUNT(*) FROM (SELECT DISTINCT n FROM (" + numbers.Text + ") AS u LIMIT ?) AS t",
		Args: append(numbers.Args, approval.CountLimit),
	}
}

// Count implements approval.TicketStore.
func (s *Store) Count(ctx context.Context, filters ...approval.Filter) ([]int, error) {
	out := make([]int, len(filters))
	err := s.read(ctx, func(tx *gorm.DB) error {
		for i, f := range filters {
			word, err := rarestWord(tx, f, limitsOfPages)
			if err != nil {
				return err
			}
			if word.none {
				continue
			}
			s := count(tx, f, word.rare)
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
			c.UpdatedAt = database.Instant(at)
			out = append(out, c)
			return err
		}, "SELECT number, state, version, updated_at FROM tickets WHERE updated_at >= ? ORDER BY updated_at", database.Micros(since))
	})
	return out, err
}
