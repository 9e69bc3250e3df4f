package gormstore

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/message"
)

// transition is a change of a ticket to be stored.
type transition struct {
	number int64
	change func(*approval.Ticket) error
	ticket *approval.Ticket
	// err is the reason why it is refused.
	err error
}

// Update implements approval.TicketStore.
func (s *Store) Update(ctx context.Context, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	x := &transition{number: number, change: change}
	if err := s.transitions.Write(ctx, x); err != nil {
		return nil, storeError(err)
	}
	s.stored(x.ticket)
	return x.ticket, nil
}

// stored is called after a change of a ticket was committed. It notifies the followers of the ticket and caches it.
func (s *Store) stored(t *approval.Ticket) {
	t.Stored()
	s.ticketCache.keep(rowOf(t), t.Clone())
}

func (s *Store) updateAll(tx *gorm.DB, some []*transition) ([]error, error) {
	for _, round := range splitByKeys(some, func(x *transition) []int64 { return []int64{x.number} }) {
		if err := s.update(tx, round); err != nil {
			return nil, err
		}
	}
	refused := make([]error, len(some))
	for i, x := range some {
		refused[i] = x.err
	}
	return refused, nil
}

// updateOne changes one ticket in a transaction in which the caller changes more.
func (s *Store) updateOne(tx *gorm.DB, number int64, change func(*approval.Ticket) error) (*approval.Ticket, error) {
	x := &transition{number: number, change: change}
	if err := s.update(tx, []*transition{x}); err != nil {
		return nil, err
	}
	return x.ticket, x.err
}

// update applies transitions, at most one for each ticket. It locks the tickets where the database has concurrent writers,
// and writes only if their versions are those that it has read.
func (s *Store) update(tx *gorm.DB, some []*transition) error {
	byNumber, err := s.locked(tx, some)
	if err != nil {
		return err
	}
	var all []changed
	var rows [][]any
	var claims []*approval.Ticket
	for _, x := range some {
		t := byNumber[x.number]
		x.ticket, x.err = t, nil
		if t == nil {
			x.err = gorm.ErrRecordNotFound
			continue
		}
		before, concerns, claimed := t.Version, t.Concerns(), t.Claims()
		if x.err = x.change(t); x.err != nil || !t.Dirty() {
			continue
		}
		all = append(all, changed{t, concerns})
		rows = append(rows, []any{t.Number, before, t.State(), t.Version, micros(t.UpdatedAt)})
		if !slices.Equal(claimed, t.Claims()) {
			claims = append(claims, t)
		}
	}
	if len(all) == 0 {
		return nil
	}
	for some := range slices.Chunk(rows, maxQueryValues) {
		// The columns of the request never change.
		table, args := database.Table(tx, some)
		n, err := database.Exec(tx, "WITH now (number, before, state, version, at) AS ("+table+`) UPDATE tickets SET state = now.state, version = now.version, updated_at = now.at
 FROM now WHERE tickets.number = now.number AND tickets.version = now.before`, args...)
		if err != nil {
			return err
		}
		if n != int64(len(some)) {
			return &approval.Error{Code: approval.CodeStale, Message: message.DecideTicketChangedMeanwhile()}
		}
	}
	if err := replaceClaims(tx, claims); err != nil {
		return err
	}
	return save(tx, all)
}

// locked returns copies of the tickets of transitions, by number.
func (s *Store) locked(tx *gorm.DB, some []*transition) (map[int64]*approval.Ticket, error) {
	numbers := make([]int64, len(some))
	for i, x := range some {
		numbers[i] = x.number
	}
	in, args := inValues(numbers)
	which := "number IN (" + in + ")"
	if tx.Name() != "sqlite" {
		which += " ORDER BY number FOR UPDATE" // always in the same order, so that transactions do not deadlock
	}
	rows, err := ticketRows(tx, which, args...)
	if err != nil {
		return nil, err
	}
	tickets, err := s.ticketCache.tickets(tx, rows, false)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]*approval.Ticket, len(tickets))
	for _, t := range tickets {
		out[t.Number] = t.Clone() // the cached ticket must not change
	}
	return out, nil
}

// replaceClaims replaces the claims of tickets. A failed ticket that is retried does not get a claim that another ticket has taken
// meanwhile.
func replaceClaims(tx *gorm.DB, tickets []*approval.Ticket) error {
	if len(tickets) == 0 {
		return nil
	}
	numbers := make([]int64, len(tickets))
	for i, t := range tickets {
		numbers[i] = t.Number
	}
	in, args := inValues(numbers)
	if _, err := database.Exec(tx, "DELETE FROM claims WHERE ticket IN ("+in+")", args...); err != nil {
		return err
	}
	_, err := insertClaims(tx, tickets)
	return err
}
