package gormstore

import (
	"time"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
	"github.com/acp-io/acp/internal/tokenize"
)

// list returns the query of a list, which selects columns of its tickets. rare is a word of its text that few tickets have,
// or empty.
func list(tx *gorm.DB, columns string, f approval.Filter, rare string) sqlquery.Statement {
	var c sqlquery.Conditions
	switch scans, rest := indexScans(f, rare); {
	case len(scans) == 1 && scans[0].table == "":
		c.AddAll(scans[0].conditions)
		addFilter(&c, tx, rest)
		addAfter(&c, f, "tickets.number")
	case f.ByUpdate:
		addSorted(&c, tx, scans, f, rest)
	default:
		numbers := union(tx, f, rare, f.Limit)
		c.Add("number IN ("+numbers.Text+")", numbers.Args...)
	}
	return pageOf(columns, c, f)
}

// pageOf returns the query of the tickets that meet the conditions, in the order and with the limit of a filter.
func pageOf(columns string, c sqlquery.Conditions, f approval.Filter) sqlquery.Statement {
	s := sqlquery.Statement{Text: "SELECT " + columns + " FROM tickets" + c.Where() + " ORDER BY " + listOrder(f), Args: c.Args()}
	if f.Limit > 0 {
		s.Text, s.Args = s.Text+" LIMIT ?", append(s.Args, f.Limit)
	}
	return s
}

// listOrder returns the order of a list, by columns of tickets.
func listOrder(f approval.Filter) string {
	switch {
	case f.ByUpdate && f.Oldest:
		return "updated_at, number"
	case f.ByUpdate:
		return "updated_at DESC, number DESC"
	case f.Oldest:
		return "number"
	}
	return "number DESC"
}

// maxQueryValues bounds the number of values in one query, because databases bound the number of parameters.
const maxQueryValues = 500

// withoutIndex returns the prefix of columns whose index SQLite must not use. SQLite does not know how many tickets have a state,
// and would otherwise prefer that index to the scan. A unary plus excludes a column from its indexes.
func withoutIndex(tx *gorm.DB) string {
	if tx.Name() == "sqlite" {
		return "+"
	}
	return ""
}

// addFilter adds the conditions of a filter, except WaitsFor, which the scans contain.
func addFilter(c *sqlquery.Conditions, tx *gorm.DB, f approval.Filter) {
	column := withoutIndex(tx) + "tickets."
	sqlquery.AddIn(c, "tickets.number", f.Numbers)
	if f.Text != "" {
		prefixes := tokenize.Prefixes(f.Text)
		if len(prefixes) == 0 {
			c.Add("1 = 0") // a text without words matches nothing
		}
		addWords(c, prefixes)
	}
	if f.Requester != "" {
		c.Add(column+"requester = ?", f.Requester)
	}
	sqlquery.AddIn(c, column+"kind", f.Kinds)
	sqlquery.AddIn(c, column+"state", f.States)
	if f.DecidedBy != "" {
		c.Add("EXISTS (SELECT 1 FROM concerns c WHERE c.ticket = tickets.number AND c.role = 'decided' AND c.person = ?)", f.DecidedBy)
	}
	if f.VisibleTo != nil {
		addVisible(c, *f.VisibleTo, concernsOfTicket)
	}
	if item := ofItem(f, "i."); !item.IsEmpty() {
		c.Add("EXISTS (SELECT 1 FROM items i WHERE i.ticket = tickets.number AND "+item.And()+")", item.Args()...)
	}
}

// concernsOfTicket selects from the concerns of the ticket, as c.
const concernsOfTicket = "FROM concerns c WHERE c.ticket = tickets.number"

// addVisible adds the condition that a person may see the ticket. concerns selects from the concerns of the ticket, as c.
func addVisible(c *sqlquery.Conditions, v approval.Visible, concerns string) {
	args := []any{v.Person, v.Person, v.StandsFor, v.Applications, v.Resources}
	statements := ""
	if len(v.Statements) > 0 {
		statements, args = " OR tickets.number IN ?", append(args, v.Statements)
	}
	c.Add(`(tickets.requester = ?
 OR EXISTS (SELECT 1 `+concerns+` AND (c.person = ? OR c.person IN ? AND c.role = 'named'))
 OR EXISTS (SELECT 1 FROM items i WHERE i.ticket = tickets.number AND (i.application_name IN ? OR i.resource_name IN ?))`+statements+`)`, args...)
}

// ofItem returns the conditions that a single item must meet, with a prefix before the names of the columns.
func ofItem(f approval.Filter, prefix string) sqlquery.Conditions {
	var c sqlquery.Conditions
	sqlquery.AddIn(&c, prefix+"state", f.ItemStates)
	if f.Application != "" {
		c.Add(prefix+"application = ?", f.Application)
	}
	sqlquery.AddIn(&c, prefix+"application_name", f.Applications)
	if f.Resource != "" {
		c.Add(prefix+"resource = ?", f.Resource)
	}
	if f.Policy != "" {
		c.Add(prefix+"policy = ?", f.Policy)
	}
	if f.Target != nil {
		c.Add(prefix+"target_ticket = ?", f.Target.Ticket)
		c.Add(prefix+"target_item = ?", f.Target.Item)
	}
	if f.Package != "" {
		c.Add(prefix+"package = ?", f.Package)
	}
	if !f.DueBy.IsZero() {
		c.Add(prefix+"due_at BETWEEN 1 AND ?", database.Micros(f.DueBy))
	}
	if !f.ExpiresBy.IsZero() {
		c.Add(prefix+"expires_at BETWEEN 1 AND ?", database.Micros(f.ExpiresBy))
	}
	return c
}

// withoutItemConditions returns the filter without the conditions that a single item must meet.
func withoutItemConditions(f approval.Filter) approval.Filter {
	f.ItemStates, f.Application, f.Applications, f.Resource, f.Policy, f.Target, f.Package = nil, "", nil, "", "", nil, ""
	f.DueBy, f.ExpiresBy = time.Time{}, time.Time{}
	return f
}
