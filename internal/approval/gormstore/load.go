package gormstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
)

// Get implements approval.Store.
func (s *Store) Get(ctx context.Context, number int64) (t *approval.Ticket, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		t, err = load(tx, number)
		return err
	})
	return t, err
}

func load(tx *gorm.DB, number int64, lock ...clause.Expression) (*approval.Ticket, error) {
	var row ticketRow
	if err := tx.Clauses(lock...).First(&row, "number = ?", number).Error; err != nil {
		return nil, err
	}
	out, err := fill(tx, []ticketRow{row})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// fill reads the parts of many tickets with one query per table.
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
	in, args := someOf(numbers)
	if err := database.Rows(tx, func(rows *sql.Rows) error {
		var number int64
		var body []byte
		if err := rows.Scan(&number, &body); err != nil {
			return err
		}
		t := byNumber[number]
		t.Items = append(t.Items, approval.Item{})
		if err := json.Unmarshal(body, &t.Items[len(t.Items)-1]); err != nil {
			return fmt.Errorf("read an item of ticket %s: %w", t.ID(), err)
		}
		return nil
	}, "SELECT ticket, body FROM items WHERE ticket IN ("+in+") ORDER BY ticket, position", args...); err != nil {
		return nil, err
	}
	if err := database.Rows(tx, func(rows *sql.Rows) error {
		var number, at int64
		e := approval.Event{Saved: true}
		if err := rows.Scan(&number, &e.Item, &at, &e.Kind, &e.Actor, &e.OnBehalfOf, &e.Step, &e.Cluster, &e.Revision, &e.Comment); err != nil {
			return err
		}
		e.At = instant(at)
		t := byNumber[number]
		t.Events = append(t.Events, e)
		return nil
	}, "SELECT ticket, item, at, kind, actor, on_behalf_of, step, cluster, revision, comment FROM ticket_events WHERE ticket IN ("+in+") ORDER BY seq", args...); err != nil {
		return nil, err
	}
	return out, nil
}

// someOf are the values of an IN. The last is repeated up to the next power of two, so that a database has few forms of a
// statement to prepare.
func someOf(numbers []int64) (marks string, args []any) {
	n := 1
	for n < len(numbers) {
		n *= 2
	}
	args = make([]any, n)
	for i := range args {
		args[i] = numbers[min(i, len(numbers)-1)]
	}
	return strings.Repeat("?, ", n-1) + "?", args
}

func list(tx *gorm.DB, f approval.Filter) *gorm.DB {
	q := tx.Model(&ticketRow{})
	if ways, rest := walks(f); len(ways) == 1 && ways[0].table == "" {
		q = after(where(q.Where(ways[0].where, ways[0].args...), rest), f, "tickets.number")
	} else {
		numbers, args := union(tx, f, f.Limit)
		q = q.Where("number IN ("+numbers+")", args...)
	}
	switch {
	case f.Oldest:
		q = q.Order("number")
	case f.ByUpdate:
		q = q.Order("updated_at DESC, number DESC")
	default:
		q = q.Order("number DESC")
	}
	if f.Limit > 0 {
		q = q.Limit(f.Limit)
	}
	return q
}

// List implements approval.Store.
func (s *Store) List(ctx context.Context, f approval.Filter) (out []*approval.Ticket, err error) {
	if keeps(f) {
		return s.page(ctx, f)
	}
	return s.selected(ctx, f)
}

// selected reads a list.
func (s *Store) selected(ctx context.Context, f approval.Filter) (out []*approval.Ticket, err error) {
	kept := f.Limit > 0 && !f.Passing
	if kept {
		// Most pages were shown before, and then the one query that names their tickets' versions is all.
		if out, err = s.seen(ctx, f); err != nil || out != nil {
			return out, err
		}
	}
	err = s.read(ctx, func(tx *gorm.DB) error {
		var rows []ticketRow
		if err := list(tx, f).Find(&rows).Error; err != nil {
			return err
		}
		out, err = s.pages.tickets(tx, rows, kept)
		return err
	})
	return out, err
}

// seen is a page all of whose tickets were seen in their present versions; nil: some were not.
func (s *Store) seen(ctx context.Context, f approval.Filter) ([]*approval.Ticket, error) {
	var rows []ticketRow
	if err := s.readOne(ctx, func(tx *gorm.DB) error { return list(tx, f).Find(&rows).Error }); err != nil {
		return nil, err
	}
	out := make([]*approval.Ticket, len(rows))
	for i, r := range rows {
		var ok bool
		if out[i], ok = s.pages.get(r); !ok {
			return nil, nil
		}
	}
	return out, nil
}

