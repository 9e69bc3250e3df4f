package gormstore

import (
	"slices"

	"gorm.io/gorm"
	"k8s.io/utils/lru"

	"github.com/acp-io/acp/internal/approval"
)

// pages keeps the tickets that lists have shown lately. A list always reads from the database which tickets it shows and
// in which version; only what belongs to a version that was read before is taken from here. So it is right with any
// number of replicas.
type pages struct{ seen *lru.Cache }

// keepTickets is some tens of megabytes.
const keepTickets = 8192

func newPages() pages { return pages{lru.New(keepTickets)} }

type keptTicket struct {
	row    ticketRow
	ticket approval.Ticket
}

// get is the ticket of a row, if it was seen in this version.
func (p pages) get(r ticketRow) (*approval.Ticket, bool) {
	v, ok := p.seen.Get(r.Number)
	if !ok {
		return nil, false
	}
	k := v.(*keptTicket)
	if k.row.Version != r.Version || k.row.UpdatedAt != r.UpdatedAt {
		return nil, false
	}
	t := k.ticket
	return &t, true
}

func (p pages) keep(r ticketRow, t *approval.Ticket) {
	k := &keptTicket{r, *t}
	k.ticket.Items, k.ticket.Events = slices.Clip(t.Items), slices.Clip(t.Events)
	p.seen.Add(r.Number, k)
}

// tickets of rows, in their order; those of a page are kept.
func (p pages) tickets(tx *gorm.DB, rows []ticketRow, page bool) ([]*approval.Ticket, error) {
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
		n := min(len(missing), fillAtOnce)
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
