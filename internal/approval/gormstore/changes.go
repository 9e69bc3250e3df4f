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
	// changesKnown is how many changes are looked at one by one; who is further behind reads everything again.
	changesKnown = 256
	// changesStored is how many rows stay, more than anybody looks at.
	changesStored = 4 * changesKnown

	ofDelegation = 0 // the ticket of a change that is about a delegation
)

// tell all replicas that tickets have new versions. Its caller has the ledger's lock: writers of changes go one after the
// other from there to their commit, so a change can be seen only when all with lower numbers can.
func tell(tx *gorm.DB, tickets ...*approval.Ticket) error {
	rows := make([][]any, len(tickets))
	for i, t := range tickets {
		rows[i] = []any{t.Number}
	}
	return tellOf(tx, rows)
}

// tellDelegation is tell for a delegation.
func tellDelegation(tx *gorm.DB) error { return tellOf(tx, [][]any{{ofDelegation}}) }

func tellOf(tx *gorm.DB, rows [][]any) error {
	for some := range slices.Chunk(rows, changesKnown) {
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
		if (last-int64(len(some)))/changesKnown == last/changesKnown {
			continue
		}
		if _, err := database.Exec(tx, "DELETE FROM changes WHERE seq <= ?", last-changesStored); err != nil {
			return err
		}
	}
	return nil
}

// changes is what a replica knows of what was changed lately, by itself or by others. Whatever is kept in memory of
// tickets is kept with the number of the last change that it has seen; asked for again, the changes since then tell
// whether it still holds.
type changes struct {
	polls, reads *database.Lookup[everything, everything]

	mu sync.RWMutex
	// head is the last change that was seen; negative: nothing was read yet.
	head mark
	// recent are those behind floor up to head.
	recent []change
	floor  int64
	// delegations is the last change of a delegation.
	delegations int64
}

// mark is a place among the changes. Those of another age have nothing to do with each other.
type mark struct{ age, seq int64 }

type change struct {
	seq    int64
	number int64
	ticket *approval.Ticket // as it was after the change, or later; nil: not read yet
}

// everything is the one thing that callers of a lookup ask for who want the same done.
type everything = struct{}

func newChanges(poll, read func(ctx context.Context) error) *changes {
	same := func(f func(ctx context.Context) error) *database.Lookup[everything, everything] {
		return database.NewLookup(func(ctx context.Context, _ []everything) (map[everything]everything, error) { return nil, f(ctx) })
	}
	return &changes{polls: same(poll), reads: same(read), head: mark{seq: -1}}
}

// since are the changes behind a mark whose tickets were read, and the mark up to which that is; false: too many, or too
// long ago.
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

func (x change) unread() bool { return x.ticket == nil && x.number != ofDelegation }

// now is the last change that was seen.
func (c *changes) now() mark {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.head
}

// delegated reports whether a delegation has changed since a mark.
func (c *changes) delegated(m mark) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return m.age != c.head.age || m.seq < c.delegations
}

// look makes sure that everything is known that was committed before.
func (s *Store) look(ctx context.Context) error {
	_, _, err := s.changes.polls.Get(ctx, everything{})
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
	// The last change known is asked for, too: if it is gone, there may be others between it and what is left.
	known := head == 0 && len(rows) == 0 || len(rows) > 0 && rows[0].seq == head
	if !known || len(rows) > changesKnown {
		return s.beginAgain(ctx)
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
	}, "SELECT seq, ticket FROM changes WHERE seq >= ? ORDER BY seq LIMIT ?", seq, changesKnown+2)
	return out, err
}

// readChanged reads the tickets of the changes that are known, in the versions that they have by now.
func (s *Store) readChanged(ctx context.Context) error {
	c := s.changes
	if numbers, _ := c.unread(); len(numbers) == 0 {
		return nil
	}
	_, _, err := c.reads.Get(ctx, everything{})
	return storeError(err)
}

func (s *Store) readUnread(ctx context.Context) error {
	c := s.changes
	numbers, last := c.unread()
	if len(numbers) == 0 {
		return nil
	}
	byNumber := make(map[int64]*approval.Ticket, len(numbers))
	for _, n := range numbers {
		byNumber[n] = &approval.Ticket{Number: n} // whatever is not there belongs to no list
	}
	if err := s.db.Read(ctx, func(tx *gorm.DB) error {
		in, args := someOf(numbers)
		rows, err := ticketRows(tx, "number IN ("+in+")", args...)
		if err != nil {
			return err
		}
		tickets, err := s.pages.tickets(tx, rows, true)
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

// unread are the tickets of changes that were not read yet, and the last of these changes.
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

// read takes tickets that were read after the last of some changes. Of a later change they may be too old.
func (c *changes) read(byNumber map[int64]*approval.Ticket, last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.recent) // others read the old one
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
		if x.number == ofDelegation {
			c.delegations = x.seq
		}
	}
	// Never in place: whoever reads the changes has a part of the slice.
	all := slices.Concat(c.recent, some)
	if drop := len(all) - changesKnown; drop > 0 {
		c.floor = all[drop-1].seq
		all = all[drop:]
	}
	c.recent = all
}

// beginAgain forgets what was known, so that nothing that is kept holds any more.
func (s *Store) beginAgain(ctx context.Context) error {
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
