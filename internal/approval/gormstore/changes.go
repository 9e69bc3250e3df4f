package gormstore

import (
	"context"
	"database/sql"
	"slices"
	"sync"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
)

const (
	// maxKnownChanges is the number of changes that a replica holds in memory. A replica that is further behind discards
	// all that it has cached.
	maxKnownChanges = 256
	// minStoredChanges is the minimum number of rows that stay in the table, more than any replica reads.
	minStoredChanges = 4 * maxKnownChanges

	// delegationTicket is the ticket number of changes of delegations.
	delegationTicket = 0
)

// recordChanges adds rows to the table of changes, by which all replicas notice that tickets have new versions. The caller must hold
// the ledger's lock, which it keeps until it commits: the numbers of changes then have the order of the commits.
func recordChanges(tx *gorm.DB, tickets ...*approval.Ticket) error {
	rows := make([][]any, len(tickets))
	for i, t := range tickets {
		rows[i] = []any{t.Number}
	}
	return insertChanges(tx, rows)
}

// recordDelegationChange does the same for a change of a delegation.
func recordDelegationChange(tx *gorm.DB) error { return insertChanges(tx, [][]any{{delegationTicket}}) }

func insertChanges(tx *gorm.DB, rows [][]any) error {
	for some := range slices.Chunk(rows, maxKnownChanges) {
		table, args := database.Table(tx, some)
		var last int64
		if err := database.Rows(tx, func(rows *sql.Rows) error {
			var seq int64
			err := rows.Scan(&seq)
			last = max(last, seq)
			return err
		}, "INSERT INTO changes (ticket) "+table+" RETURNING seq", args...); err != nil {
			return err
		}
		if (last-int64(len(some)))/maxKnownChanges == last/maxKnownChanges {
			continue
		}
		if _, err := database.Exec(tx, "DELETE FROM changes WHERE seq <= ?", last-minStoredChanges); err != nil {
			return err
		}
	}
	return nil
}

// changes holds the latest changes by all replicas, as this replica has read them. Each cached page has the position of
// the last change at the time when it was read; the changes since that position determine whether it is still valid.
type changes struct {
	polls, reads *database.Lookup[singleKey, singleKey]

	mu sync.RWMutex
	// head is the position of the last change that was read. Its seq is negative until the first read.
	head mark
	// recent contains the changes after floor, up to head.
	recent []change
	floor  int64
	// delegations is the number of the last change of a delegation.
	delegations int64
}

// mark is a position among the changes. Positions of different ages cannot be compared: age increases when the changes are
// read from the beginning.
type mark struct{ age, seq int64 }

type change struct {
	seq    int64
	number int64
	// ticket is the ticket after the change or later; nil if it was not read yet.
	ticket *approval.Ticket
}

// singleKey is the only key of a lookup whose callers all want the same result.
type singleKey = struct{}

func newChanges(poll, read func(ctx context.Context) error) *changes {
	same := func(f func(ctx context.Context) error) *database.Lookup[singleKey, singleKey] {
		return database.NewLookup(func(ctx context.Context, _ []singleKey) (map[singleKey]singleKey, error) { return nil, f(ctx) })
	}
	return &changes{polls: same(poll), reads: same(read), head: mark{seq: -1}}
}

// since returns the changes after a position whose tickets were read, and the position of the last of them. It returns
// false if changes since then are no longer held.
func (c *changes) since(m mark) (some []change, head mark, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if m.age != c.head.age || m.seq < c.floor {
		return nil, c.head, false
	}
	i, _ := slices.BinarySearchFunc(c.recent, m.seq+1, func(x change, seq int64) int { return int(x.seq - seq) })
	some = c.recent[i:]
	if n := slices.IndexFunc(some, change.unread); n >= 0 {
		return some[:n], mark{m.age, max(m.seq, some[n].seq-1)}, true
	}
	return some, c.head, true
}

func (x change) unread() bool { return x.ticket == nil && x.number != delegationTicket }

// now returns the position of the last change that was read.
func (c *changes) now() mark {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.head
}

// delegated reports whether a delegation has changed since a position.
func (c *changes) delegated(m mark) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return m.age != c.head.age || m.seq < c.delegations
}

