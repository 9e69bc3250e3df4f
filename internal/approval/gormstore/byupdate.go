package gormstore

import (
	"strings"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
)

// The indexes that the scans of a list read are ordered by the number of the ticket. A list by the last change therefore has to read all
// tickets that its scans find, and to sort them. That is fast for what concerns one person or one application, and slow for what a third
// of all tickets have in common, such as a state. The index of all tickets by their last change is the opposite: its tickets come in order,
// and a page is full soon if many of them meet the conditions of the list. If further conditions remain, few of them may, so that more tickets
// are sorted before the index is read; at worst, such a page reads all tickets, as a page by number reads all that its scans find.

// scansUpdates reports whether a page of a list by update is read from the index of all tickets by update, because the scans of the list
// find too many tickets to sort them. rare is a word of its text that few tickets have, or empty.
func scansUpdates(tx *gorm.DB, f approval.Filter, rare string, limits pageLimits) (bool, error) {
	// Few tickets wait for one person. The tickets of a requester have an index in the order of their last change.
	if !f.ByUpdate || rare != "" || f.WaitsFor != nil || f.Requester != "" || len(f.Numbers) > 0 {
		return false, nil
	}
	scans, rest := indexScans(f, "")
	most := limits.sorted
	var more sqlquery.Conditions
	if addFilter(&more, tx, rest); !more.IsEmpty() {
		most = limits.sortedOfFew
	}
	var counts []string
	var args []any
	for _, s := range scans {
		if s.table == "" && s.conditions.IsEmpty() {
			return true, nil
		}
		from := "tickets"
		if s.table != "" {
			from = s.table + " AS d"
		}
		counts = append(counts, "(SELECT COUNT(*) FROM (SELECT 1 FROM "+from+s.conditions.Where()+" LIMIT ?) AS s)")
		args = append(append(args, s.conditions.Args()...), most+1)
	}
	found, err := database.Number(tx, "SELECT "+strings.Join(counts, " + "), args...)
	return found > int64(most), err
}

// addSorted adds the conditions for the page of a list by update whose tickets are all read by its scans. rest is what remains to be
// checked beside the scans.
func addSorted(c *sqlquery.Conditions, tx *gorm.DB, scans []indexScan, f, rest approval.Filter) {
	numbers := unionOf(tx, scans, approval.Filter{}, approval.Filter{}, 0)
	if tx.Name() == "sqlite" {
		c.Add("tickets.number IN ("+numbers.Text+")", numbers.Args...)
	} else {
		// An array keeps PostgreSQL from reading all tickets to join them.
		c.Add("tickets.number = ANY(ARRAY("+numbers.Text+"))", numbers.Args...)
	}
	if f.WaitsFor == nil {
		// All conditions on an item must hold for one item, also the one that the scan has checked.
		checked := f
		checked.VisibleTo, checked.DecidedBy = rest.VisibleTo, rest.DecidedBy
		rest = checked
	}
	addFilter(c, tx, rest)
	addAfter(c, f, "tickets.number")
}

// byUpdate returns the query of a list that is read from the index of all tickets by update, which selects columns of its tickets.
func byUpdate(tx *gorm.DB, columns string, f approval.Filter) sqlquery.Statement {
	var c sqlquery.Conditions
	visible := f.VisibleTo
	f.VisibleTo = nil
	addFilter(&c, tx, f)
	if visible != nil {
		concerns := concernsOfTicket
		if tx.Name() != "sqlite" {
			// The subquery keeps PostgreSQL from reading all concerns of the person beforehand, who may be named in most tickets.
			concerns = "FROM (SELECT person, role FROM concerns WHERE ticket = tickets.number OFFSET 0) c WHERE TRUE"
		}
		addVisible(&c, *visible, concerns)
	}
	addAfter(&c, f, "tickets.number")
	return pageOf(columns, c, f)
}
