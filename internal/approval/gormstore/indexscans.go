package gormstore

import (
	"slices"
	"time"

	"gorm.io/gorm"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
	"github.com/acp-io/acp/internal/tokenize"
)

// indexScan is a scan of an index that finds tickets of a list, newest first, so that the cost of a page depends on its size and
// not on the number of tickets. A list may need several scans, such as the tickets that concern a person and those about
// their applications; it is then their union.
type indexScan struct {
	// table is the table that is scanned, as d; empty for the tickets themselves.
	table      string
	conditions sqlquery.Conditions
	// word is the word of the filter's text that every row of the scan has, or empty.
	word string
	// joined reports whether the conditions name columns of the tickets beside those of d.
	joined bool
	// own reports whether d is the item that must meet the filter's conditions on a single item.
	own bool
	// ranges reports whether the scan covers several ranges of the index, so its result is not in order.
	ranges bool
}

// indexScans returns the narrowest scans for a filter, and the conditions that remain to be checked for each row. rare is a word
// that few tickets have, or empty.
//
//nolint:gocyclo // a list of the indexes in the order of their precedence, one case for each; parts of it would hide the order
func indexScans(f approval.Filter, rare string) (scans []indexScan, rest approval.Filter) {
	// A person may see what waits for them and what they decided or requested, so that visibility needs no check.
	if v := f.VisibleTo; v != nil && (f.Requester == v.Person || f.DecidedBy == v.Person ||
		f.WaitsFor != nil && f.WaitsFor.Person == v.Person && sets.New(f.WaitsFor.StandsFor...).Equal(sets.New(v.StandsFor...))) {
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
		scans = []indexScan{{table: "ticket_words", word: rare, ranges: true,
			conditions: sqlquery.Condition("d.word >= ? AND d.word < ?", rare, tokenize.PrefixEnd(rare))}}
	case f.DecidedBy != "":
		scans = []indexScan{concern(f.DecidedBy, approval.RoleDecided)}
		f.DecidedBy = ""
	case f.Target != nil:
		scans = []indexScan{ofItems("d.target_ticket > 0 AND d.target_ticket = ? AND d.target_item = ?", f.Target.Ticket, f.Target.Item)}
		f.Target = nil
	case f.Package != "":
		scans = []indexScan{ofItems("d.package <> '' AND d.package = ?", f.Package)}
		f.Package = ""
	case f.Policy != "":
		scans = []indexScan{ofItems("d.policy = ?", f.Policy)}
		f.Policy = ""
	case !f.DueBy.IsZero():
		scans = []indexScan{ofItems("d.due_at > 0 AND d.due_at <= ?", database.Micros(f.DueBy))}
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
	case len(f.Applications) > 0:
		return ofApplications(f)
	case !f.ExpiresBy.IsZero():
		scans = []indexScan{ofItems("d.expires_at > 0 AND d.expires_at <= ?", database.Micros(f.ExpiresBy))}
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
		scans = []indexScan{{}}
	}
	return scans, f
}

func ofTickets(condition string, args ...any) indexScan {
	return indexScan{conditions: sqlquery.Condition(condition, args...)}
}

// ofItems returns a scan of the items that must meet the conditions on a single item.
func ofItems(condition string, args ...any) indexScan {
	return indexScan{table: "items", conditions: sqlquery.Condition(condition, args...), own: true}
}

// ofApplications returns the scans for the items of the filter's applications, and the conditions that remain. With states and an end, the
// scans read only the items that meet both.
func ofApplications(f approval.Filter) (scans []indexScan, rest approval.Filter) {
	ends := len(f.ItemStates) > 0 && !f.ExpiresBy.IsZero()
	for chunk := range slices.Chunk(f.Applications, maxQueryValues) {
		s := ofItems("d.application_name IN ?", padToPowerOfTwo(chunk))
		s.ranges = true
		if ends {
			s.conditions.Add("d.state IN ?", f.ItemStates)
			s.conditions.Add("d.expires_at > 0 AND d.expires_at <= ?", database.Micros(f.ExpiresBy))
		}
		scans = append(scans, s)
	}
	f.Applications = nil
	if ends {
		f.ItemStates, f.ExpiresBy = nil, time.Time{}
	}
	return scans, f
}

func concern(person string, role approval.Role) indexScan {
	return indexScan{table: "concerns", conditions: sqlquery.Condition("d.person = ? AND d.role = ?", person, role)}
}

