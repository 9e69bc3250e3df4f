package gormstore

import (
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/tokenize"
)

// A walk is one way through an index that leads to the tickets of a list, newest first, so that a page costs what it
// shows and not what there is. A list that is reached by several walks (what concerns a person, what is about his
// applications, ...) is their union.
type walk struct {
	table string // items or concerns, as d; empty: the tickets themselves
	where string
	args  []any
	// own: d is the item that the filter's conditions of one item are about, not another one of the same ticket.
	own bool
	// ranges: it is several ranges of the index, which have no order together.
	ranges bool
}

// walks picks the narrowest way to what a filter selects, and returns what is left to be looked at on the way.
// A rare word, if it has one, is nearly all of what there is to look at.
func walks(f approval.Filter, rare string) (ways []walk, rest approval.Filter) {
	// What waits for a person, was decided or asked for by him, he may see.
	if v := f.VisibleTo; v != nil && (f.Requester == v.Person || f.DecidedBy == v.Person ||
		f.WaitsFor != nil && f.WaitsFor.Person == v.Person && sameSet(f.WaitsFor.StandsFor, v.StandsFor)) {
		f.VisibleTo = nil
	}
	switch {
	case f.WaitsFor != nil:
		ways = waiting(f)
		f.WaitsFor, f.ItemStates = nil, nil
	case len(f.Numbers) > 0:
		ways = []walk{ofTickets("tickets.number IN ?", f.Numbers)}
		f.Numbers = nil
	case rare != "":
		ways = []walk{{table: "ticket_words", where: "d.word >= ? AND d.word < ?", args: []any{rare, tokenize.PrefixEnd(rare)}, ranges: true}}
	case f.DecidedBy != "":
		ways = []walk{concern(f.DecidedBy, approval.RoleDecided)}
		f.DecidedBy = ""
	case f.Target != nil:
		ways = []walk{ofItems("d.target_ticket > 0 AND d.target_ticket = ? AND d.target_item = ?", f.Target.Ticket, f.Target.Item)}
		f.Target = nil
	case f.Policy != "":
		ways = []walk{ofItems("d.policy = ?", f.Policy)}
		f.Policy = ""
	case !f.DueBy.IsZero():
		ways = []walk{ofItems("d.due_at > 0 AND d.due_at <= ?", micros(f.DueBy))}
		f.DueBy = time.Time{}
	case f.Requester != "":
		ways = []walk{ofTickets("tickets.requester = ?", f.Requester)}
		f.Requester = ""
	case f.Application != "":
		ways = []walk{ofItems("d.application = ?", f.Application)}
		f.Application = ""
	case f.Resource != "":
		ways = []walk{ofItems("d.resource = ?", f.Resource)}
		f.Resource = ""
	case !f.ExpiresBy.IsZero():
		ways = []walk{ofItems("d.expires_at > 0 AND d.expires_at <= ?", micros(f.ExpiresBy))}
		f.ExpiresBy = time.Time{}
	case f.VisibleTo != nil:
		ways = visible(*f.VisibleTo)
		f.VisibleTo = nil
	case len(f.ItemStates) > 0:
		for _, s := range f.ItemStates {
			ways = append(ways, ofItems("d.state = ?", s))
		}
		f.ItemStates = nil
	case len(f.States) > 0:
		for _, s := range f.States {
			ways = append(ways, ofTickets("tickets.state = ?", s))
		}
		f.States = nil
	case len(f.Kinds) > 0:
		for _, k := range f.Kinds {
			ways = append(ways, ofTickets("tickets.kind = ?", k))
		}
		f.Kinds = nil
	default:
		ways = []walk{ofTickets("1 = 1")}
	}
	return ways, f
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func ofTickets(where string, args ...any) walk { return walk{where: where, args: args} }

// ofItems is a walk through the items that are meant.
func ofItems(where string, args ...any) walk {
	return walk{table: "items", where: where, args: args, own: true}
}

func concern(person string, role approval.Role) walk {
	return walk{table: "concerns", where: "d.person = ? AND d.role = ?", args: []any{person, role}}
}

// waiting: an item is nobody's concern who asked for it; who stands for another decides neither what he asked for
// himself nor what he has decided already. The states are those of the item that waits.
func waiting(f approval.Filter) []walk {
	w := f.WaitsFor
	ways := []walk{concern(w.Person, approval.RoleWaits)}
	for _, p := range w.StandsFor {
		ways = append(ways, walk{table: "concerns", where: `d.person = ? AND d.role = 'waits' AND tickets.requester <> ?
 AND NOT EXISTS (SELECT 1 FROM concerns x WHERE x.person = ? AND x.role = 'decided' AND x.ticket = d.ticket AND x.item = d.item)`, args: []any{p, w.Person, w.Person}})
	}
	if len(f.ItemStates) > 0 {
		for i := range ways {
			ways[i].where += " AND EXISTS (SELECT 1 FROM items i WHERE i.ticket = d.ticket AND i.position = d.item AND i.state IN ?)"
			ways[i].args = append(ways[i].args, f.ItemStates)
		}
	}
	return ways
}

func visible(v approval.Visible) []walk {
	ways := []walk{ofTickets("tickets.requester = ?", v.Person)}
	for _, r := range []approval.Role{approval.RoleWaits, approval.RoleNamed, approval.RoleDecided} {
		ways = append(ways, concern(v.Person, r))
	}
	for _, p := range v.StandsFor {
		ways = append(ways, concern(p, approval.RoleNamed))
	}
	for some := range slices.Chunk(v.Applications, fillAtOnce) {
		ways = append(ways, walk{table: "items", where: "d.application_name IN ?", args: []any{padded(some)}, ranges: true})
	}
	for some := range slices.Chunk(v.Resources, fillAtOnce) {
		ways = append(ways, walk{table: "items", where: "d.resource_name IN ?", args: []any{padded(some)}, ranges: true})
	}
	return ways
}

// padded repeats the last value up to the next power of two, so that there are few forms of a statement to prepare.
func padded[T any](values []T) []T {
	n := 1
	for n < len(values) {
		n *= 2
	}
	out := slices.Clone(values)
	for len(out) < n {
		out = append(out, values[len(values)-1])
	}
	return out
}

// numbers is the query of one walk: the numbers of its tickets, limited in the list's order.
func (w walk) numbers(tx *gorm.DB, f, rest approval.Filter, limit int) *gorm.DB {
	number := "tickets.number"
	q := tx.Table("tickets")
	var conditions []string
	var values []any
	if w.own {
		conditions, values = ofItem(rest, beside(tx)+"d.")
		rest = exceptItem(rest)
	}
	if w.table != "" {
		number = "d.ticket"
		q = tx.Table(w.table + " AS d")
		if f.ByUpdate || strings.Contains(w.where, "tickets.") || looksAtTickets(rest) {
			// Each ticket is looked up. SQLite takes the tables of a CROSS JOIN in the order in which they are written;
			// PostgreSQL would rather read all tickets beside the index, which the expression has no order for.
			q = tx.Table(w.table + " AS d CROSS JOIN tickets").Where("tickets.number = d.ticket + 0")
		}
	}
	q = where(q.Where(w.where, w.args...), rest)
	if len(conditions) > 0 {
		q = q.Where(strings.Join(conditions, " AND "), values...)
	}
	direction := " DESC"
	if f.Oldest {
		direction = ""
	}
	order := number + direction
	if w.ranges && tx.Name() != "sqlite" {
		// PostgreSQL would rather walk through everything in the right
		// order and hope for enough of them; an expression has no index. SQLite sorts once for the groups and for the order
		// if they are the same.
		order = number + " + 0" + direction
	}
	group := number
	if f.ByUpdate {
		order = "tickets.updated_at DESC, " + order
		group += ", tickets.updated_at"
	}
	q = after(q, f, number).Select(number + " AS n")
	if w.table != "" {
		q = q.Group(group) // an index has a ticket's items beside each other
	}
	if limit > 0 {
		q = q.Order(order).Limit(limit)
	}
	return q
}

// after continues behind the last ticket of the page before.
func after(q *gorm.DB, f approval.Filter, number string) *gorm.DB {
	switch {
	case f.After.Number == 0:
		return q
	case f.ByUpdate:
		return q.Where("(tickets.updated_at, tickets.number) < (?, ?)", micros(f.After.UpdatedAt), f.After.Number)
	}
	return q.Where(number+" < ?", f.After.Number)
}

// looksAtTickets reports whether where has a condition for the filter.
func looksAtTickets(f approval.Filter) bool {
	conditions, _ := ofItem(f, "")
	return len(f.Numbers) > 0 || f.Text != "" || f.Requester != "" || len(f.Kinds) > 0 || len(f.States) > 0 || f.DecidedBy != "" || f.VisibleTo != nil || len(conditions) > 0
}

// union is the query of the walks' tickets, as column n.
func union(tx *gorm.DB, f approval.Filter, rare string, limit int) (string, []any) {
	ways, rest := walks(f, rare)
	parts, args := make([]string, len(ways)), make([]any, len(ways))
	for i, w := range ways {
		parts[i] = "SELECT n FROM (?) AS w"
		args[i] = w.numbers(tx, f, rest, limit)
	}
	return strings.Join(parts, " UNION "), args
}
