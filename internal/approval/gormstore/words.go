package gormstore

import (
	"database/sql"
	"strings"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/sqlquery"
	"github.com/acp-io/acp/internal/tokenize"
)

// rareOfAll and rareOfSome are the numbers of tickets up to which a word is rare: reading all tickets with it is then faster
// than the scan that the list would otherwise use. rareOfAll is for people who see all tickets, rareOfSome for others, who
// have fewer. A scan for a more frequent word fills a page soon.
const rareOfAll, rareOfSome = 2000, 200

// rarestWord returns the word of the filter's text that the fewest tickets have, or an empty string if no word is rare. none
// reports that no ticket has all words.
func rarestWord(tx *gorm.DB, f approval.Filter) (rare string, none bool, err error) {
	if f.Text == "" {
		return "", false, nil
	}
	prefixes := tokenize.Prefixes(f.Text)
	if len(prefixes) == 0 {
		return "", true, nil // a text without words matches nothing
	}
	least := rareOfAll + 1
	if f.VisibleTo != nil || f.Requester != "" {
		least = rareOfSome + 1
	}
	var columns []string
	var args, into []any
	counts := make([]int, len(prefixes))
	for i, w := range prefixes {
		columns = append(columns, "(SELECT COUNT(*) FROM (SELECT 1 FROM ticket_words WHERE word >= ? AND word < ? LIMIT ?) AS w)")
		args, into = append(args, w, tokenize.PrefixEnd(w), least), append(into, &counts[i])
	}
	if err := database.Rows(tx, func(rows *sql.Rows) error { return rows.Scan(into...) }, "SELECT "+strings.Join(columns, ", "), args...); err != nil {
		return "", false, err
	}
	for i, n := range counts {
		if n < least {
			rare, least = prefixes[i], n
		}
	}
	return rare, rare != "" && least == 0, nil
}

// addWords adds the condition that for each prefix a ticket has a word that begins with it.
func addWords(c *sqlquery.Conditions, prefixes []string) {
	if len(prefixes) == 0 {
		c.Add("1 = 0") // a text without words matches nothing
	}
	for _, w := range prefixes {
		c.Add("EXISTS (SELECT 1 FROM ticket_words w WHERE w.ticket = tickets.number AND w.word >= ? AND w.word < ?)", w, tokenize.PrefixEnd(w))
	}
}

// saveWords inserts the words of a new ticket, whose text never changes.
func saveWords(tx *gorm.DB, t *approval.Ticket) error {
	var rows [][]any
	for _, w := range t.Words() {
		rows = append(rows, []any{t.Number, w})
	}
	_, err := database.Insert(tx, "ticket_words (ticket, word)", "", rows)
	return err
}