// fillAtOnce keeps the number of a query's parameters below what databases accept.
const fillAtOnce = 500

const visibleTo = `tickets.requester = @p
 OR EXISTS (SELECT 1 FROM concerns c WHERE c.ticket = tickets.number AND (c.person = @p OR c.person IN @for AND c.role = 'named'))
 OR EXISTS (SELECT 1 FROM items i WHERE i.ticket = tickets.number AND (i.application_name IN @apps OR i.resource_name IN @res))`

// matching has no index: it looks at the tickets that the other conditions leave, newest first, until the page is full.
const matching = `LOWER(tickets.reason) LIKE @t ESCAPE '!' OR LOWER(tickets.requester) LIKE @t ESCAPE '!'
 OR EXISTS (SELECT 1 FROM items i WHERE i.ticket = tickets.number AND (LOWER(i.application) LIKE @t ESCAPE '!' OR LOWER(i.resource) LIKE @t ESCAPE '!'))`

// where is what walks do not see to; of who waits they see to all. SQLite, which knows nothing of how many tickets have
// a state, must not leave the walk for the state's index: a column with a plus is not looked up.
func where(q *gorm.DB, f approval.Filter) *gorm.DB {
	column := "tickets."
	if q.Name() == "sqlite" {
		column = "+tickets."
	}
	if len(f.Numbers) > 0 {
		q = q.Where("tickets.number IN ?", f.Numbers)
	}
	if f.Text != "" {
		part := strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(strings.ToLower(f.Text))
		q = q.Where(matching, map[string]any{"t": "%" + part + "%"})
	}
	if f.Requester != "" {
		q = q.Where(column+"requester = ?", f.Requester)
	}
	if len(f.Kinds) > 0 {
		q = q.Where(column+"kind IN ?", f.Kinds)
	}
	if len(f.States) > 0 {
		q = q.Where(column+"state IN ?", f.States)
	}
	if f.DecidedBy != "" {
		q = q.Where("EXISTS (SELECT 1 FROM concerns c WHERE c.ticket = tickets.number AND c.role = 'decided' AND c.person = ?)", f.DecidedBy)
	}
	if v := f.VisibleTo; v != nil {
		q = q.Where(visibleTo, map[string]any{"p": v.Person, "for": v.StandsFor, "apps": v.Applications, "res": v.Resources})
	}
	if conditions, args := ofItem(f); len(conditions) > 0 {
		q = q.Where("EXISTS (SELECT 1 FROM items i WHERE i.ticket = tickets.number AND "+strings.Join(conditions, " AND ")+")", args...)
	}
	return q
}

// ofItem are the conditions that one item must meet together.
func ofItem(f approval.Filter) (conditions []string, args []any) {
	add := func(condition string, values ...any) {
		conditions, args = append(conditions, condition), append(args, values...)
	}
	if len(f.ItemStates) > 0 {
		add("i.state IN ?", f.ItemStates)
	}
	if f.Application != "" {
		add("i.application = ?", f.Application)
	}
	if f.Resource != "" {
		add("i.resource = ?", f.Resource)
	}
	if f.Policy != "" {
		add("i.policy = ?", f.Policy)
	}
	if f.Target != nil {
		add("i.target_ticket = ? AND i.target_item = ?", f.Target.Ticket, f.Target.Item)
	}
	if !f.DueBy.IsZero() {
		add("i.due_at > 0 AND i.due_at <= ?", micros(f.DueBy))
	}
	if !f.ExpiresBy.IsZero() {
		add("i.expires_at > 0 AND i.expires_at <= ?", micros(f.ExpiresBy))
	}
	return conditions, args
}

func count(tx *gorm.DB, f approval.Filter) *gorm.DB {
	f.After, f.ByUpdate = approval.Cursor{}, false
	numbers, args := union(tx, f, approval.CountLimit)
	return tx.Table("("+numbers+" LIMIT ?) AS t", append(args, approval.CountLimit)...)
}

// Count implements approval.Store.
func (s *Store) Count(ctx context.Context, filters ...approval.Filter) ([]int, error) {
	out := make([]int, len(filters))
	err := s.read(ctx, func(tx *gorm.DB) error {
		for i, f := range filters {
			var n int64
			if err := count(tx, f).Count(&n).Error; err != nil {
				return err
			}
			out[i] = int(n)
		}
		return nil
	})
	return out, err
}

// ChangedSince implements approval.Store.
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
