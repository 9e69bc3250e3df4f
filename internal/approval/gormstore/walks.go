package gormstore

import (
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
)

// A walk is one way through an index that leads to the tickets of a list, newest first, so that a page costs what it
// shows and not what there is. A list that is reached by several walks (what concerns a person, what is about his
// applications, ...) is their union.
type walk struct {
	table string // items or concerns, as d; empty: the tickets themselves
	where string
	args  []any
}

// walks picks the narrowest way to what a filter selects, and returns what is left to be looked at on the way.
func walks(f approval.Filter) (ways []walk, rest approval.Filter) {
	// What waits for a person, was decided or asked for by him, he may see.
	if v := f.VisibleTo; v != nil && (f.Requester == v.Person || f.DecidedBy == v.Person ||
		f.WaitsFor != nil && f.WaitsFor.Person == v.Person && sameSet(f.WaitsFor.StandsFor, v.StandsFor)) {
		f.VisibleTo = nil
	}
	switch conditions, _ := ofItem(f); {
	case f.WaitsFor != nil:
		ways = waiting(f)
		f.WaitsFor, f.ItemStates = nil, nil
	case len(f.Numbers) > 0:
		ways = []walk{{"", "tickets.number IN ?", []any{f.Numbers}}}
		f.Numbers = nil
	case f.DecidedBy != "":
		ways = []walk{concern(f.DecidedBy, approval.RoleDecided)}
		f.DecidedBy = ""
	case f.Target != nil:
		ways = []walk{{"items", "d.target_ticket > 0 AND d.target_ticket = ? AND d.target_item = ?", []any{f.Target.Ticket, f.Target.Item}}}
	case f.Policy != "":
		ways = []walk{{"items", "d.policy = ?", []any{f.Policy}}}
	case !f.DueBy.IsZero():
		ways = []walk{{"items", "d.due_at > 0 AND d.due_at <= ?", []any{micros(f.DueBy)}}}
	case f.Requester != "":
		ways = []walk{{"", "tickets.requester = ?", []any{f.Requester}}}
		f.Requester = ""
	case f.Application != "":
		ways = []walk{{"items", "d.application = ?", []any{f.Application}}}
		if len(conditions) == 1 {
			f.Application = ""
		}
	case f.Resource != "":
		ways = []walk{{"items", "d.resource = ?", []any{f.Resource}}}
		if len(conditions) == 1 {
			f.Resource = ""
		}
	case !f.ExpiresBy.IsZero():
		ways = []walk{{"items", "d.expires_at > 0 AND d.expires_at <= ?", []any{micros(f.ExpiresBy)}}}
	case f.VisibleTo != nil:
		ways = visible(*f.VisibleTo)
		f.VisibleTo = nil
	case len(f.ItemStates) > 0:
		for _, s := range f.ItemStates {
			ways = append(ways, walk{"items", "d.state = ?", []any{s}})
		}
		if len(conditions) == 1 {
			f.ItemStates = nil
		}
	case len(f.States) > 0:
		for _, s := range f.States {
			ways = append(ways, walk{"", "tickets.state = ?", []any{s}})
		}
		f.States = nil
	case len(f.Kinds) > 0:
		for _, k := range f.Kinds {
			ways = append(ways, walk{"", "tickets.kind = ?", []any{k}})
		}
		f.Kinds = nil
	default:
		ways = []walk{{where: "1 = 1"}}
	}
	return ways, f
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func concern(person string, role approval.Role) walk {
	return walk{"concerns", "d.person = ? AND d.role = ?", []any{person, role}}
}

// waiting: an item is nobody's concern who asked for it; who stands for another decides neither what he asked for
// himself nor what he has decided already. The states are those of the item that waits.
func waiting(f approval.Filter) []walk {
	w := f.WaitsFor
	ways := []walk{concern(w.Person, approval.RoleWaits)}
	for _, p := range w.StandsFor {
		ways = append(ways, walk{"concerns", `d.person = ? AND d.role = 'waits' AND tickets.requester <> ?
 AND NOT EXISTS (SELECT 1 FROM concerns x WHERE x.person = ? AND x.role = 'decided' AND x.ticket = d.ticket AND x.item = d.item)`, []any{p, w.Person, w.Person}})
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
	ways := []walk{{"", "tickets.requester = ?", []any{v.Person}}}
	for _, r := range []approval.Role{approval.RoleWaits, approval.RoleNamed, approval.RoleDecided} {
		ways = append(ways, concern(v.Person, r))
	}
	for _, p := range v.StandsFor {
		ways = append(ways, concern(p, approval.RoleNamed))
	}
	for some := range slices.Chunk(v.Applications, fillAtOnce) {
		ways = append(ways, walk{"items", "d.application_name IN ?", []any{padded(some)}})
	}
	for some := range slices.Chunk(v.Resources, fillAtOnce) {
		ways = append(ways, walk{"items", "d.resource_name IN ?", []any{padded(some)}})
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
	direction := " DESC"
	if f.Oldest {
		direction = ""
	}
	order := number + direction
	if strings.HasSuffix(w.where, " IN ?") && tx.Name() != "sqlite" {
		// Several ranges of an index have no order together. PostgreSQL would rather walk through everything in the right
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

// looksAtTickets tells whether where has a condition for the filter.
func looksAtTickets(f approval.Filter) bool {
	conditions, _ := ofItem(f)
	return len(f.Numbers) > 0 || f.Text != "" || f.Requester != "" || len(f.Kinds) > 0 || len(f.States) > 0 || f.DecidedBy != "" || f.VisibleTo != nil || len(conditions) > 0
}

// union is the query of the walks' tickets, as column n.
func union(tx *gorm.DB, f approval.Filter, limit int) (string, []any) {
	ways, rest := walks(f)
	parts, args := make([]string, len(ways)), make([]any, len(ways))
	for i, w := range ways {
		parts[i] = "SELECT n FROM (?) AS w"
		args[i] = w.numbers(tx, f, rest, limit)
	}
	return strings.Join(parts, " UNION "), args
}
