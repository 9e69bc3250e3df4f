package gormstore

import (
	"cmp"
	"slices"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
)

// byEnd returns the query of the numbers of tickets whose access ends first, in the order of the ends. It reads the items that end by the
// instant of the filter: with applications and states, the index items_application_ends has exactly those, whatever else is stored.
func byEnd(tx *gorm.DB, f approval.Filter) sqlquery.Statement {
	chunks := [][]string{nil}
	if len(f.Applications) > 0 {
		chunks = slices.Collect(slices.Chunk(f.Applications, maxQueryValues))
	}
	var all sqlquery.Statement
	for i, chunk := range chunks {
		if i > 0 {
			all.Text += " UNION ALL "
		}
		item := f
		item.Applications = nil
		if chunk != nil {
			item.Applications = padToPowerOfTwo(chunk)
		}
		// Each ticket is read by its number; see indexScan.numbers.
		c := sqlquery.Condition("tickets.number = d.ticket + 0")
		c.Add("d.expires_at > 0") // as the index says it
		c.AddAll(ofItem(item, "d."))
		addFilter(&c, tx, withoutItemConditions(f))
		all.Text += "SELECT d.ticket AS n, d.expires_at AS ends FROM items AS d CROSS JOIN tickets" + c.Where()
		all.Args = append(all.Args, c.Args()...)
	}
	s := sqlquery.Statement{Text: "SELECT n FROM (" + all.Text + ") AS e GROUP BY n ORDER BY MIN(ends), n", Args: all.Args}
	if f.Limit > 0 {
		s.Text, s.Args = s.Text+" LIMIT ?", append(s.Args, f.Limit)
	}
	return s
}

// readByEnd returns the tickets of a list by end, without events.
func readByEnd(tx *gorm.DB, f approval.Filter) (out []*approval.Ticket, err error) {
	query := byEnd(tx, f)
	numbers, err := database.Select[int64](tx, query.Text, query.Args...)
	if err != nil {
		return nil, err
	}
	place := make(map[int64]int, len(numbers))
	for i, n := range numbers {
		place[n] = i
	}
	for chunk := range slices.Chunk(numbers, maxQueryValues) {
		found, err := readTickets(tx, ticketQuery("number IN ?", padToPowerOfTwo(chunk)), "number")
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	slices.SortFunc(out, func(a, b *approval.Ticket) int { return cmp.Compare(place[a.Number], place[b.Number]) })
	return out, nil
}
