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
	maxCachedPages  = 2048
	maxCachedPeople = 8192
	// maxCacheAge is how long a page or a delegation is cached at most. Its validity is determined by the table of changes,
	// to which manual changes of the database and replicas of earlier versions add nothing.
	maxCacheAge = 30 * time.Second
)

// pageCache caches pages of tickets by the key of their filter. A page is valid until one of its tickets changes, or until a
// changed ticket matches its filter.
type pageCache struct{ shown *lru.Cache }

type shown struct {
	filter  approval.Filter
	tickets []*approval.Ticket
	till    time.Time

	mu sync.Mutex
	// mark is the position of the changes up to which the page is known to be valid.
	mark mark
}

func newPageCache() pageCache { return pageCache{lru.New(maxCachedPages)} }

// isCacheable reports whether lists of a filter are cached. Searches and lists that depend on an instant are not, because they are
// rarely requested again, and neither are lists from the oldest ticket on, which are not pages.
func isCacheable(f approval.Filter) bool {
	return f.Limit > 0 && !f.Passing && !f.Oldest && len(f.Numbers) == 0 && f.Text == "" && f.DueBy.IsZero() && f.ExpiresBy.IsZero()
}

// get returns the cached page of a filter, if it is still valid.
func (l pageCache) get(key [32]byte, c *changes) ([]*approval.Ticket, bool) {
	v, ok := l.shown.Get(key)
	if !ok {
		return nil, false
	}
	p := v.(*shown)
	if !p.holds(c) {
		l.shown.Remove(key)
		return nil, false
	}
	return copyTickets(p.tickets), true
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
		// The position of a changed ticket in the list is not determined. It suffices that the ticket belongs to the list.
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

// copyTickets returns copies of tickets, so that callers cannot change the cached ones.
func copyTickets(tickets []*approval.Ticket) []*approval.Ticket {
	all := make([]approval.Ticket, len(tickets))
	out := make([]*approval.Ticket, len(tickets))
	for i, t := range tickets {
		all[i] = *t
		out[i] = &all[i]
	}
	return out
}

// keep caches a page that was read after all changes up to a position.
func (l pageCache) keep(key [32]byte, f approval.Filter, tickets []*approval.Ticket, m mark) {
	l.shown.Add(key, &shown{filter: f, tickets: copyTickets(tickets), till: time.Now().Add(maxCacheAge), mark: m})
}

// keyOf returns the cache key of a filter for which isCacheable returns true. It covers every field that such a filter can have.
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

// page returns a list from the cache, or reads and caches it.
func (s *Store) page(ctx context.Context, f approval.Filter) ([]*approval.Ticket, error) {
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	if err := s.readChanged(ctx); err != nil {
		return nil, err
	}
	key := keyOf(f)
	if out, ok := s.pageCache.get(key, s.changes); ok {
		return out, nil
	}
	// The page may contain changes that are committed after this point. It is then invalidated once more than necessary.
	head := s.changes.now()
	out, err := s.selected(ctx, f)
	if err == nil {
		s.pageCache.keep(key, f, out, head)
	}
	return out, err
}
