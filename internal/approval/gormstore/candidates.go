package gormstore

import (
	"database/sql"
	"slices"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
	"github.com/acp-io/acp/internal/tokenize"
)

// pageLimits are the numbers that decide how a page of a list is read. They change its cost, never its tickets.
type pageLimits struct {
	// rareOfAll and rareOfSome are the numbers of tickets up to which a word is rare: reading all tickets with it is then faster
	// than the scan that the list would otherwise use. rareOfAll is for people who see all tickets, rareOfSome for others, who
	// have fewer. A scan for a more frequent word fills a page soon.
	rareOfAll, rareOfSome int
	// candidates is the numbers of candidates that are read, by turns, until the page is full: few, because most pages are full
	// then, and afterwards more than most people may see. If that is not enough, the query of the whole list finds the older tickets.
	candidates []int
	// sorted is the number of tickets up to which the tickets of a list by update are read and sorted (scansUpdates), and sortedOfFew that of
	// a list with further conditions, which few of them may meet.
	sorted, sortedOfFew int
	// first is the number of candidates whose conditions the first statement checks, next that of each further one.
	first, next int
}

var limitsOfPages = pageLimits{rareOfAll: 2000, rareOfSome: 200, candidates: []int{128, 1000}, sorted: 3000, sortedOfFew: 20_000, first: 64, next: 256}

// usesCandidates reports whether a page of a list is read by candidates, which are the newest tickets that its scans find: several
// scans find its tickets, such as all that a person may see, which must meet further conditions, such as words. The query of the whole
// list checks these conditions in each scan, for every ticket that the scan reads until the page is full; the page by candidates checks
// them only for the newest tickets of all scans.
func usesCandidates(f approval.Filter, rare string) bool {
	if f.Limit == 0 || f.ByUpdate || f.ByEnd || f.Oldest {
		return false
	}
	scans, rest := indexScans(f, rare)
	// The other conditions on an item must hold for the item that such a scan finds.
	own := slices.ContainsFunc(scans, func(s indexScan) bool { return s.own })
	return len(scans) > 1 && !own && hasTicketConditions(rest)
}

// candidates returns the query of the newest tickets that the scans of a filter find, at most a number of them, newest first: their numbers,
// and whether they have a word, which all have if it is empty. Their further conditions are not checked.
func candidates(tx *gorm.DB, f approval.Filter, word string, most int) sqlquery.Statement {
	scans, _ := indexScans(f, "")
	numbers := unionOf(tx, scans, f, approval.Filter{}, most)
	has, args := "1 = 1", []any(nil)
	if word != "" {
		// The tickets with the word are read once, which is faster than a search for the word in each candidate.
		has, args = "n IN (SELECT ticket FROM ticket_words WHERE word >= ? AND word < ?)", []any{word, tokenize.PrefixEnd(word)}
	}
	return sqlquery.Statement{
		Text: "SELECT n, " + has + " FROM (SELECT DISTINCT n FROM (" + numbers.Text + ") AS u ORDER BY n DESC LIMIT ?) AS found ORDER BY n DESC",
		Args: append(append(args, numbers.Args...), most),
	}
}

// readCandidates returns the numbers of candidates, newest first. oldest is the oldest candidate if there may be older ones, and 0 if
// there are none.
func readCandidates(tx *gorm.DB, f approval.Filter, word string, most int) (numbers []int64, oldest int64, err error) {
	query := candidates(tx, f, word, most)
	found := 0
	err = database.Rows(tx, func(rows *sql.Rows) error {
		var hasWord bool
		if err := rows.Scan(&oldest, &hasWord); err != nil {
			return err
		}
		if found++; hasWord {
			numbers = append(numbers, oldest)
		}
		return nil
	}, query.Text, query.Args...)
	if found < most {
		oldest = 0
	}
	return numbers, oldest, err
}

// amongCandidates returns the query of the tickets with some of these numbers that meet the further conditions of a filter.
func amongCandidates(tx *gorm.DB, f approval.Filter, numbers []int64, limit int) sqlquery.Statement {
	_, rest := indexScans(f, "")
	c := sqlquery.Condition("tickets.number IN ?", padToPowerOfTwo(numbers))
	addFilter(&c, tx, rest)
	return sqlquery.Statement{Text: "SELECT " + ticketColumns + " FROM tickets" + c.Where() + " ORDER BY number DESC LIMIT ?", Args: append(c.Args(), limit)}
}

// readByCandidates returns the page of a list for which usesCandidates holds, without events. word is a selective word of its text, or
// empty.
func readByCandidates(tx *gorm.DB, f approval.Filter, word string, limits pageLimits) (out []*approval.Ticket, err error) {
	read := limits.candidates
	if word != "" {
		read = read[len(read)-1:] // few of the candidates have the word
	}
	for _, most := range read {
		numbers, oldest, err := readCandidates(tx, f, word, most)
		if err != nil {
			return nil, err
		}
		for n := limits.first; len(numbers) > 0 && f.Limit > 0; n = limits.next {
			checked := numbers[:min(n, len(numbers))]
			numbers = numbers[len(checked):]
			found, err := readTickets(tx, amongCandidates(tx, f, checked, f.Limit), listOrder(f))
			if err != nil {
				return nil, err
			}
			out, f.Limit = append(out, found...), f.Limit-len(found)
		}
		if f.Limit == 0 || oldest == 0 {
			return out, nil
		}
		f.After.Number = oldest
	}
	older, err := readTickets(tx, list(tx, ticketColumns, f, ""), listOrder(f))
	return append(out, older...), err
}
