package gormstore

import (
	"database/sql"

	"gorm.io/gorm"

	"github.com/acp-io/acp/internal/approval"
	"github.com/acp-io/acp/internal/database"
	"github.com/acp-io/acp/internal/tokenize"
)

// A word is rare if so few tickets have it that looking at them all beats the way that the list would go without it: for
// who sees everything through all tickets, for others through what is theirs. A word that more have soon fills a page on
// that way.
const rareOfAll, rareOfSome = 2000, 200

// rarest is a word of the filter's text that few tickets have; empty: all have many, or there is no text.
func rarest(tx *gorm.DB, f approval.Filter) (string, error) {
	if f.Text == "" {
		return "", nil
	}
	out, least := "", rareOfAll+1
	if f.VisibleTo != nil || f.Requester != "" {
		least = rareOfSome + 1
	}
	for _, w := range tokenize.Prefixes(f.Text) {
		var n int
		if err := database.Rows(tx, func(rows *sql.Rows) error { return rows.Scan(&n) },
			"SELECT COUNT(*) FROM (SELECT 1 FROM ticket_words WHERE word >= ? AND word < ? LIMIT ?) AS w", w, tokenize.PrefixEnd(w), least); err != nil {
			return "", err
		}
		if n < least {
			out, least = w, n
		}
	}
	return out, nil
}

// having leaves the tickets with a word that begins with each of some.
func having(q *gorm.DB, all []string) *gorm.DB {
	if len(all) == 0 {
		return q.Where("1 = 0") // there is nothing to search by
	}
	for _, w := range all {
		q = q.Where("EXISTS (SELECT 1 FROM ticket_words w WHERE w.ticket = tickets.number AND w.word >= ? AND w.word < ?)", w, tokenize.PrefixEnd(w))
	}
	return q
}

// saveWords of new tickets: their texts never change.
func saveWords(tx *gorm.DB, some []*creation) error {
	var rows [][]any
	for _, c := range some {
		for _, w := range c.ticket.Words() {
			rows = append(rows, []any{c.ticket.Number, w})
		}
	}
	_, err := database.Insert(tx, "ticket_words (ticket, word)", "", rows)
	return err
}
