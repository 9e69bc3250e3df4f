package gormstore

import (
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/tokenize"
)

// indexScan is a scan of an index that finds tickets of a list, newest first, so that the cost of a page depends on its size and
// not on the number of tickets. A list may need several scans, such as the tickets that concern a person and those about
// their applications; it is then their union.
type indexScan struct {
	// table is the table that is scanned, as d; empty for the tickets themselves.
	table string
	where string
	args  []any
	// own reports that d is the item that must meet the filter's conditions on a single item.
	own bool
	// ranges reports that the scan covers several ranges of the index, so its result is not in order.
	ranges bool
}

// indexScans returns the narrowest scans for a filter, and the conditions that remain to be checked for each row. rare is a word
// that few tickets have, or empty.
func indexScans(f approval.Filter, rare string) (scans []indexScan, rest approval.Filter) {
	// A person may see what waits for them and what they decided or requested, so that visibility needs no check.
	if v := f.VisibleTo; v != nil && (f.Requester == v.Person || f.DecidedBy == v.Person ||
		f.WaitsFor != nil && f.WaitsFor.Person == v.Person && sameSet(f.WaitsFor.StandsFor, v.StandsFor)) {
		f.VisibleTo = nil
	}
	switch {
	case f.WaitsFor != nil:
		scans = waiting(f)
		f.WaitsFor, f.ItemStates = nil, nil
	case len(f.Numbers) > 0:
		scans = []indexScan{ofTickets("tickets.number IN ?", f.Numbers)}
		f.Numbers = nil
	case rare != "":
		scans = []indexScan{{table: "ticket_words", where: "d.word >= ? AND d.word < ?", args: []any{rare, tokenize.PrefixEnd(rare)}, ranges: true}}
	case f.DecidedBy != "":
		scans = []indexScan{concern(f.DecidedBy, approval.RoleDecided)}
		f.DecidedBy = ""
	case f.Target != nil:
		scans = []indexScan{ofItems("d.target_ticket > 0 AND d.target_ticket = ? AND d.target_item = ?", f.Target.Ticket, f.Target.Item)}
		f.Target = nil
	case f.Policy != "":
		scans = []indexScan{ofItems("d.policy = ?", f.Policy)}
		f.Policy = ""
	case !f.DueBy.IsZero():
		scans = []indexScan{ofItems("d.due_at > 0 AND d.due_at <= ?", micros(f.DueBy))}
		f.DueBy = time.Time{}
	case f.Requester != "":
		scans = []indexScan{ofTickets("tickets.requester = ?", f.Requester)}
		f.Requester = ""
	case f.Application != "":
		scans = []indexScan{ofItems("d.application = ?", f.Application)}
		f.Application = ""
	case f.Resource != "":
		scans = []indexScan{ofItems("d.resource = ?", f.Resource)}
		f.Resource = ""
	case !f.ExpiresBy.IsZero():
		scans = []indexScan{ofItems("d.expires_at > 0 AND d.expires_at <= ?", micros(f.ExpiresBy))}
		f.ExpiresBy = time.Time{}
	case f.VisibleTo != nil:
		scans = visible(*f.VisibleTo)
		f.VisibleTo = nil
	case len(f.ItemStates) > 0:
		for _, s := range f.ItemStates {
			scans = append(scans, ofItems("d.state = ?", s))
		}
		f.ItemStates = nil
	case len(f.States) > 0:
		for _, s := range f.States {
			scans = append(scans, ofTickets("tickets.state = ?", s))
		}
		f.States = nil
	case len(f.Kinds) > 0:
		for _, k := range f.Kinds {
			scans = append(scans, ofTickets("tickets.kind = ?", k))
		}
		f.Kinds = nil
	default:
		scans = []indexScan{ofTickets("1 = 1")}
	}
	return scans, f
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func ofTickets(where string, args ...any) indexScan { return indexScan{where: where, args: args} }

// ofItems returns a scan of the items that must meet the conditions on a single item.
func ofItems(where string, args ...any) indexScan {
	return indexScan{table: "items", where: where, args: args, own: true}
}

func concern(person string, role approval.Role) indexScan {
	return indexScan{table: "concerns", where: "d.person = ? AND d.role = ?", args: []any{person, role}}
}

// waiting returns the scans for items that wait for a person. A delegate decides neither their own requests nor items that
// they have decided already. ItemStates are those of the waiting item.
func waiting(f approval.Filter) []indexScan {
	w := f.WaitsFor
	scans := []indexScan{concern(w.Person, approval.RoleWaits)}
	for _, p := range w.StandsFor {
		scans = append(scans, indexScan{table: "concerns", where: `d.person = ? AND d.role = 'waits' AND tickets.requester <> ?
 AND NOT EXISTS (SELECT 1 FROM concerns x WHERE x.person = ? AND x.role = 'decided' AND x.ticket = d.ticket AND x.item = d.item)`, args: []any{p, w.Person, w.Person}})
	}
	if len(f.ItemStates) > 0 {
		for i := range scans {
			scans[i].where += " AND EXISTS (SELECT 1 FROM items i WHERE i.ticket = d.ticket AND i.position = d.item AND i.state IN ?)"
			scans[i].args = append(scans[i].args, f.ItemStates)
		}
	}
	return scans
}

func visible(v approval.Visible) []indexScan {
	scans := []indexScan{ofTickets("tickets.requester = ?", v.Person)}
	for _, r := range []approval.Role{approval.RoleWaits, approval.RoleNamed, approval.RoleDecided} {
		scans = append(scans, concern(v.Person, r))
	}
	for _, p := range v.StandsFor {
		scans = append(scans, concern(p, approval.RoleNamed))
	}
	for some := range slices.Chunk(v.Applications, maxQueryValues) {
		scans = append(scans, indexScan{table: "items", where: "d.application_name IN ?", args: []any{padToPowerOfTwo(some)}, ranges: true})
	}
	for some := range slices.Chunk(v.Resources, maxQueryValues) {
		scans = append(scans, indexScan{table: "items", where: "d.resource_name IN ?", args: []any{padToPowerOfTwo(some)}, ranges: true})
	}
	return scans
}

// padToPowerOfTwo repeats the last value up to the next power of two, so that there are few forms of a statement to prepare.
func padToPowerOfTwo[T any](values []T) []T {
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

// numbers returns the query of one scan. It selects the numbers of its tickets, limited in the order of the list.
func (w indexScan) numbers(tx *gorm.DB, f, rest approval.Filter, limit int) *gorm.DB {
	number := "tickets.number"
	q := tx.Table("tickets")
	var conditions []string
	var values []any
	if w.own {
		conditions, values = ofItem(rest, withoutIndex(tx)+"d.")
		rest = withoutItemConditions(rest)
	}
	if w.table != "" {
		number = "d.ticket"
		q = tx.Table(w.table + " AS d")
		if f.ByUpdate || strings.Contains(w.where, "tickets.") || hasTicketConditions(rest) {
			// Each ticket is read by its number. SQLite keeps the order of the tables of a CROSS JOIN. The expression keeps
			// PostgreSQL from reading all tickets in the order of their index.
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
		// The expression keeps PostgreSQL from scanning all rows in the requested order until enough of them match. SQLite
		// sorts once for both the groups and the order if they are the same.
		order = number + " + 0" + direction
	}
	group := number
	if f.ByUpdate {
		order = "tickets.updated_at DESC, " + order
		group += ", tickets.updated_at"
	}
	q = after(q, f, number).Select(number + " AS n")
	if w.table != "" {
		q = q.Group(group) // a ticket's items are adjacent in the index
	}
	if limit > 0 {
		q = q.Order(order).Limit(limit)
	}
	return q
}

// after adds the condition for the tickets after the last one of the previous page.
func after(q *gorm.DB, f approval.Filter, number string) *gorm.DB {
	switch {
	case f.After.Number == 0:
		return q
	case f.ByUpdate:
		return q.Where("(tickets.updated_at, tickets.number) < (?, ?)", micros(f.After.UpdatedAt), f.After.Number)
	}
	return q.Where(number+" < ?", f.After.Number)
}

// hasTicketConditions reports whether where adds a condition for the filter.
func hasTicketConditions(f approval.Filter) bool {
	conditions, _ := ofItem(f, "")
	return len(f.Numbers) > 0 || f.Text != "" || f.Requester != "" || len(f.Kinds) > 0 || len(f.States) > 0 || f.DecidedBy != "" || f.VisibleTo != nil || len(conditions) > 0
}

// union returns the query of the numbers of all scans, as column n.
func union(tx *gorm.DB, f approval.Filter, rare string, limit int) (string, []any) {
	scans, rest := indexScans(f, rare)
	parts, args := make([]string, len(scans)), make([]any, len(scans))
	for i, w := range scans {
		parts[i] = "SELECT n FROM (?) AS w"
		args[i] = w.numbers(tx, f, rest, limit)
	}
	return strings.Join(parts, " UNION "), args
}