// look reads the changes that were committed before the call. Concurrent callers share a query.
func (s *Store) look(ctx context.Context) error {
	_, _, err := s.changes.polls.Get(ctx, singleKey{})
	return storeError(err)
}

func (s *Store) poll(ctx context.Context) error {
	head := s.changes.now().seq
	var rows []change
	if err := s.db.ReadOne(ctx, func(tx *gorm.DB) (err error) {
		rows, err = changesFrom(tx, head)
		return err
	}); err != nil {
		return err
	}
	// The query includes the last known change. If it was deleted, so may be others after it.
	known := head == 0 && len(rows) == 0 || len(rows) > 0 && rows[0].seq == head
	if !known || len(rows) > maxKnownChanges {
		return s.resetChanges(ctx)
	}
	if len(rows) < 2 {
		return nil
	}
	s.changes.add(rows[1:])
	return nil
}

func changesFrom(tx *gorm.DB, seq int64) (out []change, err error) {
	err = database.Rows(tx, func(rows *sql.Rows) error {
		var c change
		err := rows.Scan(&c.seq, &c.number)
		out = append(out, c)
		return err
	}, "SELECT seq, ticket FROM changes WHERE seq >= ? ORDER BY seq LIMIT ?", seq, maxKnownChanges+2)
	return out, err
}

// readChanged reads the tickets of the changes that were read, in their current versions.
func (s *Store) readChanged(ctx context.Context) error {
	c := s.changes
	if numbers, _ := c.unread(); len(numbers) == 0 {
		return nil
	}
	_, _, err := c.reads.Get(ctx, singleKey{})
	return storeError(err)
}

func (s *Store) readChangedTickets(ctx context.Context) error {
	c := s.changes
	numbers, last := c.unread()
	if len(numbers) == 0 {
		return nil
	}
	byNumber := make(map[int64]*approval.Ticket, len(numbers))
	for _, n := range numbers {
		byNumber[n] = &approval.Ticket{Number: n} // a ticket that does not exist belongs to no list
	}
	if err := s.db.Read(ctx, func(tx *gorm.DB) error {
		in, args := inValues(numbers)
		rows, err := ticketRows(tx, "number IN ("+in+")", args...)
		if err != nil {
			return err
		}
		tickets, err := s.ticketCache.tickets(tx, rows, true)
		for _, t := range tickets {
			byNumber[t.Number] = t
		}
		return err
	}); err != nil {
		return err
	}
	c.read(byNumber, last)
	return nil
}

// unread returns the numbers of the changed tickets that were not read yet, and the number of the last of these changes.
func (c *changes) unread() (numbers []int64, last int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, x := range c.recent {
		if x.unread() {
			numbers, last = append(numbers, x.number), x.seq
		}
	}
	return numbers, last
}

// read adds tickets that were read after the change last. They are not used for later changes, for which they may be too old.
func (c *changes) read(byNumber map[int64]*approval.Ticket, last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.recent) // callers of since may still read the old slice
	for i, x := range all {
		if x.unread() && x.seq <= last {
			all[i].ticket = byNumber[x.number]
		}
	}
	c.recent = all
}

func (c *changes) add(some []change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.seq = some[len(some)-1].seq
	for _, x := range some {
		if x.number == delegationTicket {
			c.delegations = x.seq
		}
	}
	// The slice is never changed in place, because callers of since hold parts of it.
	all := slices.Concat(c.recent, some)
	if drop := len(all) - maxKnownChanges; drop > 0 {
		c.floor = all[drop-1].seq
		all = all[drop:]
	}
	c.recent = all
}

// resetChanges discards all changes and begins a new age, which makes everything that is cached invalid.
func (s *Store) resetChanges(ctx context.Context) error {
	var head int64
	if err := s.db.ReadOne(ctx, func(tx *gorm.DB) error {
		return database.Rows(tx, func(rows *sql.Rows) error { return rows.Scan(&head) }, "SELECT COALESCE(MAX(seq), 0) FROM changes")
	}); err != nil {
		return err
	}
	c := s.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head, c.floor, c.delegations, c.recent = mark{c.head.age + 1, head}, head, head, nil
	return nil
}
