package gormstore

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/message"
)

// creation is a ticket to be created.
type creation struct {
	ticket *approval.Ticket
	// stored is the ticket, or the one that an earlier attempt of the same request created.
	stored *approval.Ticket
	// err is the reason why it is refused.
	err error
}

// Create implements approval.TicketStore.
func (s *Store) Create(ctx context.Context, t *approval.Ticket) (*approval.Ticket, error) {
	c := &creation{ticket: t}
	var err error
	for range 2 {
		// Another replica may have used the idempotency key since it was searched for. The second attempt finds its ticket.
		if err = s.creations.Write(ctx, c); !errors.Is(err, database.ErrConflict) {
			break
		}
	}
	if err != nil {
		return nil, storeError(err)
	}
	s.stored(c.stored)
	return c.stored, nil
}

// keys returns the values that two creations in one SQL statement must not share, because the second must see the first.
func (c *creation) keys() (out []any) {
	if c.ticket.IdempotencyKey != "" {
		out = append(out, c.request())
	}
	for _, insertClaims := range c.ticket.Claims() {
		out = append(out, insertClaims)
	}
	return out
}

// request returns the requester and the idempotency key.
func (c *creation) request() [2]string { return [2]string{c.ticket.Requester, c.ticket.IdempotencyKey} }

func createAll(tx *gorm.DB, some []*creation) ([]error, error) {
	for _, c := range some {
		c.stored, c.err = c.ticket, nil
	}
	for _, round := range splitByKeys(some, (*creation).keys) {
		if err := create(tx, round); err != nil {
			return nil, err
		}
	}
	refused := make([]error, len(some))
	for i, c := range some {
		refused[i] = c.err
	}
	return refused, nil
}

// splitByKeys splits writes into rounds, so that no two writes of a round share a key. It keeps the order of writes that do.
func splitByKeys[T any, K comparable](some []T, keys func(T) []K) (out [][]T) {
	for len(some) > 0 {
		taken := map[K]bool{}
		var now, later []T
	writes:
		for _, x := range some {
			all := keys(x)
			for _, k := range all {
				if taken[k] {
					later = append(later, x)
					continue writes
				}
			}
			for _, k := range all {
				taken[k] = true
			}
			now = append(now, x)
		}
		out, some = append(out, now), later
	}
	return out
}

func create(tx *gorm.DB, some []*creation) error {
	some, err := withoutEarlierTicket(tx, some)
	if err != nil || len(some) == 0 {
		return err
	}
	numbers, err := nextNumbers(tx, len(some))
	if err != nil {
		return err
	}
	rows := make([][]any, len(some))
	tickets := make([]*approval.Ticket, len(some))
	for i, c := range some {
		c.ticket.Numbered(numbers[i])
		r := rowOf(c.ticket)
		tickets[i] = c.ticket
		rows[i] = []any{r.Number, r.Kind, r.State, r.Version, r.Requester, r.Reason, r.IdempotencyKey, r.BreakGlass, r.CreatedAt, r.UpdatedAt, r.TraceParent}
	}
	if _, err := database.Insert(tx, "tickets ("+ticketColumns+")", "", rows); err != nil {
		return err
	}
	// The insertion of a claim waits for other transactions that insert the same one.
	all, err := insertClaims(tx, tickets)
	if err != nil {
		return err
	}
	if !all {
		if some, err = withAllClaims(tx, some); err != nil {
			return err
		}
	}
	if err := saveWords(tx, some); err != nil {
		return err
	}
	out := make([]changed, len(some))
	for i, c := range some {
		out[i] = changed{Ticket: c.ticket}
	}
	return save(tx, out)
}

// withoutEarlierTicket returns the creations whose request has no ticket yet. It sets the stored ticket of the others.
func withoutEarlierTicket(tx *gorm.DB, some []*creation) (out []*creation, err error) {
	var keys [][]any
	for _, c := range some {
		if c.ticket.IdempotencyKey != "" {
			keys = append(keys, []any{c.ticket.Requester, c.ticket.IdempotencyKey})
		}
	}
	if len(keys) == 0 {
		return some, nil
	}
	table, args := database.Table(tx, keys)
	rows, err := ticketRows(tx, "(requester, idempotency_key) IN ("+table+")", args...)
	if err != nil || len(rows) == 0 {
		return some, err
	}
	same, err := fill(tx, rows)
	if err != nil {
		return nil, err
	}
	for _, c := range some {
		for _, t := range same {
			if t.IdempotencyKey == c.ticket.IdempotencyKey && t.Requester == c.ticket.Requester {
				c.stored = t
			}
		}
		if c.stored == c.ticket {
			out = append(out, c)
		}
	}
	return out, nil
}

// nextNumbers returns the numbers of n new tickets. SQLite has one writer at a time, so no other transaction uses them.
func nextNumbers(tx *gorm.DB, n int) ([]int64, error) {
	out := make([]int64, 0, n)
	each := func(rows *sql.Rows) error {
		var number int64
		err := rows.Scan(&number)
		out = append(out, number)
		return err
	}
	if tx.Name() != "sqlite" {
		err := database.Rows(tx, each, "SELECT nextval(pg_get_serial_sequence('tickets', 'number')) FROM generate_series(1, CAST(? AS BIGINT))", n)
		return out, err
	}
	err := database.Rows(tx, each, "SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'tickets'")
	for len(out) > 0 && len(out) < n {
		out = append(out, out[len(out)-1]+1)
	}
	return out, err
}

// withAllClaims returns the creations that have all of their claims. It refuses the others and deletes their rows.
func withAllClaims(tx *gorm.DB, some []*creation) (out []*creation, err error) {
	numbers := make([]int64, len(some))
	for i, c := range some {
		numbers[i] = c.ticket.Number
	}
	has := map[int64]int{}
	in, args := inValues(numbers)
	if err := database.Rows(tx, func(rows *sql.Rows) error {
		var ticket int64
		var n int
		err := rows.Scan(&ticket, &n)
		has[ticket] = n
		return err
	}, "SELECT ticket, COUNT(*) FROM claims WHERE ticket IN ("+in+") GROUP BY ticket", args...); err != nil {
		return nil, err
	}
	for _, c := range some {
		claims := c.ticket.Claims()
		if has[c.ticket.Number] == len(claims) {
			out = append(out, c)
			continue
		}
		for _, statement := range []string{"DELETE FROM claims WHERE ticket = ?", "DELETE FROM tickets WHERE number = ?"} {
			if _, err := database.Exec(tx, statement, c.ticket.Number); err != nil {
				return nil, err
			}
		}
		other, err := claimedBy(tx, claims)
		if err != nil {
			return nil, err
		}
		c.err = &approval.Error{Code: approval.CodeDuplicate, Ticket: other, Message: message.RequestDuplicate()}
	}
	return out, nil
}
