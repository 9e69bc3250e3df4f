package gormstore

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/lru"

	"github.com/acp-io/acp/internal/approval"
)

const (
	keepLists  = 2048
	keepPeople = 8192
	// keepUnasked bounds how long something is kept without looking at the database again: it is right as long as all
	// that changes tickets says so, which a hand in the database does not, nor a replica of an earlier version.
	keepUnasked = 30 * time.Second
)

// lists keeps the pages that were shown lately. A page holds until one of its tickets changes, or another ticket changes
// so that it belongs there; the changes since it was last shown tell.
type lists struct{ shown *lru.Cache } // of [32]byte to *shown

type shown struct {
	filter  approval.Filter
	tickets []*approval.Ticket
	till    time.Time

	mu   sync.Mutex
	mark mark // up to which the page is known to hold
}

func newLists() lists { return lists{lru.New(keepLists)} }

// keeps reports whether a list is one that people see again and again. Searches and what depends on an instant is not,
// and for a walk from the oldest there is no page.
func keeps(f approval.Filter) bool {
	return f.Limit > 0 && !f.Passing && !f.Oldest && len(f.Numbers) == 0 && f.Text == "" && f.DueBy.IsZero() && f.ExpiresBy.IsZero()
}

// get is the page of a filter, if it still holds.
func (l lists) get(key [32]byte, c *changes) ([]*approval.Ticket, bool) {
	v, ok := l.shown.Get(key)
	if !ok {
		return nil, false
	}
	p := v.(*shown)
	if !p.holds(c) {
		l.shown.Remove(key)
		return nil, false
	}
	return copies(p.tickets), true
}

func (p *shown) holds(c *changes) bool {
	if time.Now().After(p.till) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	some, head, ok := c.since(p.mark)
	if !ok {
		return false
	}
	for _, x := range some {
		// Where a changed ticket comes in the order is not asked: that it belongs to the list is enough.
		if x.ticket != nil && (p.filter.Matches(x.ticket) || p.has(x.number)) {
			return false
		}
	}
	p.mark = head
	return true
}

func (p *shown) has(number int64) bool {
	return slices.ContainsFunc(p.tickets, func(t *approval.Ticket) bool { return t.Number == number })
}

// copies let nobody change what is kept.
func copies(tickets []*approval.Ticket) []*approval.Ticket {
	all := make([]approval.Ticket, len(tickets))
	out := make([]*approval.Ticket, len(tickets))
	for i, t := range tickets {
		all[i] = *t
		out[i] = &all[i]
	}
	return out
}

// keep a page that was read when all changes up to a mark could be seen.
func (l lists) keep(key [32]byte, f approval.Filter, tickets []*approval.Ticket, m mark) {
	l.shown.Add(key, &shown{filter: f, tickets: copies(tickets), till: time.Now().Add(keepUnasked), mark: m})
}

// keyOf a filter for which keeps is true.
func keyOf(f approval.Filter) [32]byte {
	var b []byte
	add := func(values ...string) {
		b = binary.AppendUvarint(b, uint64(len(values)))
		for _, v := range values {
			b = append(binary.AppendUvarint(b, uint64(len(v))), v...)
		}
	}
	number := func(n int64) { b = binary.AppendVarint(b, n) }
	there := func(yes bool) bool {
		b = append(b, map[bool]byte{true: 1}[yes])
		return yes
	}
	add(f.Requester, f.DecidedBy, f.Application, f.Resource, f.Policy)
	add(texts(f.Kinds)...)
	add(texts(f.States)...)
	add(texts(f.ItemStates)...)
	if w := f.WaitsFor; there(w != nil) {
		add(w.Person)
		add(w.StandsFor...)
	}
	if v := f.VisibleTo; there(v != nil) {
		add(v.Person)
		add(v.StandsFor...)
		add(v.Applications...)
		add(v.Resources...)
	}
	if t := f.Target; there(t != nil) {
		number(t.Ticket)
		number(int64(t.Item))
	}
	there(f.ByUpdate)
	number(micros(f.After.UpdatedAt))
	number(f.After.Number)
	number(int64(f.Limit))
	return sha256.Sum256(b)
}

func texts[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// page is a list that people see.
func (s *Store) page(ctx context.Context, f approval.Filter) ([]*approval.Ticket, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	if err := s.readChanged(ctx); err != nil {
		return nil, err
	}
	key := keyOf(f)
	if out, ok := s.lists.get(key, s.changes); ok {
		return out, nil
	}
	// What is committed from here on may be in the page already; then it is found to have changed once too often.
	head := s.changes.now()
	out, err := s.selected(ctx, f)
	if err == nil {
		s.lists.keep(key, f, out, head)
	}
	return out, err
}
