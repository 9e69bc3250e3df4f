package gormstore

import (
	"database/sql"
	"slices"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
)

// candidateLimits bounds the candidates of a page, which are the newest tickets that several scans find.
type candidateLimits struct {
	// read is the number of candidates that are read. If too few of them meet the conditions, the query of the whole list finds the
	// older ones.
	read int
	// first is the number of candidates whose conditions the first statement checks, next that of each further one.
	first, next int
}

// pageCandidates reads more candidates than the tickets that most people may see. Words that are not rare are usually found
// among the first.
var pageCandidates = candidateLimits{read: 1000, first: 64, next: 256}

// usesCandidates reports whether a page of a list is read by candidates: several scans find its tickets, such as all that
// a person may see, which must meet further conditions, such as words. The query of the whole list checks these conditions in
// each scan, for every ticket that the scan reads until the page is full; the page by candidates checks them only for the
// newest tickets of all scans.
func usesCandidates(f approval.Filter, rare string) bool {
	if f.Limit == 0 || f.ByUpdate || f.Oldest {
		return false
	}
	scans, rest := indexScans(f, rare)
	// The other conditions on an item must hold for the item that such a scan finds.
	own := slices.ContainsFunc(scans, func(s indexScan) bool { return s.own })
	return len(scans) > 1 && !own && hasTicketConditions(rest)
}

// candidates returns the query of the newest tickets that the scans of a filter find, without regard to its further
// conditions, as numbers.
func candidates(tx *gorm.DB, f approval.Filter, most int) sqlquery.Statement {
	scans, _ := indexScans(f, "")
	numbers := unionOf(tx, scans, f, approval.Filter{}, most)
	return sqlquery.Statement{Text: "SELECT n FROM (" + numbers.Text + ") AS found ORDER BY n DESC LIMIT ?", Args: append(numbers.Args, most)}
}

// amongCandidates returns the query of the tickets with some of these numbers that meet the further conditions of a filter.
func amongCandidates(tx *gorm.DB, f approval.Filter, numbers []int64, limit int) sqlquery.Statement {
	_, rest := indexScans(f, "")
	c := sqlquery.Condition("tickets.number IN ?", padToPowerOfTwo(numbers))
	addFilter(&c, tx, rest)
	return sqlquery.Statement{Text: "SELECT " + ticketColumns + " FROM tickets" + c.Where() + " ORDER BY number DESC LIMIT ?", Args: append(c.Args(), limit)}
}

// readByCandidates returns the page of a list for which usesCandidates holds, without events.
func readByCandidates(tx *gorm.DB, f approval.Filter, limits candidateLimits) (out []*approval.Ticket, err error) {
	var numbers []int64
	query := candidates(tx, f, limits.read)
	if err := database.Rows(tx, func(rows *sql.Rows) error {
		var n int64
		err := rows.Scan(&n)
		numbers = append(numbers, n)
		return err
	}, query.Text, query.Args...); err != nil {
		return nil, err
	}
	left := numbers
	for n := limits.first; len(left) > 0 && len(out) < f.Limit; n = limits.next {
		checked := left[:min(n, len(left))]
		left = left[len(checked):]
		found, err := readTickets(tx, amongCandidates(tx, f, checked, f.Limit-len(out)), listOrder(f))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) == f.Limit || len(numbers) < limits.read {
		return out, nil
	}
	f.After.Number, f.Limit = numbers[len(numbers)-1], f.Limit-len(out)
	older, err := readTickets(tx, list(tx, ticketColumns, f, ""), listOrder(f))
	return append(out, older...), err
}
