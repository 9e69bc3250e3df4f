package database

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gorm.io/gorm"
)

// Rows calls each for every row of a query, without gorm's builder and its reflection: for the few queries that each call
// of the portal makes. Values are written as ?, which is nothing else in the query.
func Rows(tx *gorm.DB, each func(rows *sql.Rows) error, query string, args ...any) (err error) {
	rows, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, spell(tx, query), args...)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Exec is Rows for a statement without a result; it returns how many rows it has changed.
func Exec(tx *gorm.DB, statement string, args ...any) (int64, error) {
	res, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, spell(tx, statement), args...)
	if err != nil {
		return 0, fmt.Errorf("execute: %w", err)
	}
	return res.RowsAffected()
}

// insertAtOnce keeps the number of a statement's values below what databases accept.
const insertAtOnce = 500

// Insert adds rows to a table, "TABLE (COLUMN, ...)"; the statement may go on behind the values. It returns how many it
// has added.
func Insert(tx *gorm.DB, into, rest string, rows [][]any) (n int64, err error) {
	for some := range slices.Chunk(rows, insertAtOnce) {
		table, args := Table(tx, some)
		added, err := Exec(tx, "INSERT INTO "+into+" "+table+rest, args...)
		if err != nil {
			return n, err
		}
		n += added
	}
	return n, nil
}

// Marks are the places of n values, at least one.
func Marks(n int) string { return "?" + strings.Repeat(", ?", n-1) }

var numbered sync.Map // query to query

// spell writes values as the database wants them.
func spell(tx *gorm.DB, query string) string {
	if tx.Name() != postgresName {
		return query
	}
	if known, ok := numbered.Load(query); ok {
		return known.(string)
	}
	parts := strings.Split(query, "?")
	var out strings.Builder
	for i, part := range parts {
		out.WriteString(part)
		if i < len(parts)-1 {
			out.WriteString("$" + strconv.Itoa(i+1))
		}
	}
	numbered.Store(query, out.String())
	return out.String()
}
