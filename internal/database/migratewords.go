package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/acp-io/acp/internal/tokenize"
)

// wordsVersion is the version of the migration that follows 202611210755_approval_words.sql, which creates the table.
const wordsVersion = 202611210756

// fillWords returns the migration that splits the texts of the existing tickets into search words, which SQL cannot do.
func fillWords() *goose.Migration {
	return goose.NewGoMigration(wordsVersion, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		for after := int64(0); ; {
			texts, last, err := ticketTexts(ctx, tx, after)
			if err != nil {
				return fmt.Errorf("read the texts of tickets: %w", err)
			}
			if len(texts) == 0 {
				return nil
			}
			if err := addWords(ctx, tx, texts); err != nil {
				return fmt.Errorf("write the words of tickets: %w", err)
			}
			after = last
		}
	}}, nil)
}

// ticketTexts returns the texts of the next tickets by ticket number, and the last of these numbers.
func ticketTexts(ctx context.Context, tx *sql.Tx, after int64) (texts map[int64][]string, last int64, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT t.number, t.reason, t.requester, COALESCE(i.application, ''), COALESCE(i.resource, '')
 FROM (SELECT number, reason, requester FROM tickets WHERE number > $1 ORDER BY number LIMIT $2) AS t
 LEFT JOIN items i ON i.ticket = t.number`, after, insertAtOnce)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	texts = map[int64][]string{}
	for rows.Next() {
		var number int64
		var some [4]string
		if err := rows.Scan(&number, &some[0], &some[1], &some[2], &some[3]); err != nil {
			return nil, 0, err
		}
		texts[number] = append(texts[number], some[:]...)
		last = max(last, number)
	}
	return texts, last, rows.Err()
}

func addWords(ctx context.Context, tx *sql.Tx, texts map[int64][]string) error {
	var rows [][]any
	for number, some := range texts {
		for _, w := range tokenize.Tokens(some...) {
			rows = append(rows, []any{number, w})
		}
	}
	for some := range slices.Chunk(rows, insertAtOnce) {
		var insert strings.Builder
		insert.WriteString("INSERT INTO ticket_words (ticket, word) VALUES ")
		for i := range some {
			if i > 0 {
				insert.WriteString(", ")
			}
			fmt.Fprintf(&insert, "($%d, $%d)", 2*i+1, 2*i+2) // Both databases accept these placeholders.
		}
		if _, err := tx.ExecContext(ctx, insert.String(), slices.Concat(some...)...); err != nil {
			return err
		}
	}
	return nil
}
