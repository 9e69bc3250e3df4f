package gormstore

import (
	"slices"

	"gorm.io/gorm"
	"k8s.io/utils/lru"

	"github.com/acp-io/acp/internal/approval"
)

// ticketCache holds the tickets that were read or written last, with their versions. A caller first reads the current
// version from the database and takes a ticket from the cache only if its version is the same, so the cache is correct
// with any number of replicas.
type ticketCache struct{ seen *lru.Cache }

// maxCachedTickets is the capacity of the cache in tickets: some tens of megabytes.
const maxCachedTickets = 8192

func newTicketCache() ticketCache { return ticketCache{lru.New(maxCachedTickets)} }

type cachedTicket struct {
	row    ticketRow
	ticket approval.Ticket
}

// get returns the ticket of a row, if it is cached in the version of the row.
func (p ticketCache) get(r ticketRow) (*approval.Ticket, bool) {
	v, ok := p.seen.Get(r.Number)
	if !ok {
		return nil, false
	}
	k := v.(*cachedTicket)
	if k.row.Version != r.Version || k.row.UpdatedAt != r.UpdatedAt {
		return nil, false
	}
	t := k.ticket
	return &t, true
}

func (p ticketCache) keep(r ticketRow, t *approval.Ticket) {
	k := &cachedTicket{r, *t}
	k.ticket.Items, k.ticket.Events = slices.Clip(t.Items), slices.Clip(t.Events)
	p.seen.Add(r.Number, k)
}

// tickets returns the tickets of rows, in their order. If page is true, those that it reads are cached.
func (p ticketCache) tickets(tx *gorm.DB, rows []ticketRow, page bool) ([]*approval.Ticket, error) {
	out := make([]*approval.Ticket, len(rows))
	var missing []ticketRow
	var at []int
	for i, r := range rows {
		if t, ok := p.get(r); ok {
			out[i] = t
			continue
		}
		missing, at = append(missing, r), append(at, i)
	}
	for len(missing) > 0 {
		n := min(len(missing), maxQueryValues)
		filled, err := fill(tx, missing[:n])
		if err != nil {
			return nil, err
		}
		for i, t := range filled {
			out[at[i]] = t
			if page {
				p.keep(missing[i], t)
			}
		}
		missing, at = missing[n:], at[n:]
	}
	return out, nil
}