// waiting returns the scans for items that wait for a person. A delegate decides neither their own requests nor items that
// they have decided already. ItemStates are those of the waiting item.
func waiting(f approval.Filter) []indexScan {
	w := f.WaitsFor
	scans := []indexScan{concern(w.Person, approval.RoleWaits)}
	for _, p := range w.StandsFor {
		scans = append(
			scans,
			indexScan{table: "concerns", joined: true, conditions: sqlquery.Condition(`d.person = ? AND d.role = 'waits' AND tickets.requester <> ?
 AND NOT EXISTS (SELECT 1 FROM concerns x WHERE x.person = ? AND x.role = 'decided' AND x.ticket = d.ticket AND x.item = d.item)`, p, w.Person, w.Person)},
		)
	}
	if len(f.ItemStates) > 0 {
		for i := range scans {
			scans[i].conditions.Add("EXISTS (SELECT 1 FROM items i WHERE i.ticket = d.ticket AND i.position = d.item AND i.state IN ?)", f.ItemStates)
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
	for chunk := range slices.Chunk(v.Applications, maxQueryValues) {
		scans = append(scans, indexScan{table: "items", conditions: sqlquery.Condition("d.application_name IN ?", padToPowerOfTwo(chunk)), ranges: true})
	}
	for chunk := range slices.Chunk(v.Resources, maxQueryValues) {
		scans = append(scans, indexScan{table: "items", conditions: sqlquery.Condition("d.resource_name IN ?", padToPowerOfTwo(chunk)), ranges: true})
	}
	if len(v.Statements) > 0 {
		scans = append(scans, ofTickets("tickets.number IN ?", padToPowerOfTwo(v.Statements)))
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

// numbers returns the query of one scan. It selects the numbers of its tickets, limited in the order of the list, which is by number.
func (w indexScan) numbers(tx *gorm.DB, f, rest approval.Filter, limit int) sqlquery.Statement {
	number, from := "tickets.number", "tickets"
	var c, item sqlquery.Conditions
	if w.own {
		item = ofItem(rest, withoutIndex(tx)+"d.")
		rest = withoutItemConditions(rest)
	}
	var words []string // those that remain to be checked
	if w.word != "" {
		words = slices.DeleteFunc(tokenize.Prefixes(rest.Text), func(prefix string) bool { return prefix == w.word })
		rest.Text = ""
	}
	if w.table != "" {
		number, from = "d.ticket", w.table+" AS d"
		if w.joined || len(words) > 0 || hasTicketConditions(rest) {
			// Each ticket is read by its number. SQLite keeps the order of the tables of a CROSS JOIN. The expression keeps
			// PostgreSQL from reading all tickets in the order of their index.
			from += " CROSS JOIN tickets"
			c.Add("tickets.number = d.ticket + 0")
		}
	}
	c.AddAll(w.conditions)
	addWords(&c, words)
	addFilter(&c, tx, rest)
	c.AddAll(item)
	addAfter(&c, f, number)
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
	s := sqlquery.Statement{Text: "SELECT " + number + " AS n FROM " + from + c.Where(), Args: c.Args()}
	if w.table != "" {
		s.Text += " GROUP BY " + number // a ticket's items are adjacent in the index
	}
	if limit > 0 {
		s.Text, s.Args = s.Text+" ORDER BY "+order+" LIMIT ?", append(s.Args, limit)
	}
	return s
}

// addAfter adds the condition for the tickets after the last one of the previous page.
func addAfter(c *sqlquery.Conditions, f approval.Filter, number string) {
	than := " < "
	if f.Oldest {
		than = " > "
	}
	switch {
	case f.After.Number == 0:
	case f.ByUpdate:
		c.Add("(tickets.updated_at, tickets.number)"+than+"(?, ?)", database.Micros(f.After.UpdatedAt), f.After.Number)
	default:
		c.Add(number+than+"?", f.After.Number)
	}
}

// hasTicketConditions reports whether addFilter adds a condition for the filter.
func hasTicketConditions(f approval.Filter) bool {
	item := ofItem(f, "")
	return len(f.Numbers) > 0 || f.Text != "" || f.Requester != "" || len(f.Kinds) > 0 || len(f.States) > 0 || f.DecidedBy != "" || f.VisibleTo != nil ||
		!item.IsEmpty()
}

// union returns the query of the numbers of all scans, as column n.
func union(tx *gorm.DB, f approval.Filter, rare string, limit int) sqlquery.Statement {
	scans, rest := indexScans(f, rare)
	return unionOf(tx, scans, f, rest, limit)
}

// unionOf returns the query of the numbers that the scans of a filter find and that meet the conditions of rest, as column n. A number may
// occur several times.
func unionOf(tx *gorm.DB, scans []indexScan, f, rest approval.Filter, limit int) sqlquery.Statement {
	var all sqlquery.Statement
	union := " UNION "
	if tx.Name() == "sqlite" {
		// SQLite removes duplicates after each scan. To remove them once, by DISTINCT, is faster.
		union = " UNION ALL "
	}
	for i, w := range scans {
		if i > 0 {
			all.Text += union
		}
		s := w.numbers(tx, f, rest, limit)
		all.Text, all.Args = all.Text+"SELECT n FROM ("+s.Text+") AS w", append(all.Args, s.Args...)
	}
	return all
}
