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

// textWord is the word of a filter's text that the fewest tickets have.
type textWord struct {
	// rare is the word if it is rare, and selective if it is not, but has at most as many tickets as one that is rare for people
	// who see all. At most one is set.
	rare, selective string
	// none reports whether no ticket has all words of the text.
	none bool
}

// rarestWord returns the word of the filter's text that the fewest tickets have.
func rarestWord(tx *gorm.DB, f approval.Filter, limits pageLimits) (textWord, error) {
	if f.Text == "" {
		return textWord{}, nil
	}
	prefixes := tokenize.Prefixes(f.Text)
	if len(prefixes) == 0 {
		return textWord{none: true}, nil // a text without words matches nothing
	}
	var columns []string
	var args, into []any
	counts := make([]int, len(prefixes))
	for i, w := range prefixes {
		columns = append(columns, "(SELECT COUNT(*) FROM (SELECT 1 FROM ticket_words WHERE word >= ? AND word < ? LIMIT ?) AS w)")
		args, into = append(args, w, tokenize.PrefixEnd(w), limits.rareOfAll+1), append(into, &counts[i])
	}
	if err := database.Rows(tx, func(rows *sql.Rows) error { return rows.Scan(into...) }, "SELECT "+strings.Join(columns, ", "), args...); err != nil {
		return textWord{}, err
	}
	word, least := "", limits.rareOfAll+1
	for i, n := range counts {
		if n < least {
			word, least = prefixes[i], n
		}
	}
	if restricted := f.VisibleTo != nil || f.Requester != ""; restricted && least > limits.rareOfSome {
		return textWord{selective: word}, nil
	}
	return textWord{rare: word, none: word != "" && least == 0}, nil
}

// addWords adds the condition that for each prefix a ticket has a word that begins with it.
func addWords(c *sqlquery.Conditions, prefixes []string) {
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
